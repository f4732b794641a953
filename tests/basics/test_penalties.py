"""Penalties against transformers', against the formula of the OpenAI API, and by identities."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.generation.logits_process import RepetitionPenaltyLogitsProcessor

from llminfer.basics.penalties import (
    apply_frequency_penalty,
    apply_presence_penalty,
    apply_repetition_penalty,
    occurrences,
)

V = 12
TEXTS = st.lists(st.integers(0, V - 1), max_size=20)
DYADIC = st.integers(-32, 32).map(lambda n: n / 16)  # their sums and products are exact
LOGITS = np.array([2.0, -1.0, 0.0, 0.5, -np.inf, 1.0, -3.0, 4.0, 0.25, -0.25, 8.0, -8.0])


def test_occurrences_tell_the_prompt_from_the_answer():
    assert occurrences([0, 0, 1], [1, 2, 2], 5).tolist() == [1, 2, 3, 0, 0]


def test_an_empty_text_has_no_occurrences():
    assert occurrences([], [], 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize(("prompt", "answer"), [([5], []), ([-1], [0]), ([0], [1, 5])])
def test_occurrences_of_what_is_no_token_are_refused(prompt, answer):
    with pytest.raises(ValueError, match=r"must hold tokens of 0..4"):
        occurrences(prompt, answer, 5)


@settings(deadline=None)
@given(prompt=TEXTS.filter(len), answer=TEXTS, penalty=st.floats(0.1, 10))
def test_the_repetition_penalty_is_that_of_transformers(prompt, answer, penalty):
    expected = RepetitionPenaltyLogitsProcessor(penalty)(torch.tensor([prompt + answer]), torch.tensor(LOGITS)[None])
    got = apply_repetition_penalty(LOGITS, occurrences(prompt, answer, V), penalty)
    np.testing.assert_array_equal(got, expected[0].numpy())


@settings(deadline=None)
@given(prompt=TEXTS, answer=TEXTS, frequency=DYADIC, presence=DYADIC)
def test_frequency_and_presence_are_the_published_formula(prompt, answer, frequency, presence):
    """mu[j] - c[j] * alpha_frequency - float(c[j] > 0) * alpha_presence, c counting the sampled tokens."""
    occurred = occurrences(prompt, answer, V)
    got = apply_presence_penalty(apply_frequency_penalty(LOGITS, occurred, frequency), occurred, presence)
    for token in range(V):
        count = answer.count(token)
        assert got[token] == LOGITS[token] - count * frequency - float(count > 0) * presence


@settings(deadline=None)
@given(prompt=TEXTS, answer=TEXTS)
def test_penalties_that_are_off_change_nothing(prompt, answer):
    occurred = occurrences(prompt, answer, V)
    np.testing.assert_array_equal(apply_repetition_penalty(LOGITS, occurred, 1.0), LOGITS)
    np.testing.assert_array_equal(apply_frequency_penalty(LOGITS, occurred, 0.0), LOGITS)
    np.testing.assert_array_equal(apply_presence_penalty(LOGITS, occurred, 0.0), LOGITS)


@settings(deadline=None)
@given(prompt=TEXTS, answer=TEXTS, penalty=st.floats(1, 10), amount=st.floats(0, 2))
def test_positive_penalties_never_raise_a_logit(prompt, answer, penalty, amount):
    occurred = occurrences(prompt, answer, V)
    assert (apply_repetition_penalty(LOGITS, occurred, penalty) <= LOGITS).all()
    assert (apply_frequency_penalty(LOGITS, occurred, amount) <= LOGITS).all()
    assert (apply_presence_penalty(LOGITS, occurred, amount) <= LOGITS).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_penalties_stay_in_the_dtype_they_are_given(dtype):
    logits, occurred = LOGITS.astype(dtype), occurrences([0], [1, 1], V)
    for apply in (apply_repetition_penalty, apply_frequency_penalty, apply_presence_penalty):
        assert apply(logits, occurred, 1.5).dtype == dtype


@pytest.mark.parametrize("penalty", [0.0, -1.0, np.nan, np.inf])
def test_a_repetition_penalty_must_be_positive(penalty):
    with pytest.raises(ValueError, match="repetition_penalty must be a finite number above 0"):
        apply_repetition_penalty(LOGITS, occurrences([], [], V), penalty)
