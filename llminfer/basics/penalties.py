"""Penalties: what has been said becomes less likely. Each takes logits and what was said, and gives new logits."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from llminfer.basics.sampling_params import check_repetition_penalty


def occurrences(prompt: Sequence[int], answer: Sequence[int], vocabulary: int) -> Int[np.ndarray, "V"]:
    """What the penalties need of a text: 0 for a token it does not have, else 1 + how often the answer has it.

    So a token that only the prompt has gets 1. Raises ValueError for an id outside the vocabulary. Book section 3.1.6.
    """
    for name, tokens in (("prompt", prompt), ("answer", answer)):
        if len(tokens) and not 0 <= min(tokens) <= max(tokens) < vocabulary:
            raise ValueError(f"{name} must hold tokens of 0..{vocabulary - 1}, got {min(tokens)}..{max(tokens)}")
    counts = np.bincount(np.array(answer, int), minlength=vocabulary)  # [V]
    seen = counts > 0
    seen[np.array(prompt, int)] = True
    return (seen + counts).astype(np.int32)


def apply_repetition_penalty(
    logits: Float[np.ndarray, "V"], occurred: Int[np.ndarray, "V"], penalty: float
) -> Float[np.ndarray, "V"]:
    """Divide the positive logits of tokens in prompt or answer by `penalty`, multiply the negative ones.

    Both lower a logit when the penalty is above 1; but a row of logits is only known up to a constant, and where its
    zero lies decides how much. Raises ValueError unless the penalty is positive.
    Source: Keskar et al. 2019 (CTRL), section 4.1. Book section 3.1.6.
    """
    check_repetition_penalty(penalty)
    lowered = np.where(logits > 0, logits / penalty, logits * penalty)
    return np.where(occurred > 0, lowered, logits)


def apply_frequency_penalty(
    logits: Float[np.ndarray, "V"], occurred: Int[np.ndarray, "V"], penalty: float
) -> Float[np.ndarray, "V"]:
    """Subtract `penalty` for each time that the answer has the token; the prompt does not count.

    Source: OpenAI API reference, frequency_penalty. Book section 3.1.6.
    """
    times = np.maximum(occurred - 1, 0)  # [V]
    return logits - (penalty * times).astype(logits.dtype)


def apply_presence_penalty(
    logits: Float[np.ndarray, "V"], occurred: Int[np.ndarray, "V"], penalty: float
) -> Float[np.ndarray, "V"]:
    """Subtract `penalty` once if the answer has the token; the prompt does not count.

    Source: OpenAI API reference, presence_penalty. Book section 3.1.6.
    """
    return np.where(occurred > 1, logits - np.asarray(penalty, logits.dtype), logits)
