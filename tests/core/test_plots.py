"""Pictures: what they refuse, what they say to those who cannot see them, and that they need no colour."""

import itertools
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest

from llminfer.core import plot_style, timeline_plot
from llminfer.core.cost import Cost
from llminfer.core.hardware import device
from llminfer.core.latency_plots import percentile
from llminfer.core.plots import (
    Achieved,
    Roof,
    Span,
    Timed,
    alt_text,
    data_table,
    latency,
    latency_cdf,
    latency_percentiles,
    new_axes,
    roofline,
    save_png,
    save_svg,
    show,
    timeline,
)

ALT = "Times of two made-up series, drawn by a test. The second one is slower throughout."
H100 = Roof("H100", 3.35e12, 989e12)
L2 = Roof("H100 L2", 5.5e12, 989e12)


def a_roofline(**kwargs):
    decode = [Achieved("decode", batch, 2.5e12 * batch) for batch in (1, 4, 16)]
    others = [
        Achieved("prefill", 900, 650e12),
        Achieved("norm", 1.1, 2.6e12),  # sits upon decode at batch 1
        Achieved("slow", 300, 0.3e12),  # sits upon the name of the ridge
    ]
    return roofline([H100, L2], decode + others, **{"alt": ALT, "title": "One <roof> & another", **kwargs})


def a_latency(**kwargs):
    series = [Timed("short", [1, 2, 4], [3e-3, 4e-3, 7e-3], [2e-3, 3e-3, 6e-3]), Timed("long", [1, 2], [5e-3, 9e-3])]
    return latency(series, x_label="batch", **{"alt": ALT, **kwargs})


def a_cdf(**kwargs):
    return latency_cdf({"first": [0.1, 0.2, 0.4], "second": [0.3, 0.5]}, **{"alt": ALT, **kwargs})


def percentiles_over_load(**kwargs):
    samples = {"first": [[0.1, 0.2], [0.2, 0.4]], "second": [[0.3], [0.5, 0.9]]}
    return latency_percentiles([1, 2], samples, x_label="requests/s", **{"alt": ALT, **kwargs})


def a_timeline(**kwargs):
    spans = [Span("r1", 0.0, 0.1, "prefill", "512"), Span("r2", 0.1, 0.3, "waiting"), Span("r1", 0.1, 0.25, "decode")]
    return timeline(spans, **{"alt": ALT, **kwargs})


PICTURES = [a_roofline, a_latency, a_cdf, percentiles_over_load, a_timeline]


@pytest.mark.parametrize("draw", PICTURES)
@pytest.mark.parametrize("alt", ["", "   ", "Roofline", "figure-3-1-roofline-of-the-h100-sxm-with-points.svg"])
def test_a_picture_without_words_for_it_is_refused(draw, alt):
    with pytest.raises(ValueError, match="alt must say in a sentence or two"):
        draw(alt=alt)


@pytest.mark.parametrize("draw", PICTURES)
def test_the_words_and_the_numbers_stay_with_the_picture(draw):
    axes = draw()
    assert alt_text(axes) == alt_text(axes.figure) == ALT
    table = data_table(axes)
    assert table.rows
    assert all(len(row) == len(table.columns) for row in table.rows)


@pytest.mark.parametrize("draw", PICTURES)
def test_nothing_is_cut_off_at_the_edge(draw):
    figure = draw().figure
    figure.canvas.draw()
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert -0.01 <= box.x0 <= box.x1 <= width + 0.01
    assert -0.01 <= box.y0 <= box.y1 <= height + 0.01


@pytest.mark.parametrize("draw", PICTURES)
def test_texts_do_not_run_into_each_other(draw):
    axes = draw()
    axes.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)


@pytest.mark.parametrize("draw", PICTURES)
def test_the_readers_own_matplotlib_settings_are_left_alone(draw):
    before = dict(matplotlib.rcParams)
    draw()
    assert dict(matplotlib.rcParams) == before


def test_a_picture_can_be_drawn_into_axes_one_has():
    axes = new_axes()
    assert a_latency(axes=axes) is axes


