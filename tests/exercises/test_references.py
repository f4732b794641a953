"""References of the judge against what their authors did not write: the library, scipy, and identities."""

import numpy as np
import pytest
from scipy import stats

from llminfer.basics import (
    AttentionSpec,
    Device,
    ModelConfig,
    MoeSpec,
    apply_top_p,
    attend,
    critical_batch,
    decode,
    parameter_count,
    rope,
    rope_frequencies,
    softmax,
    step_costs,
)
from llminfer.basics.config import RopeSpec
from llminfer.basics.generation import generate
from llminfer.grading.spec import Case, all_exercises

BY_NAME = {exercise.name: exercise for exercise in all_exercises("3.1")}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def reference(name):
    return BY_NAME[name].judge_side.reference


def test_softmax_is_the_librarys(rng):
    x = 1e4 * rng.normal(size=(3, 2, 7))
    np.testing.assert_allclose(reference("stable_softmax")(x), softmax(x), rtol=1e-12)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rope_is_the_librarys(rng, interleaved):
    x, positions = rng.normal(size=(4, 3, 10)), rng.integers(0, 2_000_000, size=4)
    expected = rope(x, positions, rope_frequencies(RopeSpec(theta=500_000.0), 10), interleaved)
    np.testing.assert_allclose(reference("rope_both")(x, positions, 500_000.0, interleaved), expected, atol=1e-9)


class VotingModel:
    """The toy model behind the library's door: hidden states are scores, and the head passes them on."""

    def __init__(self, votes, context, eos_ids):
        V = len(votes)
        self.votes = votes
        self.config = ModelConfig("votes", 1, V, 1, 1, V + V % 2, 1, V, context, eos_ids=tuple(eos_ids))

    def hidden(self, tokens, positions, view):
        scores = np.zeros((len(tokens), len(self.votes)))
        for t in range(len(tokens)):
            scores[t] = sum(self.votes[tokens[s]] * 0.5 ** (t - s) for s in range(t + 1))
        return scores

    def head(self, hidden):
        return hidden


def test_generation_is_the_librarys(rng):
    for _ in range(20):
        votes, prompt = rng.integers(0, 1000, size=(6, 6)), rng.integers(0, 6, size=3).tolist()
        model = VotingModel(votes, context=12, eos_ids=[2])
        assert reference("generation_loop")(votes, prompt, 20, 12, [2]) == generate(model, prompt, 20)


def test_top_p_at_temperature_1_is_the_librarys(rng):
    counts = np.sort(rng.choice(np.arange(1, 200), size=(6, 9), replace=False), axis=-1)  # no ties
    counts[:, -1] += 1024 - counts.sum(axis=-1)
    rows = rng.permuted(counts, axis=-1) / 1024
    for p in (0.3001, 0.5001, 0.9001):
        expected = softmax(apply_top_p(np.log(rows), p))
        np.testing.assert_allclose(reference("top_p")(rows, p, 1.0), expected, rtol=1e-12)


def test_attention_without_slopes_is_the_librarys(rng):
    q, k, v = rng.normal(size=(3, 6, 4)), rng.normal(size=(9, 2, 4)), rng.normal(size=(9, 2, 4))
    distance = np.arange(6, 9)[:, None] - np.arange(9)
    visible = (distance >= 0) & ((distance < 4) | (np.arange(9) < 2))
    found = reference("grouped_attention_twist")(q, k, v, np.zeros(6), 4, 2)
    np.testing.assert_allclose(found, attend(q, k, v, AttentionSpec(2, 4, 4, 0.5), visible), rtol=1e-12)


HERON = {
    "layers": 6,
    "width": 40,
    "heads": 6,
    "kv_heads": 2,
    "head_width": 8,
    "experts": 5,
    "chosen": 2,
    "expert_width": 12,
    "vocabulary": 70,
}


def plain_heron(window=None):
    """The nearest that the library has: keys and values in every layer, no gates, no anchors."""
    h = HERON
    sizes = (h["layers"], h["width"], h["heads"], h["kv_heads"], h["head_width"], h["expert_width"], h["vocabulary"])
    moe = MoeSpec(h["experts"], h["chosen"], h["expert_width"])
    return ModelConfig("heron", *sizes, 512, tied=True, moe=moe, windows=(window,) * h["layers"] if window else ())


