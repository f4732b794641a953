"""Normalisation as one pass over memory: a program per row, the row kept in registers, sums in float32."""

import numpy as np
import torch
import torch.nn.functional as F

from llminfer.basics import norms
from llminfer.basics.row_views_triton import require_vector, row_block, rows_of
from llminfer.core.pairs import Pair
from llminfer.core.triton_environment import tl, triton


@triton.jit
def _rmsnorm_kernel(x_ptr, gain_ptr, out_ptr, row_stride, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # int64: T * D may pass 2**31
    column = tl.arange(0, BLOCK)
    inside = column < width
    x = tl.load(x_ptr + row * row_stride + column, mask=inside, other=0.0).to(tl.float32)
    gain = tl.load(gain_ptr + column, mask=inside, other=0.0).to(tl.float32)
    inverse_rms = tl.rsqrt(tl.sum(x * x, axis=0) / width + eps)
    tl.store(out_ptr + row * width + column, (x * inverse_rms * gain).to(out_ptr.dtype.element_ty), mask=inside)


def rmsnorm(x: torch.Tensor, gain: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """`rmsnorm` of the reference, on the device of `x`; sums in float32. Rows may be strided.

    Raises ValueError or TypeError where shapes, dtypes or devices do not fit.
    """
    rows = rows_of("x", x)  # [T, D]
    tokens, width = rows.shape
    norms.check_eps(eps)
    require_vector("gain", gain, width, beside=x)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    BLOCK, num_warps = row_block(width)
    _rmsnorm_kernel[(tokens,)](rows, gain, out, rows.stride(0), width, eps, BLOCK=BLOCK, num_warps=num_warps)
    return out


@triton.jit
def _rmsnorm_residual_kernel(
    x_ptr, residual_ptr, gain_ptr, out_ptr, total_ptr, x_stride, residual_stride, width, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < width
    x = tl.load(x_ptr + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + row * residual_stride + column, mask=inside, other=0.0).to(tl.float32)
    gain = tl.load(gain_ptr + column, mask=inside, other=0.0).to(tl.float32)
    total = x + residual  # normalised as it is, before the store rounds it
    inverse_rms = tl.rsqrt(tl.sum(total * total, axis=0) / width + eps)
    tl.store(total_ptr + row * width + column, total.to(total_ptr.dtype.element_ty), mask=inside)
    tl.store(out_ptr + row * width + column, (total * inverse_rms * gain).to(out_ptr.dtype.element_ty), mask=inside)


def rmsnorm_residual(
    x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor, eps: float = 1e-5
) -> tuple[torch.Tensor, torch.Tensor]:
    """`rmsnorm_residual` of the reference: (normalised sum, sum). The sum never returns from memory to be normalised.

    Raises ValueError or TypeError where shapes, dtypes or devices do not fit.
    """
    rows, residual_rows = rows_of("x", x), rows_of("residual", residual)  # [T, D]
    tokens, width = rows.shape
    norms.check_eps(eps)
    if residual.shape != x.shape or residual.dtype != x.dtype:
        raise ValueError(
            f"residual must be as x, {x.dtype} {tuple(x.shape)}, got {residual.dtype} {tuple(residual.shape)}"
        )
    require_vector("gain", gain, width, beside=x)
    out, total = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for _ in range(2))
    BLOCK, num_warps = row_block(width)
    _rmsnorm_residual_kernel[(tokens,)](
        rows, residual_rows, gain, out, total, rows.stride(0), residual_rows.stride(0), width, eps,
        BLOCK=BLOCK, num_warps=num_warps,
    )  # fmt: skip
    return out, total


@triton.jit
def _layernorm_kernel(x_ptr, gain_ptr, bias_ptr, out_ptr, row_stride, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < width
    x = tl.load(x_ptr + row * row_stride + column, mask=inside, other=0.0).to(tl.float32)
    gain = tl.load(gain_ptr + column, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=inside, other=0.0).to(tl.float32)
    centered = tl.where(inside, x - tl.sum(x, axis=0) / width, 0.0)  # the padding must not join the variance as -mean
    inverse_deviation = tl.rsqrt(tl.sum(centered * centered, axis=0) / width + eps)
    normed = centered * inverse_deviation * gain + bias
    tl.store(out_ptr + row * width + column, normed.to(out_ptr.dtype.element_ty), mask=inside)


def layernorm(x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """`layernorm` of the reference; the row stays in registers, so that centring it costs no second read.

    Raises ValueError or TypeError where shapes, dtypes or devices do not fit.
    """
    rows = rows_of("x", x)  # [T, D]
    tokens, width = rows.shape
    norms.check_eps(eps)
    require_vector("gain", gain, width, beside=x)
    require_vector("bias", bias, width, beside=x)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    BLOCK, num_warps = row_block(width)
    _layernorm_kernel[(tokens,)](rows, gain, bias, out, rows.stride(0), width, eps, BLOCK=BLOCK, num_warps=num_warps)
    return out


SHAPES = {
    "tiny": [(2, 8)],
    "odd": [(1, 199), (5, 256), (3, 37), (2, 1), (2, 1000)],  # [T, D]; programs are rows, so few of them tell enough
    "bench": [(4096, 4096)],
}


def rmsnorm_cases(rng: np.random.Generator, size: str, dtype: str) -> list[dict]:
    cases = [{"x": _normal(rng, shape, dtype), "gain": _normal(rng, shape[1:], dtype)} for shape in SHAPES[size]]
    return cases + [_small(rng, dtype, "x", "gain")] if size == "odd" else cases


def rmsnorm_residual_cases(rng: np.random.Generator, size: str, dtype: str) -> list[dict]:
    cases = [
        {
            "x": _normal(rng, shape, dtype),
            "residual": _normal(rng, shape, dtype),
            "gain": _normal(rng, shape[1:], dtype),
            "eps": 1e-6,
        }
        for shape in SHAPES[size]
    ]
    return cases + [_small(rng, dtype, "x", "residual", "gain")] if size == "odd" else cases


def layernorm_cases(rng: np.random.Generator, size: str, dtype: str) -> list[dict]:
    cases = [_layernorm_case(rng, shape, dtype, mean=2.0) for shape in SHAPES[size]]
    if size == "odd":
        cases.append(_small(rng, dtype, "x", "gain", "bias"))
        if dtype == "float32":  # mean(x²) - mean(x)² would keep two digits of this variance; float16 has not that range
            cases.append(_layernorm_case(rng, (3, 64), dtype, mean=100.0))
    return cases


def _layernorm_case(rng: np.random.Generator, shape: tuple[int, int], dtype: str, mean: float) -> dict:
    return {
        "x": _normal(rng, shape, dtype, mean),  # a mean that must be taken away
        "gain": _normal(rng, shape[1:], dtype),
        "bias": _normal(rng, shape[1:], dtype),
    }


def _small(rng: np.random.Generator, dtype: str, *names: str) -> dict:
    """Rows so small that an eps other than the default is most of what they are divided by."""
    shapes = {name: (2, 40) if name in ("x", "residual") else (40,) for name in names}
    return {name: _normal(rng, shape, dtype) / np.array(8, dtype) for name, shape in shapes.items()} | {"eps": 0.05}


def _normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, mean: float = 0.0) -> np.ndarray:
    return (mean + rng.standard_normal(shape, np.float32)).astype(dtype)


def _rmsnorm_torch(x: torch.Tensor, gain: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    return F.rms_norm(x, x.shape[-1:], gain, eps)


def _rmsnorm_residual_torch(
    x: torch.Tensor, residual: torch.Tensor, gain: torch.Tensor, eps: float = 1e-5
) -> tuple[torch.Tensor, torch.Tensor]:
    total = x + residual
    return F.rms_norm(total, x.shape[-1:], gain, eps), total


def _layernorm_torch(x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps)


DTYPES = ("float32", "float16", "bfloat16")

RMSNORM = Pair(
    "basics.rmsnorm",
    reference=norms.rmsnorm,
    kernel=rmsnorm,
    baseline=_rmsnorm_torch,
    cases=rmsnorm_cases,
    cost=norms.rmsnorm_cost,
    dtypes=DTYPES,
)
RMSNORM_RESIDUAL = Pair(
    "basics.rmsnorm_residual",
    reference=norms.rmsnorm_residual,
    kernel=rmsnorm_residual,
    baseline=_rmsnorm_residual_torch,
    cases=rmsnorm_residual_cases,
    cost=norms.rmsnorm_residual_cost,
    dtypes=DTYPES,
)
LAYERNORM = Pair(
    "basics.layernorm",
    reference=norms.layernorm,
    kernel=layernorm,
    baseline=_layernorm_torch,
    cases=layernorm_cases,
    cost=norms.layernorm_cost,
    dtypes=DTYPES,
)