# Roofline


def test_a_roof_is_the_lower_of_bandwidth_times_intensity_and_peak():
    roof = Roof.of(device("h100-sxm"), "bfloat16")
    assert roof.ridge == pytest.approx(295.2, abs=0.05)  # the published ridge of the H100 SXM
    assert roof.attainable(1) == 3.35e12
    assert roof.attainable(roof.ridge) == pytest.approx(989e12)
    assert roof.attainable(10_000) == 989e12


def test_a_point_says_what_share_of_its_roof_it_reaches():
    cost = Cost(flops=2e9, read_bytes=1e9, write_bytes=0)  # a matrix-vector product in bfloat16 does 1 FLOP per byte
    points = [Achieved.of("gemv", 0.5 * cost, 1e9 / 3.35e12), Achieved("gemm", 1e4, 989e12 / 2)]
    rows = {row[0]: row for row in data_table(roofline([H100], points, alt=ALT)).rows}
    assert rows["gemv"][3] == pytest.approx(100 / 2)
    assert rows["gemm"][3] == pytest.approx(100 / 2)
    assert rows["ridge of H100"][1] == pytest.approx(989 / 3.35)


@pytest.mark.parametrize("intensity", [1.0, 5000.0])
def test_a_point_above_the_roof_is_a_mistake_somewhere(intensity):
    highest = H100.attainable(intensity)
    roofline([H100], [Achieved("noise", intensity, 1.04 * highest)], alt=ALT)
    with pytest.raises(ValueError, match="'fast' lies at 110% of the roof of H100.*above it"):
        roofline([H100], [Achieved("fast", intensity, 1.10 * highest)], alt=ALT)


def test_a_point_from_the_cache_may_stand_under_the_roof_of_the_cache():
    roofline([H100, L2], [Achieved("cached", 1.0, 5e12, roof="H100 L2")], alt=ALT)
    with pytest.raises(ValueError, match="above it"):
        roofline([H100, L2], [Achieved("cached", 1.0, 5e12)], alt=ALT)


def test_a_point_under_a_roof_that_is_not_drawn_is_refused():
    with pytest.raises(ValueError, match="names the roof 'HBM'; drawn are H100, H100 L2"):
        roofline([H100, L2], [Achieved("p", 1.0, 1e12, roof="HBM")], alt=ALT)


@pytest.mark.parametrize("point", [Achieved("p", 0.0, 1e9), Achieved("p", 1.0, float("nan")), Achieved("p", 1.0, -1.0)])
def test_a_point_that_logarithms_cannot_show_is_refused(point):
    with pytest.raises(ValueError, match="positive intensity and rate"):
        roofline([H100], [point], alt=ALT)


def test_a_roofline_without_a_roof_is_refused():
    with pytest.raises(ValueError, match="roofs is empty"):
        roofline([], alt=ALT)


def test_both_sides_of_the_ridge_are_named_on_their_side():
    axes = roofline([H100], alt=ALT)
    at = {text.get_text().strip(): text.get_position()[0] for text in axes.texts}
    assert at["memory-bound"] < H100.ridge < at["compute-bound"]
    assert at["ridge 295"] == H100.ridge


# Latencies


def test_a_percentile_is_a_time_that_was_measured():
    """The textbook example of nearest rank: five values, percentiles 30, 40, 50 and 100."""
    times = [35.0, 20.0, 15.0, 50.0, 40.0]
    assert [percentile(times, p) for p in (30, 40, 50, 100)] == [20.0, 20.0, 35.0, 50.0]


def test_time_starts_at_zero_so_that_heights_compare():
    assert a_latency().get_ylim()[0] == 0


def test_a_time_axis_names_the_unit_it_is_labelled_in():
    axes = a_latency()
    assert axes.get_ylabel() == "time (ms)"
    assert axes.yaxis.get_major_formatter()(7e-3) == "7"


