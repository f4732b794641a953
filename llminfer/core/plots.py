"""The pictures of the book, in one place: rooflines, memory hierarchies, distributions, latencies, timelines.

Each function draws on matplotlib Axes and returns them (`distributions`: a figure of several), demands alternative
text, and leaves its numbers to be read with `data_table(axes)`. `show(axes)` is for the last line of a notebook cell;
`save_svg` and `save_png` for files.
"""

from llminfer.core.distribution_plot import distributions
from llminfer.core.hierarchy_plot import Tier, hierarchy
from llminfer.core.latency_plots import Timed, latency, latency_cdf, latency_percentiles
from llminfer.core.plot_style import DataTable, Picture, alt_text, data_table, new_axes, save_png, save_svg, show
from llminfer.core.roofline_plot import Achieved, Roof, roofline
from llminfer.core.timeline_plot import Span, timeline

__all__ = [
    "Achieved",
    "DataTable",
    "Picture",
    "Roof",
    "Span",
    "Tier",
    "Timed",
    "alt_text",
    "data_table",
    "distributions",
    "hierarchy",
    "latency",
    "latency_cdf",
    "latency_percentiles",
    "new_axes",
    "roofline",
    "save_png",
    "save_svg",
    "show",
    "timeline",
]
