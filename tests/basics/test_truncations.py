"""Truncations against transformers', on logits with ties and infinities, and by what must hold of all of them."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from transformers.generation import logits_process as theirs

from llminfer.basics.probabilities import softmax
from llminfer.basics.truncations import apply_min_p, apply_top_k, apply_top_p

GRID = st.sampled_from([-np.inf, *np.arange(-6, 6.5, 0.5).tolist()])  # a coarse grid, so that ties are common
ROWS = hnp.arrays(np.float64, st.integers(1, 30), elements=GRID).filter(lambda row: row.max() > -np.inf)
TRUNCATIONS = {
    "top_k": st.builds(lambda k: lambda x: apply_top_k(x, k), st.integers(1, 32)),
    "top_p": st.builds(lambda p: lambda x: apply_top_p(x, p), st.floats(1e-6, 1)),
    "min_p": st.builds(lambda p: lambda x: apply_min_p(x, p), st.floats(0, 1)),
}


def random_logits(ties: bool = False) -> np.ndarray:
    """Normal logits [5, 60], every ninth masked, and where `ties` on a grid of halves."""
    logits = 3 * np.random.default_rng(3).standard_normal((5, 60))
    logits = np.round(2 * logits) / 2 if ties else logits
    logits[:, ::9] = -np.inf
    return logits


def run(processor: theirs.LogitsProcessor, logits: np.ndarray) -> np.ndarray:
    return processor(torch.zeros(len(logits), 1, dtype=torch.long), torch.tensor(logits)).numpy()


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [1, 2, 7, 53, 60, 100])
def test_top_k_is_that_of_transformers_ties_included(k, ties):
    logits = random_logits(ties=ties)
    np.testing.assert_array_equal(apply_top_k(logits, k), run(theirs.TopKLogitsWarper(k), logits))


def test_top_k_keeps_all_that_equal_the_kth():
    kept = apply_top_k(np.array([1.0, 3.0, 2.0, 2.0, 2.0, 0.0]), 2)
    assert kept.tolist() == [-np.inf, 3, 2, 2, 2, -np.inf]


@pytest.mark.parametrize("p", [1e-9, 0.1, 0.5, 0.9, 0.999, 1.0])
def test_top_p_is_that_of_transformers(p):
    logits = random_logits()
    np.testing.assert_array_equal(apply_top_p(logits, p), run(theirs.TopPLogitsWarper(p), logits))


@pytest.mark.parametrize(("p", "kept"), [(0.49, 1), (0.51, 2), (0.74, 2), (0.76, 3), (0.99, 4)])
def test_top_p_keeps_the_token_that_crosses_p(p, kept):
    logits = np.log([0.5, 0.25, 0.125, 0.125 - 1e-9, 1e-9])
    assert np.isfinite(apply_top_p(logits, p)).tolist() == [True] * kept + [False] * (5 - kept)


def test_top_p_stops_at_the_token_that_reaches_p_exactly():
    logits = np.log2([0.5, 0.25, 0.25]) * np.log(2)
    np.testing.assert_array_equal(softmax(logits), [0.5, 0.25, 0.25])
    assert np.isfinite(apply_top_p(logits, 0.5)).tolist() == [True, False, False]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_where_top_p_of_transformers_cuts_through_equals_ours_keeps_them_all(p):
    logits = random_logits(ties=True)
    kept, theirs_kept = apply_top_p(logits, p) > -np.inf, run(theirs.TopPLogitsWarper(p), logits) > -np.inf
    threshold = np.where(theirs_kept, logits, np.inf).min(axis=-1, keepdims=True)
    np.testing.assert_array_equal(kept, logits >= threshold)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("p", [0.0, 0.01, 0.3, 0.99])
def test_min_p_is_that_of_transformers(p, ties):
    logits = random_logits(ties=ties)
    np.testing.assert_array_equal(apply_min_p(logits, p), run(theirs.MinPLogitsWarper(p), logits))


def test_min_p_of_one_keeps_the_most_probable_and_its_equals():
    assert apply_min_p(np.array([0.1, 0.3, 0.3, 0.2]), 1.0).tolist() == [-np.inf, 0.3, 0.3, -np.inf]


@settings(deadline=None)
@given(logits=ROWS, data=st.data(), kind=st.sampled_from(sorted(TRUNCATIONS)))
def test_what_stays_is_unchanged_and_is_the_top_of_the_row(logits, data, kind):
    truncated = data.draw(TRUNCATIONS[kind])(logits)
    stays = truncated > -np.inf
    np.testing.assert_array_equal(truncated[stays], logits[stays])
    assert stays[logits == logits.max()].all()
    assert logits[stays].min() > np.max(logits[~stays], initial=-np.inf) or not np.isfinite(logits[~stays]).any()


@settings(deadline=None)
@given(logits=ROWS, data=st.data(), kind=st.sampled_from(sorted(TRUNCATIONS)))
def test_truncating_twice_by_count_or_ratio_changes_nothing(logits, data, kind):
    truncate = data.draw(TRUNCATIONS[kind])
    once = truncate(logits)
    if kind != "top_p":  # the nucleus of a nucleus may be smaller
        np.testing.assert_array_equal(truncate(once), once)


@settings(deadline=None)
@given(logits=ROWS, p=st.floats(1e-6, 1 - 1e-6))
def test_the_nucleus_is_the_smallest_top_that_reaches_p(logits, p):
    probability = softmax(logits)
    stays = apply_top_p(logits, p) > -np.inf
    lowest = logits[stays].min()
    assert probability[stays].sum() >= p - 1e-12
    assert probability[logits > lowest].sum() < p + 1e-12


@settings(deadline=None)
@given(logits=ROWS)
def test_all_tokens_and_all_probability_change_nothing(logits):
    with np.errstate(all="raise"):
        for same in (apply_top_k(logits, len(logits)), apply_top_p(logits, 1.0), apply_min_p(logits, 0.0)):
            np.testing.assert_array_equal(same, logits)


def test_a_top_p_of_one_keeps_tokens_whose_probability_rounds_away():
    logits = np.array([0.0, -50.0, -60.0])  # 1 + e^-50 is 1 in float64
    np.testing.assert_array_equal(apply_top_p(logits, 1.0), logits)


@pytest.mark.parametrize(
    ("truncate", "value", "complaint"),
    [
        (apply_top_k, 0, "top_k must be at least 1"),
        (apply_top_p, 0.0, "top_p must lie above 0 and at most at 1"),
        (apply_top_p, 1.1, "top_p must lie above 0 and at most at 1"),
        (apply_top_p, np.nan, "top_p must lie above 0 and at most at 1"),
        (apply_min_p, -0.1, r"min_p must lie in 0..1"),
        (apply_min_p, 1.1, r"min_p must lie in 0..1"),
    ],
)
def test_what_keeps_nothing_or_more_than_all_is_refused(truncate, value, complaint):
    with pytest.raises(ValueError, match=complaint):
        truncate(np.zeros(3), value)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    "truncate", [lambda x: apply_top_k(x, 2), lambda x: apply_top_p(x, 0.5), lambda x: apply_min_p(x, 0.5)]
)
def test_truncations_stay_in_the_dtype_they_are_given(truncate: Callable, dtype: type):
    assert truncate(np.arange(5, dtype=dtype)).dtype == dtype
