"""Attention in the open against torch's, who sees whom, and the rules that every cache shares."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llminfer.basics.config import AttentionSpec, ModelConfig
from llminfer.basics.memory import (
    Cache,
    NoCache,
    View,
    ancestors,
    attend,
    attend_in_blocks,
    causal,
    check_kept,
    check_step,
)

torch = pytest.importorskip("torch")

CONFIG = ModelConfig("small", 2, 12, 6, 2, 4, 20, vocabulary=31, context=16, windows=(None, 3))
SPEC = AttentionSpec(kv_heads=2, key_width=8, value_width=5, scale=0.3)


def inputs(T: int, S: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """q [T, 6, 8], k [S, 2, 8], v [S, 2, 5] in float64."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((T, 6, 8)), rng.standard_normal((S, 2, 8)), rng.standard_normal((S, 2, 5))


def torch_attention(q, k, v, visible, scale) -> np.ndarray:
    """torch's own attention, which wants [heads, tokens, width]."""
    q, k, v = (torch.from_numpy(a).transpose(0, 1)[None] for a in (q, k, v))
    mask = torch.from_numpy(visible)
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale, enable_gqa=True)
    return out[0].transpose(0, 1).numpy()


@pytest.mark.parametrize(("T", "S"), [(1, 1), (7, 7), (1, 37), (5, 12)])
def test_attention_agrees_with_torch(T, S):
    q, k, v = inputs(T, S)
    visible = np.arange(S) <= np.arange(S - T, S)[:, None]
    np.testing.assert_allclose(
        attend(q, k, v, SPEC, visible), torch_attention(q, k, v, visible, SPEC.scale), rtol=1e-12, atol=1e-14
    )