def test_the_table_puts_measured_beside_predicted():
    rows = data_table(a_latency()).rows
    assert rows[0] == ("short", 1.0, 3e-3, 2e-3)
    assert rows[-1] == ("long", 2.0, 9e-3, None)


def test_what_was_not_measured_here_can_be_predicted_alone():
    axes = latency([Timed("there", [1, 2], predicted_s=[1e-3, 2e-3])], x_label="batch", alt=ALT)
    assert data_table(axes).rows == (("there", 1.0, None, 1e-3), ("there", 2.0, None, 2e-3))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["there, predicted"]
    with pytest.raises(ValueError, match="no points"):
        Timed("nothing", [1, 2])


@pytest.mark.parametrize(
    ("x", "measured", "predicted", "complaint"),
    [
        ([1, 2], [1e-3], None, "needs a time for each x, got 1 for 2"),
        ([1, 2], [1e-3, 2e-3], [1e-3], "predicted_s"),
        ([1], [0.0], None, "positive seconds"),
        ([1], [float("nan")], None, "positive seconds"),
        ([], [], None, "no points"),
    ],
)
def test_times_that_cannot_be_are_refused(x, measured, predicted, complaint):
    with pytest.raises(ValueError, match=complaint):
        Timed("series", x, measured, predicted)


@pytest.mark.parametrize(
    ("samples", "marked"),
    [(4, []), (5, [50]), (58, [50]), (59, [50, 95]), (298, [50, 95]), (299, [50, 95, 99])],
)
def test_a_percentile_is_marked_only_where_the_sample_bounds_it(samples, marked):
    """0.5^5, 0.95^59 and 0.99^299 are the first powers below 5 %."""
    axes = latency_cdf({"s": np.arange(1, samples + 1) / 1000}, alt=ALT)
    [row] = data_table(axes).rows
    assert [p for p, value in zip((50, 95, 99), row[2:], strict=True) if value is not None] == marked
    said = [text.get_text() for text in axes.get_legend().get_texts()]
    assert said == ["s", ", ".join(f"{p} %" for p in marked)][: 1 + bool(marked)]
    assert [len(line.get_xdata()) for line in axes.lines[1:]] == [len(marked)]


def test_percentiles_need_times_at_every_x():
    with pytest.raises(ValueError, match="'s' needs a list of times for each x, got 1 for 2"):
        latency_percentiles([1, 2], {"s": [[0.1]]}, x_label="load", alt=ALT)
    with pytest.raises(ValueError, match="'s at 2' must be positive seconds and at least one"):
        latency_percentiles([1, 2], {"s": [[0.1], []]}, x_label="load", alt=ALT)


@pytest.mark.parametrize("draw", [latency_cdf, lambda samples, alt: latency([], x_label="batch", alt=alt)])
def test_nothing_to_draw_is_said(draw):
    with pytest.raises(ValueError, match="is empty"):
        draw({}, alt=ALT)


def test_times_may_come_as_arrays():
    x, times = np.arange(1, 4), np.array([1e-3, 2e-3, 3e-3])
    given, listed = (
        [
            latency([Timed("s", x, times, times)], x_label="batch", alt=ALT),
            latency_cdf({"s": times}, alt=ALT),
            latency_percentiles(x, {"s": [times, times, times]}, x_label="load", alt=ALT),
        ]
        for x, times in ((x, times), (x.tolist(), times.tolist()))
    )
    assert list(map(data_table, given)) == list(map(data_table, listed))


# Timelines


def test_the_first_row_is_on_top_and_bars_are_as_long_as_their_work():
    axes = a_timeline()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["r1", "r2"]
    assert axes.yaxis_inverted()
    bars = [(bar.get_x(), bar.get_width()) for bar in axes.patches]
    assert bars == [(0.0, 0.1), pytest.approx((0.1, 0.2)), pytest.approx((0.1, 0.15))]


def test_a_span_that_ends_before_it_starts_is_refused():
    with pytest.raises(ValueError, match="must end after it starts, got 2.0 to 1.0"):
        Span("r", 2.0, 1.0, "decode")


