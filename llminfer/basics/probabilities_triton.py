"""Softmax of rows of any length: a program per row goes over it twice, a block at a time.

The first pass keeps the largest score so far and the sum of exponentials below it, rescaling the sum whenever the
maximum grows; the second writes. A vocabulary of 128,000 logits is far longer than what registers hold.
"""

import numpy as np
import torch

from llminfer.basics import probabilities
from llminfer.basics.row_views_triton import rows_of
from llminfer.core.pairs import Pair
from llminfer.core.triton_environment import tl, triton

MAX_BLOCK = 4096


@triton.jit
def _softmax_kernel(x_ptr, out_ptr, row_stride, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # int64: T * V may pass 2**31
    column = tl.arange(0, BLOCK)
    peak = -float("inf")
    total = 0.0
    for start in range(0, width, BLOCK):
        inside = start + column < width
        x = tl.load(x_ptr + row * row_stride + start + column, mask=inside, other=-float("inf")).to(tl.float32)
        new_peak = tl.maximum(peak, tl.max(x, axis=0))
        below = tl.where(new_peak == -float("inf"), 0.0, new_peak)  # all masked so far: -inf - -inf would be NaN
        total = total * tl.exp(peak - below) + tl.sum(tl.exp(x - below), axis=0)
        peak = new_peak
    for start in range(0, width, BLOCK):
        inside = start + column < width
        x = tl.load(x_ptr + row * row_stride + start + column, mask=inside, other=-float("inf")).to(tl.float32)
        probability = tl.exp(x - peak) / total
        tl.store(out_ptr + row * width + start + column, probability.to(out_ptr.dtype.element_ty), mask=inside)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """`softmax` of the reference, in float32 inside. A row without a finite maximum comes out as NaN.

    Raises ValueError or TypeError where shape or dtype do not fit.
    """
    rows = rows_of("x", x)  # [T, V]
    width = rows.shape[1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    BLOCK = min(triton.next_power_of_2(width), MAX_BLOCK)
    _softmax_kernel[(len(rows),)](
        rows, out, rows.stride(0), width, BLOCK=BLOCK, num_warps=max(1, min(BLOCK // 256, 16))
    )
    return out


SHAPES = {  # T, V
    "tiny": [(2, 8)],
    "odd": [(1, 199), (5, 256), (3, 37), (2, 1), (3, 2 * MAX_BLOCK + 37)],
    "bench": [(512, 128256)],
}


def softmax_cases(rng: np.random.Generator, size: str, dtype: str) -> list[dict]:
    return [{"x": _scores(rng, shape, dtype)} for shape in SHAPES[size]]


def _scores(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> np.ndarray:
    """Random scores, every seventh masked; in the last of several rows all but the last score.

    The first row lies far below zero, where a maximum that started from 0 would leave nothing of the sum. In a row of
    several blocks an early score of it stands far above all later ones, whose blocks must not lower the maximum.
    """
    x = rng.standard_normal(shape, np.float32)
    x[0] -= 300.0
    x[:, :-1:7] = -np.inf
    x[1:][-1:, :-1] = -np.inf
    if shape[1] > MAX_BLOCK:
        x[0, 1] = 200.0
    return x.astype(dtype)


def _softmax_torch(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


SOFTMAX = Pair(
    "basics.softmax",
    reference=probabilities.softmax,
    kernel=softmax,
    baseline=_softmax_torch,
    cases=softmax_cases,
    cost=probabilities.softmax_cost,
    dtypes=("float32", "float16", "bfloat16"),
)
