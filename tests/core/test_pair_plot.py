"""Pictures of pairs: every time has its mark, and a bound never looks like a measurement."""

from dataclasses import replace

import pytest

from llminfer.core.cost import Cost
from llminfer.core.pair_plot import pair_times
from llminfer.core.plots import alt_text, data_table
from llminfer.core.timing import Measurement, Timing

ALT = "Times of two pairs on this machine, in NumPy and in torch, and bounds of two devices"


def a_measurement(pair="basics.rmsnorm", roof_seconds=1e-3):
    timings = (Timing("reference", 4e-3), Timing("baseline", 2e-3), Timing("kernel", None, note="interpreted"))
    predictions = {"H100 SXM": 2e-6, "RTX 4070": 9e-6}
    return Measurement(pair, "float32", "x 4x8", "a CPU", Cost(1, 1, 1), timings, roof_seconds, predictions)


def marks(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_every_time_stands_in_the_table_and_no_other():
    rows = data_table(pair_times([a_measurement()], alt=ALT)).rows
    assert [row[2:] for row in rows] == [
        ("NumPy, measured", 4e-3),
        ("torch, measured", 2e-3),
        ("bound of this machine", 1e-3),
        ("bound on H100 SXM", 2e-6),
        ("bound on RTX 4070", 9e-6),
    ]


def test_a_kernel_that_was_timed_is_a_measurement():
    timed = replace(a_measurement(), timings=(Timing("kernel", 3e-6), Timing("cuda_c", 4e-6)))
    assert [row[2] for row in data_table(pair_times([timed], alt=ALT)).rows][:2] == [
        "kernel, measured",
        "cuda_c, measured",
    ]


def test_bounds_are_hollow_and_measurements_filled():
    drawn = marks(pair_times([a_measurement()], alt=ALT))
    assert drawn["bound on H100 SXM"].get_markerfacecolor() == "white"
    assert drawn["NumPy, measured"].get_markerfacecolor() != "white"


def test_kinds_differ_in_shape_too():
    drawn = marks(pair_times([a_measurement()], alt=ALT))
    assert len({line.get_marker() for line in drawn.values()}) == len(drawn) == 5


def test_a_kind_stands_in_the_legend_once():
    axes = pair_times([a_measurement(), a_measurement("basics.rope")], alt=ALT)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert sorted(labels) == sorted(set(labels))
    assert len(labels) == 5


def test_without_a_roof_no_bound_of_this_machine_is_drawn():
    rows = data_table(pair_times([a_measurement(roof_seconds=None)], alt=ALT)).rows
    assert "bound of this machine" not in [row[2] for row in rows]


def test_all_marks_lie_inside():
    axes = pair_times([a_measurement()], alt=ALT)
    low, high = axes.get_xlim()
    assert low < 2e-6 and 4e-3 < high


def test_the_unit_is_that_of_the_middle():
    axes = pair_times([a_measurement()], alt=ALT)  # from 2 µs to 4 ms
    assert axes.get_xlabel() == "time (µs), logarithmic"
    assert axes.xaxis.get_major_formatter()(1e-3) == "1000"


def test_words_are_demanded_and_kept():
    assert alt_text(pair_times([a_measurement()], alt=ALT)) == ALT
    with pytest.raises(ValueError, match="alt must say"):
        pair_times([a_measurement()], alt="times")


def test_nothing_to_draw_is_said():
    with pytest.raises(ValueError, match="measurements is empty"):
        pair_times([], alt=ALT)
