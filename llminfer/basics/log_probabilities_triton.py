"""log softmax and gather in one pass: a program per row keeps the largest logit and the sum of exponentials below it.

Whenever a block raises the maximum, the sum so far is scaled down to it. No row is written, and none is read twice.
"""

import numpy as np
import torch

from llminfer.basics import log_probabilities
from llminfer.basics.row_views_triton import require_rows, require_vector
from llminfer.core.pairs import Pair
from llminfer.core.triton_environment import tl, triton

MAX_BLOCK = 4096


@triton.jit
def _log_softmax_gather_kernel(logits_ptr, tokens_ptr, out_ptr, row_stride, vocabulary, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # int64: R * V may pass 2**31
    logits_ptr += row * row_stride
    column = tl.arange(0, BLOCK)
    peak = -float("inf")
    total = 0.0
    for start in range(0, vocabulary, BLOCK):
        x = tl.load(logits_ptr + start + column, mask=start + column < vocabulary, other=-float("inf")).to(tl.float32)
        new_peak = tl.maximum(peak, tl.max(x, axis=0))
        below = tl.where(new_peak == -float("inf"), 0.0, new_peak)  # all masked so far: -inf - -inf would be NaN
        total = total * tl.exp(peak - below) + tl.sum(tl.exp(x - below), axis=0)
        peak = new_peak
    token = tl.load(tokens_ptr + row).to(tl.int64)
    known = (token >= 0) & (token < vocabulary)
    chosen = tl.load(logits_ptr + token, mask=known, other=float("nan")).to(tl.float32)
    tl.store(out_ptr + row, chosen - peak - tl.log(total))


def log_softmax_gather(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """`log_softmax_gather` of the reference, in float32 whatever the dtype of `logits`. Rows may be strided.

    A row without a finite maximum comes out as NaN. Raises ValueError for a token outside 0..V-1 if `tokens` is in host
    memory; on a GPU the look would stall the queue, so there such a row is NaN. Raises ValueError or TypeError where
    other things do not fit.
    """
    if logits.ndim != 2:
        raise ValueError(f"logits must be [R, V], got shape {tuple(logits.shape)}")
    require_rows("logits", logits)
    rows, vocabulary = logits.shape
    require_vector("tokens", tokens, rows, beside=logits)
    if tokens.is_floating_point():
        raise TypeError(f"tokens must be integers, got {tokens.dtype}")
    if tokens.device.type == "cpu":
        log_probabilities.check_tokens(tokens.numpy(), vocabulary)
    out = torch.empty(rows, dtype=torch.float32, device=logits.device)
    BLOCK = min(triton.next_power_of_2(vocabulary), MAX_BLOCK)
    if rows:
        _log_softmax_gather_kernel[(rows,)](
            logits, tokens, out, logits.stride(0), vocabulary, BLOCK=BLOCK, num_warps=max(1, min(BLOCK // 256, 16))
        )
    return out


SHAPES = {  # R, V
    "tiny": [(2, 8)],
    "odd": [(1, 199), (5, 256), (3, 37), (2, 1), (3, 2 * MAX_BLOCK + 37)],
    "bench": [(512, 128256)],
}


def log_softmax_gather_cases(rng: np.random.Generator, size: str, dtype: str) -> list[dict]:
    """Random scores, every seventh masked. A first row asks for its lowest token, a second one for a masked token.

    Were all answers of a case near 0, as for tokens that are almost certain, float32 would have no digits left in them.
    """
    cases = []
    for rows, vocabulary in SHAPES[size]:
        logits = rng.standard_normal((rows, vocabulary), np.float32)
        logits[:, :-1:7] = -np.inf
        tokens = rng.integers(0, vocabulary, rows)
        tokens[0] = np.where(np.isinf(logits[0]), np.inf, logits[0]).argmin()
        tokens[1:2] = 0
        cases.append({"logits": logits.astype(dtype), "tokens": tokens})
    return cases


def _log_softmax_gather_torch(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(logits, dim=-1, dtype=torch.float32).gather(1, tokens[:, None])[:, 0]


LOG_SOFTMAX_GATHER = Pair(
    "basics.log_softmax_gather",
    reference=log_probabilities.log_softmax_gather,
    kernel=log_softmax_gather,
    baseline=_log_softmax_gather_torch,
    cases=log_softmax_gather_cases,
    cost=log_probabilities.log_softmax_gather_cost,
    dtypes=("float32", "float16", "bfloat16"),
    scaled=("logits",),
)