def test_an_empty_timeline_is_refused():
    with pytest.raises(ValueError, match="spans is empty"):
        timeline([], alt=ALT)


# Without colour


def grey(colour: str) -> float:
    red, green, blue = matplotlib.colors.to_rgb(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_no_two_series_share_dashes_and_shape():
    axes = latency([Timed(f"s{i}", [1, 2], [1e-3, 2e-3]) for i in range(7)], x_label="batch", alt=ALT)
    looks = {(str(line._unscaled_dash_pattern), line.get_marker()) for line in axes.lines}
    assert len(looks) == len({marker for _, marker in looks}) == len({dashes for dashes, _ in looks}) == 7


def test_no_two_kinds_of_work_look_alike_in_grey():
    kinds = [*timeline_plot.LOOKS.values(), *timeline_plot.OTHER_LOOKS]
    for (colour, hatch), (other, its_hatch) in itertools.combinations(kinds, 2):
        assert hatch != its_hatch or abs(grey(colour) - grey(other)) > 0.15


def test_kinds_the_book_does_not_know_get_looks_of_their_own():
    spans = [Span("r", i, i + 1.0, kind) for i, kind in enumerate(["decode", "gossip", "lunch"])]
    looks = {(bar.get_facecolor(), bar.get_hatch()) for bar in timeline(spans, alt=ALT).patches}
    assert len(looks) == 3


# Files and notebooks

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("draw", PICTURES)
def test_an_svg_speaks_and_has_no_date(draw, tmp_path):
    written = save_svg(draw(), tmp_path / "a.svg").read_bytes()
    root = ElementTree.fromstring(written)
    assert root.get("role") == "img"
    assert root.find(f"{SVG}desc").text == ALT
    assert b"<dc:date>" not in written and b"Matplotlib v" not in written


def test_an_svg_is_the_same_in_another_process_and_needs_no_pyplot(tmp_path):
    program = (
        "import sys; from llminfer.core.plots import Roof, roofline, save_svg\n"
        f"save_svg(roofline([Roof('H100', 3.35e12, 989e12)], alt={ALT!r}), sys.argv[1])\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "other.svg")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    here = save_svg(roofline([H100], alt=ALT), tmp_path / "here.svg")
    assert here.read_bytes() == (tmp_path / "other.svg").read_bytes()
    assert printed.strip() == "False"


def test_the_title_of_an_svg_is_escaped(tmp_path):
    root = ElementTree.fromstring(save_svg(a_roofline(), tmp_path / "a.svg").read_bytes())
    assert root.find(f"{SVG}title").text == "One <roof> & another"


def test_a_png_carries_its_words(tmp_path):
    image = pytest.importorskip("PIL.Image").open(save_png(a_cdf(), tmp_path / "a.png"))
    assert image.info["Description"] == ALT


def test_a_notebook_gets_picture_words_and_table():
    picture = show(a_timeline())
    shown = picture._repr_html_()
    assert f'alt="{ALT}"' in shown
    assert "data:image/svg+xml;base64," in shown
    assert "<td>prefill</td>" in shown
    assert repr(picture) == ALT


def test_a_table_becomes_markdown_and_html():
    table = plot_style.DataTable(("what", "ms"), (("a|b", 1.23456), ("<c>", None)))
    assert table.markdown() == "| what | ms |\n| --- | --- |\n| a\\|b | 1.235 |\n| <c> |  |"
    assert "<td>&lt;c&gt;</td><td></td>" in table.html()


def test_axes_of_someone_else_have_no_table():
    with pytest.raises(ValueError, match="carry no description"):
        data_table(new_axes())


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (3.35e12, "3.35 TB/s"),
        (989e12, "989 TB/s"),
        (999.9e9, "1 TB/s"),
        (0.504e12, "504 GB/s"),
        (12, "12 B/s"),
        (2.5e-4, "250 µB/s"),
        (0, "0 B/s"),
    ],
)
def test_numbers_are_said_with_a_prefix(value, said):
    assert plot_style.si(value, "B/s") == said
