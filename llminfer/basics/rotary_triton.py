"""RoPE in one pass: a program per token turns a tile of its heads by angles it computes itself, so no table is read."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from llminfer.basics import rotary
from llminfer.basics.config import RopeSpec
from llminfer.basics.row_views_triton import require_rows, require_vector
from llminfer.core.pairs import Pair
from llminfer.core.triton_environment import tl, triton

TILE = 4096  # pairs that one program holds: 64 heads of width 128


@triton.jit
def _rope_kernel(
    x_ptr, positions_ptr, frequencies_ptr, out_ptr,
    token_stride, head_stride, heads, width, pairs, step, offset, attention_factor,
    HEADS: tl.constexpr, PAIRS: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)  # int64: T * H * E may pass 2**31
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    pair = tl.arange(0, PAIRS)

    # float64 until the angle lies within half a circle: a float32 angle of 1e6 radians is off by up to 0.03. It is a
    # handful of operations a pair, shared by the heads, so that even GPUs with little float64 still wait for memory.
    position = tl.load(positions_ptr + token).to(tl.float64)
    frequency = tl.load(frequencies_ptr + pair, mask=pair < pairs, other=0.0).to(tl.float64)
    circles = position * frequency * 0.15915494309189535  # 1 / (2 pi)
    angle = ((circles - tl.floor(circles + 0.5)) * 6.283185307179586).to(tl.float32)
    cos = tl.cos(angle)[None, :] * attention_factor  # [1, PAIRS]
    sin = tl.sin(angle)[None, :] * attention_factor

    x_head = x_ptr + token * token_stride + head[:, None] * head_stride  # [HEADS, 1]
    out_head = out_ptr + (token * heads + head[:, None]) * width
    first = pair[None, :] * step  # [1, PAIRS]
    second = first + offset
    inside = (head[:, None] < heads) & (pair[None, :] < pairs)
    a = tl.load(x_head + first, mask=inside, other=0.0).to(tl.float32)  # [HEADS, PAIRS]
    b = tl.load(x_head + second, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_head + first, (a * cos - b * sin).to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(out_head + second, (b * cos + a * sin).to(out_ptr.dtype.element_ty), mask=inside)

    if REST > 0:  # a head that is turned in part: the elements after the pairs pass unchanged
        rest = 2 * pairs + tl.arange(0, REST)[None, :]
        inside = (head[:, None] < heads) & (rest < width)
        tl.store(out_head + rest, tl.load(x_head + rest, mask=inside, other=0.0), mask=inside)


def rope(
    x: torch.Tensor,
    positions: torch.Tensor,
    frequencies: torch.Tensor,
    interleaved: bool = False,
    attention_factor: float = 1.0,
) -> torch.Tensor:
    """`rope` of the reference; angles in float64, the rest in float32. Tokens and heads of `x` may be strided.

    Raises ValueError or TypeError where shapes, dtypes or devices do not fit.
    """
    if x.ndim != 3:
        raise ValueError(f"x must be [T, H, E], got shape {tuple(x.shape)}")
    require_rows("x", x)
    tokens, heads, width = x.shape
    pairs = len(frequencies)
    first, second = rotary.pair_slices(width, pairs, interleaved)
    require_vector("positions", positions, tokens, beside=x)
    require_vector("frequencies", frequencies, pairs, beside=x)
    if positions.is_floating_point():
        raise TypeError(f"positions must be integers, got {positions.dtype}")
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    PAIRS = triton.next_power_of_2(pairs)
    REST = triton.next_power_of_2(width - 2 * pairs) if width > 2 * pairs else 0
    if not heads:
        return out
    HEADS = min(triton.next_power_of_2(heads), max(TILE // PAIRS, 1))
    _rope_kernel[(tokens, triton.cdiv(heads, HEADS))](
        x, positions, frequencies, out,
        x.stride(0), x.stride(1), heads, width, pairs, first.step or 1, second.start, float(attention_factor),
        HEADS=HEADS, PAIRS=PAIRS, REST=REST,
    )  # fmt: skip
    return out


def rotation(
    positions: torch.Tensor,
    frequencies: torch.Tensor,
    dtype: torch.dtype,
    interleaved: bool = False,
    attention_factor: float = 1.0,
) -> Callable[[torch.Tensor], torch.Tensor]:
    """`rotation` of the reference. Shares arguments only: a kernel computes angles sooner than it reads them."""
    return partial(
        rope,
        positions=positions,
        frequencies=frequencies,
        interleaved=interleaved,
        attention_factor=attention_factor,
    )


SHAPES = {  # T, H, E, pairs
    "tiny": [(2, 2, 8, 4)],
    "odd": [
        (1, 37, 64, 32),
        (5, 3, 20, 10),
        (2, 1, 199, 37),
        (2, 5, 256, 128),
        (3, 2, 2, 1),
        (2, 3, 20, 4),
        (1, 33, 256, 128),  # more heads than one program holds
    ],  # fmt: skip
    "bench": [(4096, 40, 128, 64)],  # 32 query and 8 key heads
}


def rope_cases(rng: np.random.Generator, size: str, dtype: str) -> list[dict]:
    return [
        {
            "x": rng.standard_normal((tokens, heads, width), np.float32).astype(dtype),
            "positions": rng.integers(0, 1_000_000, tokens),
            "frequencies": rotary.rope_frequencies(RopeSpec(theta=500_000.0), 2 * pairs),
            "interleaved": interleaved,
            "attention_factor": 1.25 if interleaved else 1.0,
        }
        for tokens, heads, width, pairs in SHAPES[size]
        for interleaved in ((False,) if size == "bench" else (False, True))
    ]


def _rope_torch(
    x: torch.Tensor,
    positions: torch.Tensor,
    frequencies: torch.Tensor,
    interleaved: bool = False,
    attention_factor: float = 1.0,
) -> torch.Tensor:
    first, second = rotary.pair_slices(x.shape[-1], len(frequencies), interleaved)
    angles = positions[:, None].double() * frequencies.double()
    cos = (attention_factor * angles.cos()).to(x.dtype)[:, None]
    sin = (attention_factor * angles.sin()).to(x.dtype)[:, None]
    turned = x.clone()
    turned[..., first] = x[..., first] * cos - x[..., second] * sin
    turned[..., second] = x[..., second] * cos + x[..., first] * sin
    return turned


ROPE = Pair(
    "basics.rope",
    reference=rotary.rope,
    kernel=rope,
    baseline=_rope_torch,
    cases=rope_cases,
    cost=rotary.rope_cost,
    dtypes=("float32", "float16", "bfloat16"),
    scaled=("x",),
)
