"""Rotary position embedding: turn pairs of elements by angles that grow with the position.

A query turned by m·f and a key turned by n·f meet at the angle (m - n)·f, so that scores depend on distance alone.
Two layouts of the pairs exist: halves (element i with i + width/2: Llama and most others, in the Hugging Face form) and
interleaved (element 2i with 2i + 1: the paper, and DeepSeek). A checkpoint fits one of them only.
"""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from llminfer.basics.config import RopeSpec
from llminfer.core.cost import Cost


def rope_frequencies(spec: RopeSpec, width: int) -> Float[np.ndarray, "pairs"]:
    """Radians that each of the width/2 pairs turns per position, fastest first, in float64.

    Stretching the context slows pairs down by `spec.factor`: "linear" all of them; "llama3" and "yarn" only those that
    make few turns within the context the model was trained on, because it never saw these complete a circle.
    Raises ValueError if `width` is odd or `spec` lacks what its scaling needs.
    Sources: Su et al. 2021, eq. 15; Chen et al. 2023 (linear); Peng et al. 2023, section 3.2 (yarn); Llama 3.1's code.
    Book section 3.1.2.
    """
    _check_spec(spec, width)
    frequencies = spec.theta ** (-np.arange(0, width, 2) / width)  # [pairs], from 1 down to nearly 1 / theta
    slowed = frequencies / spec.factor
    if spec.scaling == "none":
        return frequencies
    if spec.scaling == "linear":
        return slowed
    if spec.scaling == "llama3":
        turns = spec.original_context * frequencies / (2 * math.pi)  # [pairs], full circles within the old context
        kept = np.clip((turns - spec.low_factor) / (spec.high_factor - spec.low_factor), 0, 1)
    else:
        kept = 1 - _yarn_ramp(spec, width)
    return kept * frequencies + (1 - kept) * slowed  # [pairs]


def _yarn_ramp(spec: RopeSpec, width: int) -> Float[np.ndarray, "pairs"]:
    """0 for pairs that turn at least beta_fast times within the old context, 1 below beta_slow, a line between."""

    def pair_that_turns(times: float) -> float:
        return width * math.log(spec.original_context / (times * 2 * math.pi)) / (2 * math.log(spec.theta))

    first, last = pair_that_turns(spec.beta_fast), pair_that_turns(spec.beta_slow)
    if spec.truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, width - 1)
    return np.clip((np.arange(width // 2) - first) / max(last - first, 1e-3), 0, 1)  # [pairs]


def _check_spec(spec: RopeSpec, width: int) -> None:
    if width < 2 or width % 2:
        raise ValueError(f"RoPE turns pairs of elements, so width must be even and at least 2, got {width}")
    if not spec.theta > 1:
        raise ValueError(f"theta must be above 1, got {spec.theta}")
    if spec.scaling in ("llama3", "yarn") and spec.original_context < 1:
        raise ValueError(
            f"{spec.scaling} scaling needs original_context, the context before stretching, got {spec.original_context}"
        )
    if spec.scaling == "llama3" and not spec.high_factor > spec.low_factor:
        raise ValueError(f"high_factor must be above low_factor, got {spec.high_factor} and {spec.low_factor}")
    if spec.scaling == "yarn" and not spec.beta_fast > spec.beta_slow > 0:
        raise ValueError(f"beta_fast must be above beta_slow, both positive, got {spec.beta_fast} and {spec.beta_slow}")


def rope(
    x: Float[np.ndarray, "T H E"],
    positions: Int[np.ndarray, "T"],
    frequencies: Float[np.ndarray, "pairs"],
    interleaved: bool = False,
    attention_factor: float = 1.0,
) -> Float[np.ndarray, "T H E"]:
    """Turn the first 2 * pairs elements of every head by position * frequency; the others pass unchanged.

    `attention_factor` (yarn) multiplies the turned elements. Raises ValueError if a head is narrower than 2 * pairs.
    Source: Su et al. 2021, eq. 34. Book section 3.1.2.
    """
    return rotation(positions, frequencies, x.dtype, interleaved, attention_factor)(x)


def rotation(
    positions: Int[np.ndarray, "T"],
    frequencies: Float[np.ndarray, "pairs"],
    dtype: np.dtype,
    interleaved: bool = False,
    attention_factor: float = 1.0,
) -> Callable[[np.ndarray], np.ndarray]:
    """`rope` as a function of `x` alone, in its dtype: the layers of a step share positions, and so sines and cosines.

    Angles and their sines are computed in float64 whatever the dtype: at position 1,000,000 a float32 angle is off by
    up to 0.03 radians. They are rounded once, then everything stays in `dtype`.
    """
    angles = np.multiply(positions[:, None], frequencies, dtype=np.float64)  # [T], [pairs] -> [T, pairs]
    cos = (attention_factor * np.cos(angles)).astype(dtype)[:, None]  # [T, 1, pairs], the same for every head
    sin = (attention_factor * np.sin(angles)).astype(dtype)[:, None]

    def rotate(x: Float[np.ndarray, "T H E"]) -> Float[np.ndarray, "T H E"]:
        first, second = pair_slices(x.shape[-1], len(frequencies), interleaved)
        turned = x.copy()
        turned[..., first] = x[..., first] * cos - x[..., second] * sin
        turned[..., second] = x[..., second] * cos + x[..., first] * sin
        return turned

    return rotate


def pair_slices(width: int, pairs: int, interleaved: bool) -> tuple[slice, slice]:
    """Where the first and where the second members of the pairs lie within a head of `width` elements.

    Raises ValueError if there are no pairs, or more than fit the head.
    """
    if not 1 <= pairs <= width // 2:
        raise ValueError(
            f"a frequency turns 2 elements, so a head of {width} takes 1 to {width // 2} frequencies, got {pairs}"
        )
    if interleaved:
        return slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
    return slice(0, pairs), slice(pairs, 2 * pairs)


def rope_cost(
    x: Float[np.ndarray, "T H E"],
    positions: Int[np.ndarray, "T"],
    frequencies: Float[np.ndarray, "pairs"],
    interleaved: bool = False,
    attention_factor: float = 1.0,
) -> Cost:
    """6 FLOPs turn a pair; angle, sine, cosine and two factors are shared by a token's heads; x is read and written."""
    tokens, heads, _ = x.shape
    return Cost(
        flops=(6 * heads + 5) * tokens * len(frequencies),
        read_bytes=x.nbytes + positions.nbytes + frequencies.nbytes,
        write_bytes=x.nbytes,
    )
