"""The benchmark's rows, units and words, on `tiny` and on invented times: nothing depends on how fast anything is."""

import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from jaxtyping import install_import_hook
from rich.console import Console

from llminfer.basics.checkpoints import load_model
from llminfer.basics.steps import step_costs
from llminfer.basics.transformer import Transformer
from llminfer.basics.weights import DenseWeight
from llminfer.core.cost import Cost

TOOLS = Path(__file__).parents[2] / "tools"

pytestmark = pytest.mark.filterwarnings("ignore:`past_key_values`:FutureWarning")


@pytest.fixture(scope="module")
def tool():
    with (
        pytest.MonkeyPatch.context() as patch,
        install_import_hook(["bench_sides", "bench_model"], "beartype.with_numeric_tower"),
    ):
        patch.syspath_prepend(str(TOOLS))
        import bench_model

        yield bench_model


@pytest.fixture(scope="module")
def tiny() -> Transformer:
    return load_model("tiny")


@pytest.fixture
def theirs(tool, tiny):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    side = tool.other_side(tiny, 1, pytest.fail)
    assert side is not None
    return side


SECONDS = {
    "numpy": [0.01, 0.02, 0.04],
    "transformers": [0.05, 0.05, 0.04],
    "products": [0.011] * 3,
    "gemv": [0.008, 0.008, 0.001],
    "gemm": [0.020, 0.020, 0.001],
}


def result(tool, **changes):
    """20 ms a step of 16 tokens; memory allows 8 ms, arithmetic 10 ms; transformers takes 50 ms."""
    usual = {
        "case": tool.Case(16, 512),
        "cost": Cost(flops=1e9, read_bytes=0.7e8, write_bytes=0.1e8),
        "seconds": SECONDS,
        "gemm_flops": 2e9,
        "share": 1.0,
        "difference": 2e-6,
    }
    return tool.Result(**usual | changes)


def printed(renderable) -> str:
    console = Console(width=150)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_the_roof_is_the_longer_of_moving_and_computing(tool):
    assert result(tool).roof_s == pytest.approx(0.010)
    assert result(tool, gemm_flops=2e10).roof_s == pytest.approx(0.008)


def test_roofs_are_rates_per_second(tool):
    assert result(tool).bandwidth == pytest.approx(1e10)
    assert result(tool).rate == pytest.approx(1e11)


def test_shares_are_of_the_median(tool):
    assert result(tool).share_of_roof == pytest.approx(0.5)


def test_a_row_has_milliseconds_tokens_per_second_and_shares(tool):
    [row] = [line for line in printed(tool.table([result(tool)])).splitlines() if "decode 16 x 512" in line]
    assert row.split() == ["decode", "16", "x", "512", "20.0", "(10.0-40.0)", "800", "1,600", "50%", "11.0",
                           "50.0", "(40.0-50.0)", "2.50"]  # fmt: skip


def test_without_transformers_its_columns_are_empty(tool):
    alone = result(tool, seconds={n: t for n, t in SECONDS.items() if n != "transformers"}, difference=None)
    [row] = [line for line in printed(tool.table([alone])).splitlines() if "decode 16 x 512" in line]
    assert row.split()[-1] == "11.0"
    assert not any("agree" in note for note in tool.notes(load_model("tiny").config, [alone]))


def test_a_disturbed_run_says_so(tool, tiny):
    quiet, busy = result(tool), result(tool, share=0.6)
    assert not any("busy" in note for note in tool.notes(tiny.config, [quiet]))
    assert any("had 60% of a core" in note for note in tool.notes(tiny.config, [quiet, busy]))


def test_contexts_are_as_long_as_the_model_allows(tool, tiny):
    names = ["decode 1 x 16", "decode 1 x 512", "decode 16 x 16", "decode 16 x 512", "prefill 512"]
    assert [case.name for case in tool.cases(replace(tiny.config, context=8192))] == names
    assert all(case.room <= tiny.config.context for case in tool.cases(tiny.config))