def test_parameters_differ_from_the_librarys_by_gates_and_shared_keys():
    found, library = reference("parameter_count")(HERON), parameter_count(plain_heron())
    gates = 6 * 40 * 6
    shared = 3 * 2 * 40 * 2 * 8  # keys and values of every second layer
    assert found["attention"] == library.attention + gates - shared
    assert found["total"] == library.total + gates - shared
    assert found["active"] == library.active + gates - shared


def test_decode_costs_differ_from_the_librarys_by_gates_and_shared_keys():
    config = {key: size for key, size in HERON.items() if key != "chosen"} | {"window": 16, "anchors": 0}
    contexts, B = [3, 15, 16, 40], 4
    chosen = np.tile(np.arange(2), (6, B, 1))  # all tokens at the same two experts
    found = reference("decode_step_cost")(config, np.array(contexts), chosen, 16.0, 2.0)
    one = [step_costs(plain_heron(window=16), decode(context)) for context in contexts]
    matrices, experts = ("qkv", "output", "router", "head", "norms", "embedding"), ("experts.gate_up", "experts.down")
    gates, shared = 6 * 40 * 6, 3 * 2 * 40 * 2 * 8
    assert found["flops"] == sum(c.flops for costs in one for c in costs.values()) + 2 * B * (gates - shared)
    weights = sum(one[0][part].read_bytes for part in (*matrices, *experts)) + (B - 1) * 40 * 2 + 2 * (gates - shared)
    assert found["read_bytes"] == pytest.approx(weights + sum(costs["attention"].read_bytes for costs in one))
    assert found["write_bytes"] == sum(costs["attention"].write_bytes for costs in one) / 2


def test_ridges_and_critical_batches_are_the_librarys(rng):
    side = BY_NAME["ridge_points"].judge_side
    drawn = side.draw(rng)
    answers = side.reference(drawn)
    A, B, C = (drawn[name] for name in "ABC")
    rates = [A["sparse_tflops"] / 2, B["dense_tflops"], C["units"] * C["ghz"] * C["flops_per_clock"] / 1e3]
    speeds = [A["bandwidth_gb_s"], B["bus_bits"] * B["gigatransfers"] / 8, C["stacks"] * C["gb_s_per_stack"]]
    devices = [
        Device("made up", {"bfloat16": rate * 1e12}, 1e9, speed * 1e9, "drawn")
        for rate, speed in zip(rates, speeds, strict=True)
    ]
    assert answers["ridges"] == pytest.approx([device.ridge() for device in devices])
    stored = drawn["weight_bits"] / 8
    assert answers["critical_batches"] == pytest.approx([critical_batch(device, stored) for device in devices])


def gumbel_case(logits, count, seed=1):
    return Case({"logits": np.array(logits), "count": count, "draws": 20_000, "seed": seed})


def test_gumbel_law_is_softmax_and_then_softmax_of_the_rest(rng):
    logits = rng.normal(size=5)
    law = reference("gumbel_sampling")(logits, 2, 20_000, 1)
    np.testing.assert_allclose(law.sum(axis=1), softmax(logits), rtol=1e-12)
    rest = np.delete(logits, 3)
    np.testing.assert_allclose(np.delete(law[3], 3), softmax(logits)[3] * softmax(rest), rtol=1e-12)
    assert law.sum() == pytest.approx(1)


@pytest.mark.parametrize("cells", [2, 3, 6, 20, 120])
def test_gumbel_limit_is_beyond_one_in_a_billion(cells):
    chi_square = BY_NAME["gumbel_sampling"].judge_side.accept.__globals__["_chi_square"]
    expected = np.full(cells, 1000.0)
    surprise, limit = chi_square(expected + 10, expected)
    assert surprise == pytest.approx(cells * 0.1)  # (10 too many)² of 1000, in every cell
    assert 1e-15 < stats.chi2.sf(limit, cells - 1) < 1e-9


def test_gumbel_accepts_right_samples_and_no_slightly_wrong_ones(rng):
    side = BY_NAME["gumbel_sampling"].judge_side
    logits = [1.0, -1.0, 0.5, 2.0, 0.0, -4.0]
    law = side.reference(np.array(logits), 1, 20_000, 1)
    wrong = softmax(np.array(logits) * 0.9)
    for _ in range(50):
        assert side.accept(gumbel_case(logits, 1), rng.choice(6, size=(20_000, 1), p=law), law) is None
        assert side.accept(gumbel_case(logits, 1), rng.choice(6, size=(20_000, 1), p=wrong), law) is not None