def test_a_soft_cap_bends_scores_before_the_mask():
    q, k, v = inputs(4, 4)
    spec = AttentionSpec(kv_heads=2, key_width=8, value_width=5, scale=3.0, soft_cap=2.0)
    for token, head in np.ndindex(4, 6):
        scores = 2.0 * np.tanh(3.0 * k[: token + 1, head // 3] @ q[token, head] / 2.0)
        weights = np.exp(scores) / np.exp(scores).sum()
        expected = weights @ v[: token + 1, head // 3]
        np.testing.assert_allclose(attend(q, k, v, spec, causal(4))[token, head], expected, rtol=1e-12)


def test_a_sink_is_one_more_key_whose_value_is_zero():
    q, k, v = inputs(5, 5)
    sinks = np.random.default_rng(1).standard_normal(6)
    ours = attend(q, k, v, SPEC, causal(5), sinks)
    for head in range(
        6
    ):  # a key that scores exactly the sink: one more element, 1 in the query, sink / scale in the key
        q_more = np.concatenate([q[:, head], np.ones((5, 1))], axis=1)[:, None]
        k_more = np.zeros((6, 1, 9))
        k_more[:5, 0, :8], k_more[5, 0, 8] = k[:, head // 3], sinks[head] / SPEC.scale
        v_more = np.concatenate([v[:, head // 3], np.zeros((1, 5))])[:, None]
        visible = np.concatenate([causal(5), np.ones((5, 1), bool)], axis=1)
        expected = torch_attention(q_more, k_more, v_more, visible, SPEC.scale)
        np.testing.assert_allclose(ours[:, head : head + 1], expected, rtol=1e-12)


def test_a_sink_far_above_all_scores_takes_everything_without_overflow():
    q, k, v = inputs(3, 3)
    with np.errstate(over="raise", invalid="raise"):
        np.testing.assert_array_equal(attend(q, k, v, SPEC, causal(3), np.full(6, 1e4)), 0)


@pytest.mark.parametrize("window", [None, 7])
@pytest.mark.parametrize("stored", [0, 13])
def test_attention_in_blocks_is_the_same_attention(window, stored):
    q, k, v = inputs(30, stored + 30)
    sinks = np.linspace(-1, 1, 6)
    visible = causal(30, window, stored)
    expected = attend(q, k, v, SPEC, visible, sinks)
    np.testing.assert_allclose(attend_in_blocks(q, k, v, SPEC, visible, sinks, block=8), expected, rtol=1e-12)


@pytest.mark.parametrize("sinks", [None, np.linspace(-2, 2, 6)])
@pytest.mark.parametrize("soft_cap", [None, 1.5])
def test_the_torch_form_is_the_same_attention(sinks, soft_cap):
    from llminfer.basics import memory_torch

    q, k, v = inputs(4, 9)
    spec = AttentionSpec(kv_heads=2, key_width=8, value_width=5, scale=0.7, soft_cap=soft_cap)
    visible = np.arange(9) <= np.arange(5, 9)[:, None]
    tensors = [None if a is None else torch.from_numpy(a) for a in (q, k, v, visible, sinks)]
    theirs = memory_torch.attend(*tensors[:3], spec, *tensors[3:])
    np.testing.assert_allclose(theirs.numpy(), attend(q, k, v, spec, visible, sinks), rtol=1e-12)


def test_attention_stays_in_float32():
    q, k, v = (a.astype(np.float32) for a in inputs(3, 3))
    capped = AttentionSpec(kv_heads=2, key_width=8, value_width=5, scale=0.3, soft_cap=2.0)
    assert attend(q, k, v, capped, causal(3), np.zeros(6, np.float32)).dtype == np.float32


def test_scores_too_large_for_exp_do_not_overflow():
    q, k, v = inputs(3, 3)
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(attend(1e3 * q, 1e3 * k, v, SPEC, causal(3))).all()


def test_causal_by_hand():
    assert causal(3).astype(int).tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert causal(4, window=2).astype(int).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]


@given(length=st.integers(1, 20), window=st.none() | st.integers(1, 25))
def test_a_tree_without_branches_is_a_chain(length, window):
    np.testing.assert_array_equal(ancestors(np.arange(length) - 1, window), causal(length, window))


def test_siblings_do_not_see_each_other():
    #  0 ── 1 ── 3
    #   └── 2 ── 4
    tree = ancestors(np.array([-1, 0, 0, 1, 2]))
    assert [np.flatnonzero(row).tolist() for row in tree] == [[0], [0, 1], [0, 2], [0, 1, 3], [0, 2, 4]]


def test_a_window_in_a_tree_counts_depth_not_places():
    windowed = ancestors(np.array([-1, 0, 0, 1, 2]), window=2)
    assert [np.flatnonzero(row).tolist() for row in windowed] == [[0], [0, 1], [0, 2], [1, 3], [2, 4]]


def step_inputs(T: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((T, 6, 4)), rng.standard_normal((T, 2, 4)), rng.standard_normal((T, 2, 4))


def test_no_cache_keeps_the_contracts():
    assert isinstance(NoCache(CONFIG), Cache)
    assert isinstance(NoCache(CONFIG).step([0], [1]), View)


@pytest.mark.parametrize("layer", [0, 1])
def test_sequences_of_one_step_do_not_see_each_other(layer):
    q, k, v = step_inputs(12)
    together = NoCache(CONFIG).step([3, 8, 5], [2, 6, 4]).attend(layer, q, k, v)
    for span in (slice(0, 2), slice(2, 8), slice(8, 12)):
        alone = NoCache(CONFIG).step([0], [span.stop - span.start]).attend(layer, q[span], k[span], v[span])
        np.testing.assert_allclose(together[span], alone, rtol=1e-12)


def test_the_window_is_that_of_the_layer():
    q, k, v = step_inputs(7)
    view = NoCache(CONFIG).step([0], [7])
    for layer, window in ((0, None), (1, 3)):
        expected = torch_attention(q, k, v, causal(7, window), 0.5)
        np.testing.assert_allclose(view.attend(layer, q, k, v), expected, rtol=1e-12)


def test_each_branch_of_a_tree_attends_as_if_it_were_alone():
    q, k, v = step_inputs(8)
    parents = np.array([-1, 0, 1, 1, 2, -1, 5, 5])  # two sequences: 0 1 (2 4 | 3), and 5 (6 | 7)
    tree = NoCache(CONFIG).step([0, 1], [5, 3], parents)
    outputs = [tree.attend(layer, q, k, v) for layer in (0, 1)]
    for path in ([0, 1, 2, 4], [0, 1, 3], [5, 6], [5, 7]):
        alone = NoCache(CONFIG).step([0], [len(path)])
        for layer in (0, 1):
            expected = alone.attend(layer, q[path], k[path], v[path])
            np.testing.assert_allclose(outputs[layer][path], expected, rtol=1e-12)


def test_nothing_is_stored():
    cache = NoCache(CONFIG)
    cache.step([4], [3]).commit()
    cache.free(4)
    assert cache.length(4) == 0


@pytest.mark.parametrize(
    ("sequences", "lengths", "parents", "message"),
    [
        ([], [], None, "a length for each sequence"),
        ([1, 2], [3], None, "got 1 for 2 sequences"),
        ([1, 1], [3, 3], None, "only once"),
        ([1, 2], [3, 0], None, "at least 1 token"),
        ([1], [3], [-1, 0], "each of 3 tokens"),
        ([1], [3], [-1, 1, 0], r"parents\[1\] is 1"),
        ([1, 2], [2, 2], [-1, 0, 1, 2], r"parents\[2\] is 1.*begins at 2"),
        ([1], [2], [-1, -2], r"parents\[1\] is -2"),
    ],
)
def test_a_step_that_cannot_be_is_refused(sequences, lengths, parents, message):
    with pytest.raises(ValueError, match=message):
        check_step(sequences, lengths, None if parents is None else np.array(parents))


@pytest.mark.parametrize("kept", [None, [], [0, 1, 2, 3, 4], [0], [0, 1, 3], [3, 4]])
def test_beginnings_of_sequences_may_stay(kept):
    check_kept(None if kept is None else np.array(kept, int), [3, 2], None)


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        ([1], "token 1 cannot be kept without its parent 0"),
        ([1, 0], "must ascend"),
        ([4, 5], r"within 0\.\.4"),
        ([-1, 0], "0"),
    ],
)
def test_a_gap_cannot_stay(kept, message):
    with pytest.raises(ValueError, match=message):
        check_kept(np.array(kept), [3, 2], None)


def test_a_path_of_a_tree_may_stay_and_a_broken_one_may_not():
    parents = np.array([-1, 0, 0, 1, 2])
    check_kept(np.array([0, 2, 4]), [5], parents)
    with pytest.raises(ValueError, match="token 4 cannot be kept without its parent 2"):
        check_kept(np.array([0, 1, 4]), [5], parents)


def test_new_tokens_see_what_is_stored_before_them():
    np.testing.assert_array_equal(causal(3, 4, stored=5), causal(8, 4)[5:])


def test_committing_a_gap_is_refused():
    with pytest.raises(ValueError, match="token 1 cannot be kept without its parent 0"):
        NoCache(CONFIG).step([0], [2]).commit(np.array([1]))


def test_a_committed_view_is_closed():
    view = NoCache(CONFIG).step([0], [2])
    view.commit(np.array([0]))
    with pytest.raises(ValueError, match="committed before"):
        view.commit()
    with pytest.raises(ValueError, match="committed"):
        view.attend(0, *step_inputs(2))


def test_attending_with_the_wrong_number_of_tokens_says_both_shapes():
    with pytest.raises(ValueError, match=r"q has shape \(3, 6, 4\).*'small'.*\(2, 6, 4\)"):
        NoCache(CONFIG).step([0], [2]).attend(0, *step_inputs(3))


def test_attending_with_too_many_key_heads_is_refused():
    q = step_inputs(2)[0]
    with pytest.raises(ValueError, match=r"k has shape \(2, 6, 4\)"):
        NoCache(CONFIG).step([0], [2]).attend(0, q, q, q)


def test_sinks_that_the_config_does_not_know_are_refused():
    with pytest.raises(ValueError, match="sinks are unknown in 'small', got 6"):
        NoCache(CONFIG).step([0], [2]).attend(0, *step_inputs(2), np.zeros(6))


def test_no_window_is_none_and_not_zero():
    for mask in (lambda: causal(3, 0), lambda: ancestors(np.array([-1, 0]), 0)):
        with pytest.raises(ValueError, match="at least 1 token, or None for no window, got 0"):
            mask()


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("dtype", [np.uint8, np.uint64])
def test_places_without_a_sign_must_ascend_too(dtype):
    with pytest.raises(ValueError, match="kept must ascend"):
        check_kept(np.array([2, 1, 0], dtype), [3], None)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("kept", [np.array([0.0, 1.0]), np.array([True, True, False])])
def test_places_are_integers_and_not_a_mask(kept):
    with pytest.raises(ValueError, match="kept must hold integers"):
        check_kept(kept, [3], None)
