"""Timing a pair at hand: the interpreter is never timed. No test here depends on how long anything took."""

import weakref

import ml_dtypes  # noqa: F401  (teaches NumPy the name "bfloat16")
import numpy as np
import pytest

pytest.importorskip("llminfer.core.triton_environment", exc_type=ImportError)  # torch or triton may be missing

from llminfer.core import timing_torch
from llminfer.core.cost import Cost
from llminfer.core.pairs import Pair, measure
from llminfer.core.timing import Roof
from llminfer.core.triton_environment import DEVICE


def double(x):
    return x * 2


def interpreted(x):
    raise AssertionError("the kernel was run to be timed")


PAIR = Pair(
    "test.double",
    reference=double,
    kernel=interpreted,
    baseline=double,
    cases=lambda rng, size, dtype: {"x": rng.standard_normal((64, 64)).astype(dtype)},
    cost=lambda x: Cost(x.size, x.nbytes, x.nbytes),
    dtypes=("bfloat16", "float32"),
)


@pytest.mark.skipif(DEVICE != "cpu", reason="a GPU is there to be timed")
def test_without_a_gpu_reference_and_baseline_are_timed_and_the_kernel_is_predicted():
    result = measure(PAIR, predict_on=[Roof("one", 1e9, 1e12), Roof("two", 2e9, 1e12)])
    assert result.dtype == "float32"  # NumPy has no arithmetic in bfloat16
    assert result.seconds("reference") > 0 and result.seconds("baseline") > 0
    assert result.seconds("kernel") is None
    assert result.predictions == {"one": 2 * 64 * 64 * 4 / 1e9, "two": 2 * 64 * 64 * 4 / 2e9}


def test_an_impossible_roof_is_noticed():
    assert set(measure(PAIR, roof=Roof("slow", 1.0, 1.0)).above_roof) == {"reference", "baseline"} or DEVICE != "cpu"


def test_inputs_are_copied_until_a_round_of_calls_reads_more_than_the_cache():
    case, cost = {"x": np.zeros(1000, np.float32), "eps": 1e-5}, Cost(0, 4000, 4000)
    copies = timing_torch.rotated(case, cost, 10_000, np.copy)
    assert len(copies) == 3
    assert len({id(copy["x"]) for copy in copies}) == 3
    assert len(timing_torch.rotated(case, cost, 1, np.copy)) == 1
    assert len(timing_torch.rotated(case, cost, 10**9, np.copy)) == timing_torch.MAX_COPIES


def test_a_gather_is_copied_for_the_rows_it_reads_as_far_as_memory_allows(monkeypatch):
    table, cost = {"table": np.zeros(1000, np.float32)}, Cost(0, 40, 40)
    assert len(timing_torch.rotated(table, cost, 400, np.copy)) == 10
    monkeypatch.setattr(timing_torch, "MAX_COPIES_BYTES", 8000)
    assert len(timing_torch.rotated(table, cost, 400, np.copy)) == 2


def test_a_dtype_the_pair_does_not_have_is_refused():
    with pytest.raises(ValueError, match="float16"):
        measure(PAIR, "float16")


class FakeEvent:
    """An event that notes when it is recorded; a round takes 6 milliseconds."""

    log = []

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.log.append("event")

    def elapsed_time(self, end):
        return 6.0


def test_on_a_gpu_a_round_over_the_copies_lies_between_two_events(monkeypatch):
    log = FakeEvent.log = []
    monkeypatch.setattr(timing_torch.torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(timing_torch.torch.cuda, "synchronize", lambda: log.append("synchronize"))
    monkeypatch.setattr(timing_torch, "SPACER_BYTES", 64)
    seconds, calls = timing_torch.gpu_seconds(lambda x: log.append(x), [{"x": "first"}, {"x": "second"}])
    assert (seconds, calls) == (3e-3, 2 * timing_torch.GPU_ROUNDS)
    assert log[-5:] == ["event", "first", "second", "event", "synchronize"]


class Output:
    """Something that can be referred to weakly."""


def test_on_a_gpu_no_output_takes_the_memory_of_another_in_its_round(monkeypatch):
    monkeypatch.setattr(timing_torch.torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(timing_torch.torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(timing_torch, "SPACER_BYTES", 64)
    alive, most = weakref.WeakSet(), []

    def output(x):
        alive.add(made := Output())
        most.append(len(alive))
        return made

    timing_torch.gpu_seconds(output, [{"x": 0}] * 5)
    assert max(most) == 5
