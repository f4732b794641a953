"""Softmax: from scores to probabilities, over the vocabulary or over the context.

Both functions subtract the largest score first, so that nothing overflows. They compute in the dtype of `x`.
"""

import numpy as np
from jaxtyping import Float

from llminfer.core.cost import Cost


def softmax(x: Float[np.ndarray, "... V"]) -> Float[np.ndarray, "... V"]:
    """e^x of each row, divided by its sum. A score of -inf (masked) gets probability 0.

    Raises ValueError for a row without a finite maximum (all masked, or with a NaN or +inf): it has no softmax.
    A kernel cannot raise: there such a row comes out as NaN. Book section 3.1.2.
    """
    weights = np.exp(_below_peak(x))  # [T, V], the largest is 1
    return weights / np.sum(weights, axis=-1, keepdims=True)


def softmax_cost(x: Float[np.ndarray, "... V"]) -> Cost:
    """Maximum, subtract, exp, sum and divide: 5 FLOPs an element; read once and written once."""
    return Cost(flops=5 * x.size, read_bytes=x.nbytes, write_bytes=x.nbytes)


def log_softmax(x: Float[np.ndarray, "... V"]) -> Float[np.ndarray, "... V"]:
    """Logarithm of `softmax`, without the underflow of taking it afterwards. Raises as `softmax` does.

    Book section 3.1.2.
    """
    below_peak = _below_peak(x)  # [T, V]
    return below_peak - np.log(np.sum(np.exp(below_peak), axis=-1, keepdims=True))


def _below_peak(x: np.ndarray) -> np.ndarray:
    peak = np.max(x, axis=-1, keepdims=True)  # [T, 1]
    if not np.isfinite(peak).all():
        row = np.argwhere(~np.isfinite(peak))[0, :-1]
        raise ValueError(
            f"row {tuple(row.tolist())} of x has the maximum {peak[tuple(row)][0]}, but softmax needs a finite one; "
            "leave at least one score unmasked, and look for NaN or infinity in what made the scores"
        )
    return x - peak
