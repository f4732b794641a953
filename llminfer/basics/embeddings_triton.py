"""Embedding gather: a program per token and block of columns copies one piece of one row."""

import numpy as np
import torch

from llminfer.basics import embeddings
from llminfer.basics.row_views_triton import require_rows, require_vector
from llminfer.core.pairs import Pair
from llminfer.core.triton_environment import tl, triton

MAX_BLOCK = 4096


@triton.jit
def _embed_kernel(table_ptr, ids_ptr, out_ptr, row_stride, vocabulary, width, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    id = tl.load(ids_ptr + token).to(tl.int64)  # int64: V * D passes 2**31 in large models
    known = (id >= 0) & (id < vocabulary)
    inside = column < width
    row = tl.load(table_ptr + id * row_stride + column, mask=inside & known, other=float("nan"))
    tl.store(out_ptr + token * width + column, row, mask=inside)


def embed(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """`embed` of the reference. Rows of `table` may be strided.

    Raises ValueError for an id outside 0..V-1 if `ids` is in host memory. On a GPU the look would stall the queue, so
    there the kernel reads nothing and gives a row of NaN. Raises ValueError or TypeError where other things do not fit.
    """
    if table.ndim != 2:
        raise ValueError(f"table must be [V, D], got shape {tuple(table.shape)}")
    require_rows("table", table)
    vocabulary, width = table.shape
    require_vector("ids", ids, len(ids), beside=table)
    if ids.is_floating_point():
        raise TypeError(f"ids must be integers, got {ids.dtype}")
    if ids.device.type == "cpu":
        embeddings.check_ids(ids.numpy(), vocabulary)
    out = torch.empty((len(ids), width), dtype=table.dtype, device=table.device)
    BLOCK = min(triton.next_power_of_2(width), MAX_BLOCK)
    _embed_kernel[(len(ids), triton.cdiv(width, BLOCK))](
        table, ids, out, table.stride(0), vocabulary, width, BLOCK=BLOCK
    )
    return out


SHAPES = {  # V, D, T
    "tiny": [(16, 8, 3)],
    "odd": [(37, 199, 1), (199, 256, 5), (1, 37, 3), (300, MAX_BLOCK + 1, 2)],
    "bench": [(32000, 4096, 4096)],
}


def embed_cases(rng: np.random.Generator, size: str, dtype: str) -> list[dict]:
    return [
        {
            "table": rng.standard_normal((vocabulary, width), np.float32).astype(dtype),
            "ids": rng.integers(0, vocabulary, tokens),
        }
        for vocabulary, width, tokens in SHAPES[size]
    ]


def _embed_torch(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return table[ids]


EMBED = Pair(
    "basics.embed",
    reference=embeddings.embed,
    kernel=embed,
    baseline=_embed_torch,
    cases=embed_cases,
    cost=embeddings.embed_cost,
    dtypes=("float32", "float16", "bfloat16"),
    compare="exact",
)
