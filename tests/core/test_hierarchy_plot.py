"""The tower of memories: what it refuses, that its bars are where its scales say, and that it needs no colour."""

import itertools

import matplotlib
import pytest
from matplotlib.patches import Rectangle

from llminfer.core.plots import Tier, alt_text, data_table, hierarchy, new_axes

ALT = "A tower of four made-up memories, drawn by a test. The lowest one is the slowest."
TIERS = [
    Tier("near", 30e6, 30e12, 3e-6),
    Tier("middle", 50e6, None, None),
    Tier("far", 80e9, 3e12, 30e-6),
    Tier("link", None, 450e9, 200e-6),
]


def tower(tiers=TIERS, **kwargs):
    return hierarchy(tiers, **{"moved": "a layer", "moved_bytes": 90e6, "alt": ALT, **kwargs})


def bars(axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


@pytest.mark.parametrize("alt", ["", "   ", "Tower"])
def test_a_tower_without_words_for_it_is_refused(alt):
    with pytest.raises(ValueError, match="alt must say in a sentence or two"):
        tower(alt=alt)


def test_the_words_and_the_numbers_stay_with_the_picture():
    axes = tower()
    assert alt_text(axes) == ALT
    assert data_table(axes).rows == (
        ("near", 30e6, 30e12, 3e-6),
        ("middle", 50e6, None, None),
        ("far", 80e9, 3e12, 30e-6),
        ("link", None, 450e9, 200e-6),
        ("a layer", 90e6, None, None),
    )
    assert all(len(row) == len(data_table(axes).columns) for row in data_table(axes).rows)


def lengths(axes, right: bool) -> dict[int, float]:
    """How long the bar of each row is, on one side."""
    found = [bar for bar in bars(axes) if (bar.get_width() > 0) == right]
    return {round(bar.get_y() + bar.get_height() / 2): abs(bar.get_width()) for bar in found}


def test_a_decade_is_as_long_for_every_bar():
    """Capacities lie in decades to the left, times to the right; 30 µs is one decade longer than 3 µs."""
    capacities, times = lengths(tower(), right=False), lengths(tower(), right=True)
    assert sorted(capacities) == [0, 1, 2] and sorted(times) == [0, 2, 3]
    assert times[2] - times[0] == pytest.approx(1.0)
    assert times[3] - times[2] == pytest.approx(0.82391, abs=1e-4)  # log10(200 / 30)
    assert capacities[2] - capacities[0] == pytest.approx(3.42597, abs=1e-4)  # log10(80e9 / 30e6)


def test_the_line_of_what_is_moved_tells_who_can_hold_it():
    axes = tower()
    line = axes.lines[0].get_xdata()[0]
    reach = {round(bar.get_y() + 0.33): bar.get_x() + bar.get_width() for bar in bars(axes) if bar.get_width() < 0}
    assert reach[2] < line < min(reach[0], reach[1])


def test_what_is_unknown_is_said_in_words():
    said = [text.get_text() for text in tower().texts]
    assert said.count("speed not published") == 1
    assert "3 µs, 30 TB/s" in said
    assert "size not published" not in said  # a link has no size
    silent = tower([*TIERS, Tier("secret", None, None, None)])
    assert "size not published" in [text.get_text() for text in silent.texts]


def test_sides_differ_in_hatching_and_not_in_colour_alone():
    hatches = {(bar.get_width() > 0, bar.get_hatch() or "") for bar in bars(tower())}
    assert hatches == {(False, ""), (True, "///")}


def test_texts_do_not_run_into_each_other_and_nothing_is_cut_off():
    axes = tower(title="A tower")
    axes.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
    box = axes.figure.get_tightbbox()
    width, height = axes.figure.get_size_inches()
    assert -0.01 <= box.x0 <= box.x1 <= width + 0.01
    assert -0.01 <= box.y0 <= box.y1 <= height + 0.01


def test_labels_of_the_scales_do_not_run_into_each_other():
    axes = tower([Tier("near", 4e6, 1e15, 4e-7), Tier("far", 1.9e11, 5e12, 8e-5), Tier("link", None, 4e11, 9.7e-4)])
    axes.figure.canvas.draw()
    labels = [label.get_window_extent() for label in axes.get_xticklabels()]
    for one, other in itertools.pairwise(labels):
        assert not one.overlaps(other)


def test_a_tower_can_be_drawn_into_axes_one_has():
    axes = new_axes()
    assert tower(axes=axes) is axes


def test_the_readers_own_matplotlib_settings_are_left_alone():
    before = dict(matplotlib.rcParams)
    tower()
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("tiers", [[], [Tier("a", 1e6, None, None)], [Tier("a", None, 1e9, 1e-3)]])
def test_a_tower_without_a_size_or_a_time_is_refused(tiers):
    with pytest.raises(ValueError, match="at least one memory with a capacity and one with a time"):
        tower(tiers)


@pytest.mark.parametrize(
    ("numbers", "what"),
    [((0.0, 1.0, 1.0), "capacity_bytes"), ((1.0, -1.0, 1.0), "bandwidth"), ((1.0, 1.0, float("nan")), "time_s")],
)
def test_numbers_that_logarithms_cannot_show_are_refused(numbers, what):
    with pytest.raises(ValueError, match=f"{what} of 'odd' must be positive, or None if unknown"):
        Tier("odd", *numbers)
