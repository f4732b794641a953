"""What a measurement amounts to beside its cost and a roof."""

import json

import pytest

from llminfer.core.cost import Cost
from llminfer.core.hardware import DEVICES
from llminfer.core.timing import Measurement, Roof, Timing, bound_s

COST = Cost(flops=2e9, read_bytes=3e9, write_bytes=1e9)


def measured(seconds, roof_seconds=0.04):
    timings = (Timing("baseline", 0.05, 9), Timing("kernel", seconds, 9 if seconds else 0))
    return Measurement("test.idea", "float32", "x 1", "a machine", COST, timings, roof_seconds, {})


def test_the_bound_is_the_slower_of_traffic_and_arithmetic():
    assert bound_s(COST, Roof("memory bound", bandwidth=1e11, peak_flops=1e12), "float32") == 0.04
    assert bound_s(COST, Roof("compute bound", bandwidth=1e12, peak_flops=1e10), "float32") == 0.2


def test_a_device_of_the_table_is_a_roof():
    assert bound_s(COST, DEVICES["h100-sxm"], "bfloat16") == pytest.approx(4e9 / 3.35e12)


def test_a_pure_copy_needs_no_arithmetic_in_its_dtype():
    assert bound_s(Cost(0, 1e9, 1e9), DEVICES["h100-sxm"], "int64") == pytest.approx(2e9 / 3.35e12)


def test_a_device_without_arithmetic_in_a_dtype_has_no_bound_for_it():
    assert bound_s(COST, DEVICES["t4"], "bfloat16") is None


def test_rates_are_cost_over_time():
    result = measured(0.05)
    assert result.bytes_per_s("kernel") == 8e10
    assert result.flops_per_s("kernel") == 4e10
    assert result.share_of_roof("kernel") == pytest.approx(0.8)


def test_what_was_not_timed_has_no_rate():
    result = measured(None)
    assert result.bytes_per_s("kernel") is result.flops_per_s("kernel") is result.share_of_roof("kernel") is None


def test_without_a_roof_there_is_no_share_of_it():
    assert measured(0.05, roof_seconds=None).share_of_roof("kernel") is None


def test_a_point_above_the_roof_is_an_error():
    assert measured(0.041).require_below_roof().above_roof == ()
    assert measured(0.039).above_roof == ()  # within the margin of a clock
    with pytest.raises(ValueError, match=r"kernel 2\.00"):
        measured(0.02).require_below_roof()


def test_a_measurement_is_plain_data():
    data = json.loads(json.dumps(measured(0.02).as_dict(), allow_nan=False))
    assert data["above_roof"] == ["kernel"]
    assert data["timings"][0]["bytes_per_s"] == 8e10