@pytest.mark.parametrize("place", [0, 2, 4])
def test_the_products_alone_are_those_of_the_step(tool, tiny, place, monkeypatch):
    case = tool.cases(tiny.config)[place]
    multiply, flops = DenseWeight.__rmatmul__, Counter()

    def counted(weight, x):
        flops[weight.shape] += 2 * len(x) * weight.shape[0] * weight.shape[1]
        return multiply(weight, x)

    monkeypatch.setattr(DenseWeight, "__rmatmul__", counted)
    tool.products(tiny, case)()
    costs = step_costs(tiny.config, case.segments, weights="float32", kv="float32")
    assert sum(flops.values()) == sum(cost.flops for part, cost in costs.items() if part != "attention")


def test_a_step_gives_logits_for_what_is_sampled_and_can_be_taken_again(tool, tiny):
    side = tool.NumPySide(tiny)
    stored = side.store(40)
    for case, rows in ((tool.Case(3, 40), 3), (tool.Case(1, 0, 24), 1)):
        step = side.open(case, stored)
        assert [step().shape for _ in range(1 + case.steps)] == [(rows, tiny.config.vocabulary)] * (1 + case.steps)


def test_measuring_gives_times_of_every_side_and_plain_json(tool, tiny, monkeypatch):
    monkeypatch.setattr(tool, "cases", lambda config: [tool.Case(2, 8), tool.Case(1, 0, 8)])
    told = []
    results = tool.bench(tiny, None, seconds=0.0, tell=told.append)
    assert told == [found.case.name for found in results] == ["decode 2 x 8", "prefill 8"]
    for found in results:
        assert set(found.seconds) == set(SECONDS) - {"transformers"}
        assert all(len(times) == tool.ROUNDS * found.case.steps for times in found.seconds.values())
        assert 0 < found.share <= 1.01
        assert found.difference is None
        assert json.loads(json.dumps(found.as_dict()))["tokens"] == found.case.tokens


@pytest.mark.slow
def test_transformers_computes_the_same(tool, tiny, theirs):
    sides = {"numpy": tool.NumPySide(tiny), "transformers": theirs}
    stored = sides["numpy"].store(40)
    for case in (tool.Case(1, 0, 40), tool.Case(1, 40), tool.Case(3, 17)):
        assert tool.compare(sides, case, stored) < 1e-5


@pytest.mark.slow
def test_times_of_different_computations_are_not_compared(tool, tiny, theirs):
    weights = {name: getattr(weight, "array", weight) for name, weight in tiny.weights.items()}
    other = Transformer(tiny.config, weights | {"final_norm": 2 * weights["final_norm"]})
    sides = {"numpy": tool.NumPySide(other), "transformers": theirs}
    with pytest.raises(ValueError, match="decode 1 x 8: the logits of numpy and transformers differ by"):
        tool.compare(sides, tool.Case(1, 8), sides["numpy"].store(8))


@pytest.mark.slow
def test_a_model_that_is_no_llama_runs_alone(tool, theirs, tiny):
    gemma = Transformer(replace(tiny.config, activation="geglu"), tiny.weights)
    told = []
    assert tool.other_side(gemma, 1, told.append) is None
    assert "not a plain Llama" in told[0]


def test_without_torch_numpy_runs_alone(tool, tiny, monkeypatch):
    monkeypatch.delitem(sys.modules, "bench_transformers", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    told = []
    assert tool.other_side(tiny, 1, told.append) is None
    assert "torch is not installed" in told[0]


def test_without_smollm2_the_bundled_model_runs_and_the_remedy_is_said(tool, tmp_path, monkeypatch):
    monkeypatch.setenv("LLMINFER_CACHE", str(tmp_path))
    told = []
    assert tool.chosen(None, told.append) == "tiny"
    assert "llminfer fetch smollm2" in told[0]
    assert tool.chosen("some/folder", pytest.fail) == "some/folder"


def test_equal_ids_for_all_sides(tool, tiny):
    case = tool.Case(16, 512)
    np.testing.assert_array_equal(case.ids(tiny.config), case.ids(tiny.config))
    assert case.ids(tiny.config).shape == (16,)
