"""Normalisation: bring each token's vector to a known size, then scale it by a learned gain.

RMSNorm divides by the root mean square; LayerNorm, the older form of GPT-2, also takes the mean away and adds a bias.
The result has the dtype of `x`, but nothing is summed in less than float32, here and in the kernels: hidden states of
real models reach hundreds, and in float16 a sum of squares past 65504 would be infinite.
"""

import numpy as np
from jaxtyping import Float

from llminfer.core.cost import Cost


def rmsnorm(
    x: Float[np.ndarray, "... D"], gain: Float[np.ndarray, "D"], eps: float = 1e-5
) -> Float[np.ndarray, "... D"]:
    """Normalise each row of `x` by its root mean square and multiply by `gain`.

    Raises ValueError if `eps` is not positive.
    Source: Zhang and Sennrich 2019, eq. 4. Book section 3.1.2.
    """
    check_eps(eps)
    wide = at_least_float32(x)  # [T, D]
    mean_square = np.vecdot(wide, wide) / x.shape[-1]  # [T, D] -> [T], without a temporary for x * x
    normed = wide / np.sqrt(mean_square + eps)[..., None]  # [T, D]
    normed *= gain  # in place: one more new array would cost as much as the arithmetic
    return normed.astype(x.dtype, copy=False)


def rmsnorm_cost(x: Float[np.ndarray, "... D"], gain: Float[np.ndarray, "D"], eps: float = 1e-5) -> Cost:
    """Square, sum, scale and gain: 4 FLOPs an element; every element read once and written once."""
    return Cost(flops=4 * x.size, read_bytes=x.nbytes + gain.nbytes, write_bytes=x.nbytes)


def rmsnorm_residual(
    x: Float[np.ndarray, "... D"], residual: Float[np.ndarray, "... D"], gain: Float[np.ndarray, "D"], eps: float = 1e-5
) -> tuple[Float[np.ndarray, "... D"], Float[np.ndarray, "... D"]]:
    """Add a block's output `x` to the residual stream and normalise the sum for the next block.

    Returns (rmsnorm(x + residual), x + residual). Fused, because apart the sum would be written and read again.
    Raises ValueError if `eps` is not positive. Book section 3.1.2.
    """
    total = x + residual  # [T, D]
    return rmsnorm(total, gain, eps), total


def rmsnorm_residual_cost(
    x: Float[np.ndarray, "... D"], residual: Float[np.ndarray, "... D"], gain: Float[np.ndarray, "D"], eps: float = 1e-5
) -> Cost:
    """One more add than rmsnorm; two arrays are read and two are written."""
    return Cost(flops=5 * x.size, read_bytes=x.nbytes + residual.nbytes + gain.nbytes, write_bytes=2 * x.nbytes)


def layernorm(
    x: Float[np.ndarray, "... D"], gain: Float[np.ndarray, "D"], bias: Float[np.ndarray, "D"], eps: float = 1e-5
) -> Float[np.ndarray, "... D"]:
    """Bring each row of `x` to mean 0 and variance 1, multiply by `gain` and add `bias`.

    The variance divides by D, not by D - 1, and is taken of the centred row: mean(x²) - mean(x)² cancels badly when
    the mean is large. Raises ValueError if `eps` is not positive.
    Source: Ba, Kiros and Hinton 2016, eq. 3. Book section 3.1.2.
    """
    check_eps(eps)
    wide = at_least_float32(x)  # [T, D]
    centered = wide - np.mean(wide, axis=-1, keepdims=True)  # [T, D]
    variance = np.vecdot(centered, centered)[..., None] / x.shape[-1]  # [T, D] -> [T, 1]
    return (centered / np.sqrt(variance + eps) * gain + bias).astype(x.dtype, copy=False)  # [T, D]


def layernorm_cost(
    x: Float[np.ndarray, "... D"], gain: Float[np.ndarray, "D"], bias: Float[np.ndarray, "D"], eps: float = 1e-5
) -> Cost:
    """Sum, centre, square, sum, scale, gain and bias: 7 FLOPs an element; read once and written once."""
    return Cost(flops=7 * x.size, read_bytes=x.nbytes + gain.nbytes + bias.nbytes, write_bytes=x.nbytes)


def at_least_float32(x: Float[np.ndarray, "... D"]) -> Float[np.ndarray, "... D"]:
    """`x` as float32 if its dtype is shorter, else `x` itself."""
    return x if x.dtype.itemsize >= 4 else x.astype(np.float32)


def check_eps(eps: float) -> None:
    """Raise ValueError unless `eps` is positive."""
    if not eps > 0:
        raise ValueError(
            f"eps must be positive so that a row of zeros can be normalised, got {eps}; models use 1e-5 or 1e-6"
        )
