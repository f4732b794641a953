"""The decode product: each program owns a few outputs and walks down the inputs, so every weight is read once.

One row is multiplied and added up by the ordinary cores. From two rows on the tensor cores multiply, with the rows
padded to the 16 of their smallest tile: idle rows cost nothing that counts, because the time goes into reading weights.
"""

import numpy as np
import torch

from llminfer.basics import projections
from llminfer.basics.row_views_triton import require_rows
from llminfer.core.pairs import Pair
from llminfer.core.triton_environment import operand_dtype, tl, triton


@triton.jit
def _matvec_kernel(
    x_ptr, weight_ptr, out_ptr,
    tokens, inputs, outputs, token_stride, stride_n, stride_m,
    TOKENS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr, OPERAND: tl.constexpr,
):  # fmt: skip
    m = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)  # int64: N * M may pass 2**31
    n = tl.arange(0, BLOCK_N).to(tl.int64)
    token = tl.arange(0, TOKENS)
    total = tl.zeros((BLOCK_N if TOKENS == 1 else TOKENS, BLOCK_M), tl.float32)
    for start in range(0, inputs, BLOCK_N):
        inside = start + n < inputs
        weight_at = weight_ptr + (start + n)[:, None] * stride_n + m[None, :] * stride_m  # [BLOCK_N, BLOCK_M]
        weight = tl.load(weight_at, mask=inside[:, None] & (m < outputs)[None, :], other=0.0)
        if TOKENS == 1:  # products stay where they are; threads add them up once, after the loop
            x = tl.load(x_ptr + start + n, mask=inside, other=0.0)  # [BLOCK_N]
            total += x.to(tl.float32)[:, None] * weight.to(tl.float32)
        else:
            x_at = x_ptr + token[:, None] * token_stride + (start + n)[None, :]  # [TOKENS, BLOCK_N]
            x = tl.load(x_at, mask=(token < tokens)[:, None] & inside[None, :], other=0.0)
            # "ieee", because the default, TF32, would keep 10 bits of a float32's 23
            total = tl.dot(x.to(OPERAND), weight.to(OPERAND), total, input_precision="ieee")
    if TOKENS == 1:
        total = tl.sum(total, axis=0)[None, :]
    out_at = out_ptr + token[:, None] * outputs + m[None, :]  # [TOKENS, BLOCK_M]
    tl.store(out_at, total.to(out_ptr.dtype.element_ty), mask=(token < tokens)[:, None] & (m < outputs)[None, :])


def matvec(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """`matvec` of the reference, summed in float32. `weight` may have any strides; rows of `x` may be strided.

    Raises ValueError or TypeError where shapes, dtypes or devices do not fit.
    """
    if x.ndim != 2 or weight.ndim != 2 or x.shape[1] != weight.shape[0]:
        raise ValueError(f"x [T, N] and weight [N, M] must share N, got {tuple(x.shape)} and {tuple(weight.shape)}")
    require_rows("x", x)
    if weight.dtype != x.dtype or weight.device != x.device:
        raise TypeError(f"weight is {weight.dtype} on {weight.device}, x is {x.dtype} on {x.device}; make them alike")
    (tokens, inputs), outputs = x.shape, weight.shape[1]
    projections.check_rows(tokens)
    out = torch.empty((tokens, outputs), dtype=x.dtype, device=x.device)
    # At least 64 elements of a tile lie along the weight's contiguous axis, so that warps read whole cache lines.
    BLOCK_N, BLOCK_M = (256, 16) if weight.stride(0) == 1 else (64, 64)
    _matvec_kernel[(triton.cdiv(outputs, BLOCK_M),)](
        x, weight, out,
        tokens, inputs, outputs, x.stride(0), weight.stride(0), weight.stride(1),
        TOKENS=1 if tokens == 1 else projections.MAX_ROWS, BLOCK_N=BLOCK_N, BLOCK_M=BLOCK_M, OPERAND=operand_dtype(x),
    )  # fmt: skip
    return out


SHAPES = {  # T, N, M
    "tiny": [(1, 8, 4), (2, 8, 4)],
    "odd": [(1, 199, 37), (16, 37, 199), (1, 256, 1), (3, 1, 37), (2, 256, 256), (1, 1000, 130)],
    "bench": [(1, 4096, 14336)],
}


def matvec_cases(rng: np.random.Generator, size: str, dtype: str) -> list[dict]:
    return [
        {
            "x": rng.standard_normal((tokens, inputs), np.float32).astype(dtype),
            "weight": (rng.standard_normal((inputs, outputs), np.float32) / inputs**0.5).astype(dtype),
        }
        for tokens, inputs, outputs in SHAPES[size]
    ]


def _matvec_torch(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x @ weight


MATVEC = Pair(
    "basics.matvec",
    reference=projections.matvec,
    kernel=matvec,
    baseline=_matvec_torch,
    cases=matvec_cases,
    cost=projections.matvec_cost,
    dtypes=("float32", "float16", "bfloat16"),
)
