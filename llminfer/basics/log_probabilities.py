"""Log-probabilities of given tokens: of those that were drawn, or of a text that is to be scored."""

import numpy as np
from jaxtyping import Float, Int

from llminfer.basics.probabilities import log_softmax
from llminfer.core.cost import Cost


def log_softmax_gather(logits: Float[np.ndarray, "R V"], tokens: Int[np.ndarray, "R"]) -> Float[np.ndarray, "R"]:
    """log softmax(logits) of one token a row, as the model gives it: before any processor.

    One number of V is wanted, so a kernel writes only that: R numbers instead of R times V.
    Raises ValueError for a row that `log_softmax` refuses, and for a token outside 0..V-1. A kernel cannot raise: there
    such a row comes out as NaN. Book section 3.1.6.
    """
    check_tokens(tokens, logits.shape[1])
    return np.take_along_axis(log_softmax(logits), tokens[:, None], axis=1)[:, 0]  # [R, V] -> [R]


def log_softmax_gather_cost(logits: Float[np.ndarray, "R V"], tokens: Int[np.ndarray, "R"]) -> Cost:
    """Maximum, subtract, exp and sum: 4 FLOPs a logit. The logits are read once; a float32 a row is written."""
    return Cost(flops=4 * logits.size, read_bytes=logits.nbytes + tokens.nbytes, write_bytes=4 * len(tokens))


def check_tokens(tokens: Int[np.ndarray, "R"], vocabulary: int) -> None:
    """Raise ValueError if some of the tokens are none of this vocabulary."""
    strange = (tokens < 0) | (tokens >= vocabulary)
    if strange.any():
        row = int(strange.argmax())
        raise ValueError(f"tokens[{row}] is {tokens[row]}; the logits have the tokens 0..{vocabulary - 1}")
