"""Bias and bans against transformers'."""

import numpy as np
import pytest
import torch
from transformers.generation import logits_process as theirs

from llminfer.basics.token_bans import apply_logit_bias, bad_endings, forbid

LOGITS = np.where(np.arange(60) % 9 == 0, -np.inf, np.random.default_rng(3).standard_normal(60))


def run(processor: theirs.LogitsProcessor, tokens: list[int]) -> np.ndarray:
    """What transformers' processor makes of LOGITS after some tokens."""
    return processor(torch.tensor([tokens]), torch.tensor(LOGITS)[None])[0].numpy()


BAD = ((7,), (3, 4), (1, 2, 3), (5, 5, 5, 5))


@pytest.mark.parametrize("tokens", [[0], [3], [1, 2], [9, 1, 2, 3], [5, 5], [5, 5, 5], [2, 5, 5, 5, 5]])
def test_bad_words_are_those_of_transformers(tokens):
    expected = run(theirs.NoBadWordsLogitsProcessor([list(word) for word in BAD]), tokens)
    np.testing.assert_array_equal(forbid(LOGITS, bad_endings(tokens, BAD)), expected)


def test_a_text_shorter_than_the_beginning_of_a_word_cannot_complete_it():
    assert bad_endings([2], ((1, 2, 3), (2, 2, 4))) == []
    assert bad_endings([], ((1, 2), (8,))) == [8]


def test_a_bias_is_that_of_transformers():
    bias = {0: 5.0, 3: -100.0, 8: 0.5, 50: -np.inf}
    processor = theirs.SequenceBiasLogitsProcessor([[[token], amount] for token, amount in bias.items()])
    np.testing.assert_array_equal(apply_logit_bias(LOGITS, bias), run(processor, [0]))


def test_logits_are_left_as_they_were():
    before = LOGITS.copy()
    apply_logit_bias(LOGITS, {1: 1.0})
    forbid(LOGITS, [1])
    np.testing.assert_array_equal(LOGITS, before)
