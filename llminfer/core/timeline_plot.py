"""A timeline: what each request, worker or stream was doing when. Kinds of work differ in hatching too."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from llminfer.core.latency_plots import UNITS
from llminfer.core.plot_style import check_alt, describe, new_axes, styled

# Kinds that the chapters share keep one look throughout the book; others take the next free one.
LOOKS = {
    "prefill": ("#0072B2", ""),
    "decode": ("#56B4E9", "///"),
    "waiting": ("#FFFFFF", ""),
    "preempted": ("#FFFFFF", "xxx"),
    "swap": ("#E69F00", "..."),
    "draft": ("#CC79A7", "\\\\\\"),
    "verify": ("#009E73", "---"),
    "transfer": ("#D55E00", "ooo"),
    "idle": ("#BBBBBB", ""),
}
OTHER_LOOKS = (("#F0E442", "|||"), ("#999999", "+++"), ("#0072B2", "||"), ("#E69F00", "OO"), ("#FFFFFF", "**"))


@dataclass(frozen=True)
class Span:
    """From start_s to end_s, `row` (a request, a GPU) did work of a `kind`; a short label may stand in the bar.

    Raises ValueError when it ends before it starts.
    """

    row: str
    start_s: float
    end_s: float
    kind: str
    label: str = ""

    def __post_init__(self) -> None:
        if not self.end_s >= self.start_s:
            raise ValueError(f"a span of {self.row!r} must end after it starts, got {self.start_s} to {self.end_s}")


@styled
def timeline(spans: Sequence[Span], *, alt: str, title: str = "", axes: Axes | None = None) -> Axes:
    """Draw a bar for each span, a row for each name in order of first appearance, the first on top."""
    check_alt(alt)
    if not spans:
        raise ValueError("spans is empty: give at least one Span")
    rows = list(dict.fromkeys(span.row for span in spans))
    kinds = list(dict.fromkeys(span.kind for span in spans))
    others = [kind for kind in kinds if kind not in LOOKS]
    looks = {k: LOOKS[k] if k in LOOKS else OTHER_LOOKS[others.index(k) % len(OTHER_LOOKS)] for k in kinds}
    axes = axes or new_axes(8.6, 1.4 + 0.42 * len(rows))
    for span in spans:
        colour, hatch = looks[span.kind]
        at, width = rows.index(span.row), span.end_s - span.start_s
        axes.barh(at, width, left=span.start_s, height=0.7, color=colour, hatch=hatch, edgecolor="black", linewidth=0.7)
        if span.label:
            axes.text(
                span.start_s + width / 2, at, span.label, ha="center", va="center", fontsize=8, clip_on=True,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.9},
            )  # fmt: skip
    _scale(axes, rows, spans)
    axes.set_title(title)
    patches = [Patch(facecolor=c, hatch=h, edgecolor="black", linewidth=0.7, label=k) for k, (c, h) in looks.items()]
    axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)
    columns = ("row", "kind", "start (s)", "end (s)", "label")
    describe(axes, alt, columns, [(s.row, s.kind, float(s.start_s), float(s.end_s), s.label) for s in spans])
    return axes


def _scale(axes: Axes, rows: Sequence[str], spans: Sequence[Span]) -> None:
    start, end = min(span.start_s for span in spans), max(span.end_s for span in spans)
    factor, unit = next(((f, u) for f, u in UNITS if max(abs(start), abs(end)) >= f), UNITS[-1])
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(start, end + 0.01 * (end - start or 1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / factor:g}"))
    axes.set_xlabel(f"time ({unit})")
    axes.grid(False, axis="y")
