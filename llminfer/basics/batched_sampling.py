"""A token for each row of a batch, where every row has its own temperature, truncations, penalties and noise.

The small functions of `penalties`, `truncations` and `sampling`, in the order of `logit_processors`. Bias and bans are
left to masks that have been applied before.
"""

import numpy as np
from jaxtyping import Float, Int

from llminfer.basics.penalties import apply_frequency_penalty, apply_presence_penalty, apply_repetition_penalty
from llminfer.basics.sampling import apply_temperature, sample
from llminfer.basics.truncations import apply_min_p, apply_top_k, apply_top_p
from llminfer.core.cost import Cost
from llminfer.core.philox import token_uniform


def sample_tokens(
    logits: Float[np.ndarray, "R V"],
    temperature: Float[np.ndarray, "R"],
    top_k: Int[np.ndarray, "R"],
    top_p: Float[np.ndarray, "R"],
    min_p: Float[np.ndarray, "R"],
    noise_key: Int[np.ndarray, "R 3"],
    occurred: Int[np.ndarray, "R V"] | None = None,
    penalties: Float[np.ndarray, "R 3"] | None = None,
) -> Int[np.ndarray, "R"]:
    """Draw the next token of every row; rows of temperature 0 take their largest logit.

    noise_key: seed, sequence and position. A top_k of V or more, a top_p of 1 and a min_p of 0 are off.
    occurred:  what `occurrences` gives for each row's text, with penalties: repetition, frequency, presence.
    Raises ValueError for parameters outside their ranges, for a row without a finite largest logit, and for penalties
    without occurrences or the other way round. A kernel cannot raise: there such a row's token is -1.
    Book section 3.1.6.
    """
    check_penalties(occurred is None, penalties is None)
    tokens = np.empty(len(logits), np.int64)
    for row, x in enumerate(logits):  # x [V]
        if occurred is not None:
            repetition, frequency, presence = penalties[row]
            x = apply_repetition_penalty(x, occurred[row], repetition)
            x = apply_frequency_penalty(x, occurred[row], frequency)
            x = apply_presence_penalty(x, occurred[row], presence)
        if temperature[row] == 0:
            tokens[row] = sample(x, 0)
            continue
        x = apply_temperature(x, temperature[row])
        x = apply_top_k(x, int(top_k[row]))
        x = apply_top_p(x, top_p[row])
        x = apply_min_p(x, min_p[row])
        seed, sequence, position = noise_key[row].tolist()
        tokens[row] = sample(x, 1, token_uniform(seed, sequence, position, len(x)))
    return tokens


def sample_tokens_cost(
    logits: Float[np.ndarray, "R V"],
    temperature: Float[np.ndarray, "R"],
    top_k: Int[np.ndarray, "R"],
    top_p: Float[np.ndarray, "R"],
    min_p: Float[np.ndarray, "R"],
    noise_key: Int[np.ndarray, "R 3"],
    occurred: Int[np.ndarray, "R V"] | None = None,
    penalties: Float[np.ndarray, "R 3"] | None = None,
) -> Cost:
    """Per logit: maximum, scale, exp, sum, two logarithms, add and compare, 8 FLOPs, and 5 of penalties. A token a row.

    How often a row is compared with a pivot to find its thresholds is the algorithm's affair, not the least work.
    """
    settings = [temperature, top_k, top_p, min_p, noise_key]
    settings += [] if occurred is None else [occurred, penalties]
    return Cost(
        flops=(8 if occurred is None else 13) * logits.size,
        read_bytes=logits.nbytes + sum(array.nbytes for array in settings),
        write_bytes=8 * len(logits),
    )


def check_penalties(no_occurrences: bool, no_penalties: bool) -> None:
    """Raise ValueError if one is missing of two that need each other."""
    if no_occurrences != no_penalties:
        missing, given = ("occurred", "penalties") if no_occurrences else ("penalties", "occurred")
        raise ValueError(f"{missing} is missing, and {given} means nothing without it; give both or none")
