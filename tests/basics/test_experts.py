"""Routing by hand and by identity; whole models with experts are compared in test_families."""

from dataclasses import replace

import numpy as np
import pytest

from llminfer.basics.activations import swiglu
from llminfer.basics.config import MoeSpec
from llminfer.basics.experts import Experts, LoopExperts, route
from llminfer.basics.probabilities import softmax

SOFTMAX = MoeSpec(experts=6, top_k=2, expert_width=5)
D = 4


@pytest.fixture
def logits() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((9, 6))


@pytest.fixture
def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {
        "experts.gate_up": rng.standard_normal((6, D, 10)),
        "experts.down": rng.standard_normal((6, 5, D)),
        "experts.gate_up.bias": rng.standard_normal((6, 10)),
        "experts.down.bias": rng.standard_normal((6, D)),
        "router.bias": rng.standard_normal(6),
    }


def test_the_best_experts_are_chosen_best_first(logits):
    np.testing.assert_array_equal(route(logits, SOFTMAX).experts[:, 0], logits.argmax(axis=1))
    assert set(route(logits, SOFTMAX).experts[0]) == set(np.argsort(logits[0])[-2:])


def test_softmax_over_the_chosen_is_softmax_over_all_normalized(logits):
    over_chosen = route(logits, replace(SOFTMAX, scoring="softmax_top_k"))
    normalized = route(logits, SOFTMAX)
    np.testing.assert_array_equal(over_chosen.experts, normalized.experts)
    np.testing.assert_allclose(over_chosen.weights, normalized.weights, rtol=1e-12)


def test_weights_that_are_not_normalized_are_the_probabilities(logits):
    routing = route(logits, replace(SOFTMAX, normalize=False))
    np.testing.assert_array_equal(routing.weights, np.take_along_axis(softmax(logits), routing.experts, 1))


def test_the_routed_scale_multiplies_every_weight(logits):
    scaled = route(logits, replace(SOFTMAX, routed_scale=2.5))
    np.testing.assert_allclose(scaled.weights.sum(axis=1), 2.5, rtol=1e-12)


def test_a_sigmoid_bias_moves_the_choice_and_never_the_weight(logits):
    sigmoid = replace(SOFTMAX, scoring="sigmoid", normalize=False, router_bias=True)
    bias = np.array([0, 0, 0, 0, 0, 100.0])
    routing = route(logits, sigmoid, bias)
    assert (routing.experts[:, 0] == 5).all()
    np.testing.assert_allclose(routing.weights[:, 0], 1 / (1 + np.exp(-logits[:, 5])), rtol=1e-12)


def test_another_bias_is_part_of_the_logits(logits):
    spec, bias = replace(SOFTMAX, scoring="softmax_top_k", router_bias=True), np.linspace(-1, 1, 6)
    np.testing.assert_array_equal(route(logits, spec, bias).weights, route(logits + bias, spec).weights)


def test_sigmoid_of_a_very_small_logit_is_zero_without_a_warning():
    with np.errstate(all="raise", under="ignore"):
        routing = route(np.full((1, 6), -1e4, np.float32), replace(SOFTMAX, scoring="sigmoid", normalize=False))
    assert not routing.weights.any()


@pytest.mark.parametrize(("scoring", "chosen"), [("softmax", [0, 1]), ("sigmoid", [2, 3])])
def test_groups_are_ranked_by_their_best_expert_or_with_sigmoid_by_their_two_best(scoring, chosen):
    # of the groups (2, -9), (1.9, 1.9), (1, 1) the first has the best expert, the second the two best together
    logits = np.array([[2.0, -9.0, 1.9, 1.9, 1.0, 1.0]])
    one_group = replace(SOFTMAX, scoring=scoring, groups=3, top_groups=1)
    assert route(logits, one_group).experts.tolist() == [chosen]


def test_a_better_expert_outside_the_chosen_groups_is_passed_over():
    logits = np.array([[9.0, 0.0, 5.0, 5.0, 6.0, -9.0]])
    two_groups = replace(SOFTMAX, groups=3, top_groups=2, top_k=3)
    assert route(logits, two_groups).experts.tolist() == [[0, 4, 1]]  # not 2 and 3, though they score 5


def test_routing_stays_in_float32(logits):
    for scoring in ("softmax", "softmax_top_k", "sigmoid"):
        assert route(logits.astype(np.float32), replace(SOFTMAX, scoring=scoring)).weights.dtype == np.float32


def test_experts_add_up_what_every_expert_says_times_its_weight(logits, weights):
    h = np.random.default_rng(2).standard_normal((9, D))
    routing = route(logits, SOFTMAX, weights["router.bias"])
    expected = np.zeros((9, D))
    for token in range(9):
        for expert, share in zip(routing.experts[token], routing.weights[token], strict=True):
            gate_up = h[token] @ weights["experts.gate_up"][expert] + weights["experts.gate_up.bias"][expert]
            down = swiglu(gate_up) @ weights["experts.down"][expert] + weights["experts.down.bias"][expert]
            expected[token] += share * down
    experts = LoopExperts(SOFTMAX, weights, swiglu)
    assert isinstance(experts, Experts)
    np.testing.assert_allclose(experts(h, logits), expected, rtol=1e-12)


def test_a_token_gets_the_same_from_its_experts_in_any_company(logits, weights):
    h = np.random.default_rng(2).standard_normal((9, D))
    experts, order = LoopExperts(SOFTMAX, weights, swiglu), np.random.default_rng(3).permutation(9)
    np.testing.assert_allclose(experts(h[order], logits[order]), experts(h, logits)[order], rtol=1e-12)
    np.testing.assert_allclose(experts(h[:1], logits[:1]), experts(h, logits)[:1], rtol=1e-12)


def test_as_many_logits_as_experts(logits):
    with pytest.raises(ValueError, match="each of 6 experts, got 5"):
        route(logits[:, :5], SOFTMAX)
