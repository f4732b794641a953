"""Activations of the feed-forward block: SwiGLU (Llama and most others), GeGLU (Gemma), GELU (GPT-2), gpt-oss's own.

The gated forms read the fused projection gate|up, F2 = 2F wide, that one matrix product has made. All compute in the
dtype of their input.
"""

import math

import numpy as np
from jaxtyping import Float

from llminfer.core.cost import Cost


def swiglu(gate_up: Float[np.ndarray, "... F2"]) -> Float[np.ndarray, "... F"]:
    """silu(gate) * up, where silu(z) = z / (1 + e^-z) and gate|up are the halves of the last axis.

    Raises ValueError if that axis is odd. Source: Shazeer 2020, eq. 5. Book section 3.1.2.
    """
    gate, up = _halves(gate_up)  # [T, 2F] -> [T, F], [T, F]
    with np.errstate(over="ignore"):  # e^-gate may reach infinity, and gate / infinity is silu's limit: 0
        gated = np.exp(-gate)  # [T, F]
    gated += 1  # in place, as all that follows: new arrays would cost as much as the arithmetic
    np.divide(gate, gated, out=gated)  # silu(gate)
    gated *= up
    return gated


def swiglu_cost(gate_up: Float[np.ndarray, "... F2"]) -> Cost:
    """Negate, exp, add, divide, multiply: 5 FLOPs a result; two elements read and one written."""
    return _gated_cost(gate_up, flops=5)


def geglu(gate_up: Float[np.ndarray, "... F2"]) -> Float[np.ndarray, "... F"]:
    """gelu(gate) * up with the tanh form of GELU, as Gemma has it.

    Raises ValueError if the last axis is odd. Source: Shazeer 2020, eq. 5. Book section 3.1.2.
    """
    gate, up = _halves(gate_up)  # [T, 2F] -> [T, F], [T, F]
    return gelu(gate) * up


def geglu_cost(gate_up: Float[np.ndarray, "... F2"]) -> Cost:
    """9 FLOPs for the GELU and one for the product; two elements read and one written."""
    return _gated_cost(gate_up, flops=10)


def gelu(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """x times the normal distribution function of x, in the tanh form that GPT-2 was trained with.

    The exact form with erf differs by up to 5e-4; a model wants the one it was trained with.
    Source: Hendrycks and Gimpel 2016, section 2. Book section 3.1.2.
    """
    with np.errstate(over="ignore"):  # in float16 inner may reach infinity, where tanh has long been 1
        inner = math.sqrt(2 / math.pi) * x * (1 + 0.044715 * x * x)  # x * x, because x**3 goes through the slow pow
    return 0.5 * x * (1 + np.tanh(inner))


def gelu_cost(x: Float[np.ndarray, "..."]) -> Cost:
    """9 FLOPs an element with tanh as one; read once and written once."""
    return Cost(flops=9 * x.size, read_bytes=x.nbytes, write_bytes=x.nbytes)


def swiglu_clamped(gate_up: Float[np.ndarray, "... F2"]) -> Float[np.ndarray, "... F"]:
    """gate * sigmoid(1.702 * gate) * (up + 1), after gate is cut off above 7 and up beyond -7 and 7, as gpt-oss has it.

    Raises ValueError if the last axis is odd. Source: gpt-oss model card 2025, section 2.2, and its published code.
    Book section 3.1.2.
    """
    gate, up = _halves(gate_up)  # [T, 2F] -> [T, F], [T, F]
    gate, up = np.minimum(gate, 7), np.clip(up, -7, 7)
    with np.errstate(over="ignore"):  # as in swiglu
        return gate / (1 + np.exp(-1.702 * gate)) * (up + 1)


def swiglu_clamped_cost(gate_up: Float[np.ndarray, "... F2"]) -> Cost:
    """As swiglu, and three comparisons, a factor and an add: 10 FLOPs a result."""
    return _gated_cost(gate_up, flops=10)


def half_width(shape: tuple[int, ...]) -> int:
    """F of a fused gate|up of `shape` [..., 2F]. Raises ValueError if its last axis is odd."""
    if shape[-1] % 2:
        raise ValueError(f"gate|up must have an even last axis, one half each, got shape {shape}")
    return shape[-1] // 2


def _halves(gate_up: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    width = half_width(gate_up.shape)
    return gate_up[..., :width], gate_up[..., width:]


def _gated_cost(gate_up: np.ndarray, flops: int) -> Cost:
    return Cost(flops=flops * gate_up.size / 2, read_bytes=gate_up.nbytes, write_bytes=gate_up.nbytes / 2)
