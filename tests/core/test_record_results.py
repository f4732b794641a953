"""The tool that records a GPU run: what it keeps of checks and timings, and that it refuses to run without a GPU."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("llminfer.core.triton_environment", exc_type=ImportError)  # torch or triton may be missing

from llminfer.core.cost import Cost
from llminfer.core.parity import CheckResult, Trial, Verdict
from llminfer.core.timing import Measurement, Timing
from llminfer.core.triton_environment import INTERPRETED

TOOL = Path(__file__).parents[2] / "tools" / "record_results.py"
specification = importlib.util.spec_from_file_location("record_results", TOOL)
record_results = importlib.util.module_from_spec(specification)
specification.loader.exec_module(record_results)


def trial(implementation, dtype, verdict):
    return Trial(implementation, dtype, "odd", "x 1", 1.0, "contiguous", verdict)


CHECKED = CheckResult(
    "basics.idea",
    interpreted=False,
    trials=(
        trial("kernel", "float32", Verdict(0.1, 0.4)),
        trial("kernel", "float32", Verdict(0.3, 0.4)),
        trial("kernel", "float16", Verdict(float("inf"), failure="nan where")),
        trial("other", "float32", Verdict(0.2, 0.4)),
    ),
)


def points(dtype, roof_seconds=None):
    timings = tuple(Timing(name, 2.0, 20) for name in ("kernel", "other", "baseline"))
    measured = Measurement("basics.idea", dtype, "x 9", "a GPU", Cost(8, 2, 2), timings, roof_seconds, {})
    return {point.implementation: point for point in record_results.points_of(measured, CHECKED)}


def test_a_point_has_its_time_and_its_worst_error():
    found = points("float32")
    assert (found["kernel"].error, found["kernel"].allowed_error, found["kernel"].seconds) == (0.3, 0.4, 2.0)
    assert (found["baseline"].error, found["baseline"].seconds) == (None, 2.0)
    assert found["kernel"].flops_per_s == 4.0


def test_a_kernel_that_failed_its_check_has_no_time():
    found = points("float16")
    assert (found["kernel"].passed, found["kernel"].seconds, found["kernel"].error) == (False, None, None)
    assert found["baseline"].seconds == 2.0


def test_a_time_above_the_roof_is_not_kept(capsys):
    assert points("float32", roof_seconds=3.0)["kernel"].seconds is None
    assert "above the roof" in capsys.readouterr().out


def run_tool(*arguments):
    return subprocess.run([sys.executable, str(TOOL), *arguments], capture_output=True, text=True)


@pytest.mark.skipif(not INTERPRETED, reason="a GPU is there to be recorded")
def test_without_a_gpu_nothing_is_recorded(tmp_path):
    ran = run_tool("--out", str(tmp_path / "run.json"))
    assert ran.returncode == 1
    assert "no GPU" in ran.stderr
    assert not (tmp_path / "run.json").exists()


def test_folding_a_file_of_the_interpreter_fails_with_the_reason(tmp_path):
    path = tmp_path / "run.json"
    run = {
        "schema": 1,
        "device": "cpu",
        "driver": "-",
        "versions": {"triton": "0"},
        "date": "2001-01-01",
        "commit": "a",
    }
    path.write_text(json.dumps(run | {"interpreted": True, "points": []}))
    ran = run_tool("--fold", str(path))
    assert ran.returncode == 1
    assert "interpreter" in ran.stderr
