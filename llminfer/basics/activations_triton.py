"""Activations as one pass over memory: a program per row and block of columns, arithmetic in float32."""

import numpy as np
import torch
import torch.nn.functional as F

from llminfer.basics import activations
from llminfer.basics.row_views_triton import rows_of
from llminfer.core.pairs import Pair
from llminfer.core.triton_environment import tl, triton

MAX_BLOCK = 2048


@triton.jit
def _gelu(x):
    # 0.5 * (1 + tanh(z)) is sigmoid(2 z): no tanh needed, and nothing cancels where x is very negative
    return x * tl.sigmoid(1.5957691216057308 * x * (1 + 0.044715 * x * x))  # 2 * sqrt(2 / pi)


@triton.jit
def _gated_kernel(gate_up_ptr, out_ptr, row_stride, width, ACTIVATION: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # int64: T * 2F may pass 2**31
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    gate = tl.load(gate_up_ptr + row * row_stride + column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(gate_up_ptr + row * row_stride + width + column, mask=inside, other=0.0).to(tl.float32)
    if ACTIVATION == "swiglu":
        out = gate * tl.sigmoid(gate) * up
    elif ACTIVATION == "geglu":
        out = _gelu(gate) * up
    else:  # "swiglu_clamped"
        gate = tl.minimum(gate, 7.0)
        up = tl.minimum(tl.maximum(up, -7.0), 7.0)
        out = gate * tl.sigmoid(1.702 * gate) * (up + 1)
    tl.store(out_ptr + row * width + column, out.to(out_ptr.dtype.element_ty), mask=inside)


def swiglu(gate_up: torch.Tensor) -> torch.Tensor:
    """`swiglu` of the reference, in float32 inside. Raises ValueError or TypeError where shape or dtype do not fit."""
    return _gated("swiglu", gate_up)


def geglu(gate_up: torch.Tensor) -> torch.Tensor:
    """`geglu` of the reference, in float32 inside. Raises ValueError or TypeError where shape or dtype do not fit."""
    return _gated("geglu", gate_up)


def swiglu_clamped(gate_up: torch.Tensor) -> torch.Tensor:
    """`swiglu_clamped` of the reference, in float32 inside. Raises ValueError or TypeError as `swiglu` does."""
    return _gated("swiglu_clamped", gate_up)


def _gated(activation: str, gate_up: torch.Tensor) -> torch.Tensor:
    rows = rows_of("gate_up", gate_up)  # [T, 2F]
    width = activations.half_width(tuple(gate_up.shape))
    out = torch.empty((*gate_up.shape[:-1], width), dtype=gate_up.dtype, device=gate_up.device)
    BLOCK = min(triton.next_power_of_2(width), MAX_BLOCK)
    grid = (len(rows), triton.cdiv(width, BLOCK))
    _gated_kernel[grid](rows, out, rows.stride(0), width, ACTIVATION=activation, BLOCK=BLOCK)
    return out


@triton.jit
def _gelu_kernel(x_ptr, out_ptr, row_stride, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    x = tl.load(x_ptr + row * row_stride + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * width + column, _gelu(x).to(out_ptr.dtype.element_ty), mask=inside)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """`gelu` of the reference, in float32 inside. Raises ValueError or TypeError where shape or dtype do not fit."""
    rows = rows_of("x", x)  # [T, D]
    width = rows.shape[1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    BLOCK = min(triton.next_power_of_2(width), MAX_BLOCK)
    _gelu_kernel[(len(rows), triton.cdiv(width, BLOCK))](rows, out, rows.stride(0), width, BLOCK=BLOCK)
    return out


SHAPES = {  # T, F: results per token
    "tiny": [(2, 8)],
    "odd": [(1, 199), (5, 256), (3, 37), (2, 1), (2, MAX_BLOCK + 1)],
    "bench": [(2048, 14336)],
}


def gated_cases(rng: np.random.Generator, size: str, dtype: str) -> list[dict]:
    return [
        {"gate_up": rng.standard_normal((rows, 2 * width), np.float32).astype(dtype)} for rows, width in SHAPES[size]
    ]


def swiglu_clamped_cases(rng: np.random.Generator, size: str, dtype: str) -> list[dict]:
    """Three times as wide as the others, so that some numbers lie beyond the limits."""
    return [
        {"gate_up": (3 * rng.standard_normal((rows, 2 * width), np.float32)).astype(dtype)}
        for rows, width in SHAPES[size]
    ]


def gelu_cases(rng: np.random.Generator, size: str, dtype: str) -> list[dict]:
    return [{"x": rng.standard_normal(shape, np.float32).astype(dtype)} for shape in SHAPES[size]]


def _swiglu_torch(gate_up: torch.Tensor) -> torch.Tensor:
    gate, up = gate_up.chunk(2, dim=-1)
    return F.silu(gate) * up


def _geglu_torch(gate_up: torch.Tensor) -> torch.Tensor:
    gate, up = gate_up.chunk(2, dim=-1)
    return F.gelu(gate, approximate="tanh") * up


def _swiglu_clamped_torch(gate_up: torch.Tensor) -> torch.Tensor:
    gate, up = gate_up.chunk(2, dim=-1)
    gate, up = gate.clamp(max=7), up.clamp(-7, 7)
    return gate * torch.sigmoid(1.702 * gate) * (up + 1)


def _gelu_torch(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x, approximate="tanh")


DTYPES = ("float32", "float16", "bfloat16")

SWIGLU = Pair(
    "basics.swiglu",
    reference=activations.swiglu,
    kernel=swiglu,
    baseline=_swiglu_torch,
    cases=gated_cases,
    cost=activations.swiglu_cost,
    dtypes=DTYPES,
)
GEGLU = Pair(
    "basics.geglu",
    reference=activations.geglu,
    kernel=geglu,
    baseline=_geglu_torch,
    cases=gated_cases,
    cost=activations.geglu_cost,
    dtypes=DTYPES,
)
SWIGLU_CLAMPED = Pair(
    "basics.swiglu_clamped",
    reference=activations.swiglu_clamped,
    kernel=swiglu_clamped,
    baseline=_swiglu_clamped_torch,
    cases=swiglu_clamped_cases,
    cost=activations.swiglu_clamped_cost,
    dtypes=DTYPES,
)
GELU = Pair(
    "basics.gelu",
    reference=activations.gelu,
    kernel=gelu,
    baseline=_gelu_torch,
    cases=gelu_cases,
    cost=activations.gelu_cost,
    dtypes=DTYPES,
)
