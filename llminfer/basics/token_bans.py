"""Bias and bans: logits raised, lowered or masked because of what the request says, not of what the model thinks."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Float


def apply_logit_bias(logits: Float[np.ndarray, "V"], bias: Mapping[int, float]) -> Float[np.ndarray, "V"]:
    """Add to each token's logit what `bias` has for it.

    Source: OpenAI API reference, logit_bias. Book section 3.1.6.
    """
    biased = logits.copy()
    for token, amount in bias.items():
        biased[token] += amount
    return biased


def forbid(logits: Float[np.ndarray, "V"], tokens: Iterable[int]) -> Float[np.ndarray, "V"]:
    """Mask these tokens: their logit becomes -inf, their probability 0. Book section 3.1.6."""
    masked = logits.copy()
    masked[list(tokens)] = -np.inf
    return masked


def bad_endings(tokens: Sequence[int], bad_words: Iterable[Sequence[int]]) -> list[int]:
    """The tokens that would complete one of `bad_words` if they came next after `tokens`, the prompt among them.

    A word of one token is always about to be completed. Book section 3.1.6.
    """
    tokens = list(tokens)
    endings = []
    for *beginning, last in bad_words:
        if tokens[len(tokens) - len(beginning) :] == beginning:
            endings.append(last)
    return endings
