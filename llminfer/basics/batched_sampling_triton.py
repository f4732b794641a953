"""A token for each row of logits in one kernel, without a sort and without writing a single logit.

Truncation needs a threshold only: top-k the k-th largest logit, top-p the largest logit at or above which the tokens
have probability p, min-p a distance from the peak. `thresholds_triton` finds the first two by bisection.

One pass over the logits means that they are read from HBM once. Later passes find their row in the L2 cache: V logits
of 2 or 4 bytes, 256 KB for 128,000 in 16 bit, and with penalties V counts of 4 bytes; only the rows of programs that
run at that time need to be there. Penalties and temperature are applied anew at each pass, so that nothing is written.
"""

import numpy as np
import torch

from llminfer.basics import batched_sampling
from llminfer.basics.row_views_triton import require_rows, require_vector
from llminfer.basics.thresholds_triton import find_threshold, penalised_logits, reached
from llminfer.core.pairs import Pair
from llminfer.core.philox_triton import token_uniform
from llminfer.core.triton_environment import tl, triton

MAX_BLOCK = 4096


@triton.jit
def _gumbel(uniform):
    """`gumbel` of the reference in float32: largest where the uniform is near 0, and there log(1 - u) would cancel."""
    u = uniform + 2.3283064365386963e-10  # HALF_STEP
    s = u / (2 - u)  # log(1 - u) = -2 artanh(s), whose series four terms end to float32 below a quarter
    series = 2 * s * (1 + s * s * (1 / 3 + s * s * (1 / 5 + s * s / 7)))
    return -tl.log(tl.where(u < 0.25, series, -tl.log(1 - u)))


@triton.jit
def _sample_tokens_kernel(
    logits_ptr, temperature_ptr, top_k_ptr, top_p_ptr, min_p_ptr, noise_key_ptr, occurred_ptr, penalties_ptr, out_ptr,
    logits_stride, noise_key_stride, occurred_stride, penalties_stride, vocabulary,
    PENALISED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)  # int64: R * V may pass 2**31
    logits_ptr += row * logits_stride
    temperature = tl.load(temperature_ptr + row).to(tl.float32)
    top_k = tl.load(top_k_ptr + row).to(tl.int64)
    top_p = tl.load(top_p_ptr + row).to(tl.float32)
    min_p = tl.load(min_p_ptr + row).to(tl.float32)
    repetition, frequency, presence = 1.0, 0.0, 0.0
    if PENALISED:
        occurred_ptr += row * occurred_stride
        penalties_ptr += row * penalties_stride
        repetition = tl.load(penalties_ptr).to(tl.float32)
        frequency = tl.load(penalties_ptr + 1).to(tl.float32)
        presence = tl.load(penalties_ptr + 2).to(tl.float32)
    greedy = temperature == 0
    temperature = tl.where(greedy, 1.0, temperature)

    peak = -float("inf")
    for start in range(0, vocabulary, BLOCK):
        token = start + tl.arange(0, BLOCK)
        x = penalised_logits(logits_ptr, occurred_ptr, token, vocabulary, repetition, frequency, presence, PENALISED)
        peak = tl.maximum(peak, tl.max(x, axis=0))

    threshold = tl.full([], -float("inf"), tl.float32)
    if (top_k < vocabulary) & (greedy == 0):
        threshold = find_threshold(
            logits_ptr, occurred_ptr, vocabulary, repetition, frequency, presence, threshold, peak, temperature, top_k,
            False, PENALISED, BLOCK,
        )  # fmt: skip
    if (top_p < 1) & (greedy == 0):
        whole, _, _ = reached(
            logits_ptr, occurred_ptr, vocabulary, repetition, frequency, presence, threshold, peak, temperature,
            True, PENALISED, BLOCK,
        )  # fmt: skip
        threshold = find_threshold(
            logits_ptr, occurred_ptr, vocabulary, repetition, frequency, presence, threshold, peak, temperature,
            top_p * whole, True, PENALISED, BLOCK,
        )  # fmt: skip
    farthest = tl.where((min_p > 0) & (greedy == 0), tl.log(tl.maximum(min_p, 1e-37)), -float("inf"))

    seed = tl.load(noise_key_ptr + row * noise_key_stride).to(tl.int64)
    sequence = tl.load(noise_key_ptr + row * noise_key_stride + 1).to(tl.int64)
    position = tl.load(noise_key_ptr + row * noise_key_stride + 2).to(tl.int64)
    best = -float("inf")
    chosen = tl.full([], -1, tl.int64)
    for start in range(0, vocabulary, BLOCK):
        token = start + tl.arange(0, BLOCK)
        x = penalised_logits(logits_ptr, occurred_ptr, token, vocabulary, repetition, frequency, presence, PENALISED)
        scaled = (x - peak) / temperature
        noise = _gumbel(token_uniform(seed, sequence, position, start, BLOCK))
        stays = (x >= threshold) & (scaled >= farthest)
        score = tl.where(stays, scaled + tl.where(greedy, 0.0, noise), -float("inf"))
        block_best = tl.max(score, axis=0)
        chosen = tl.where(block_best > best, start + tl.argmax(score, axis=0), chosen)
        best = tl.maximum(best, block_best)
    tl.store(out_ptr + row, chosen)


def sample_tokens(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
    min_p: torch.Tensor,
    noise_key: torch.Tensor,
    occurred: torch.Tensor | None = None,
    penalties: torch.Tensor | None = None,
) -> torch.Tensor:
    """`sample_tokens` of the reference in float32, on the device of `logits`. Rows may be strided.

    The same noise, so the same tokens, except where rounding to float32 decides: between two tokens whose noisy logits
    agree to six digits, or for a token at which the probability above it is p to six digits.
    The values in the small arrays are not looked at, because on a GPU the look would stall the queue. Raises ValueError
    or TypeError where shapes, dtypes or devices do not fit.
    """
    require_rows("logits", logits)
    batched_sampling.check_penalties(occurred is None, penalties is None)
    rows, vocabulary = logits.shape
    for name, vector in {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}.items():
        require_vector(name, vector, rows, beside=logits)
    _require_table("noise_key", noise_key, (rows, 3), logits)
    if occurred is not None:
        _require_table("occurred", occurred, (rows, vocabulary), logits)
        _require_table("penalties", penalties, (rows, 3), logits)
    out = torch.empty(rows, dtype=torch.int64, device=logits.device)
    BLOCK = min(max(triton.next_power_of_2(vocabulary), 4), MAX_BLOCK)  # 4 tokens share one call of Philox
    strides = [0 if table is None else table.stride(0) for table in (occurred, penalties)]
    if rows:
        _sample_tokens_kernel[(rows,)](
            logits, temperature, top_k, top_p, min_p, noise_key, occurred, penalties, out,
            logits.stride(0), noise_key.stride(0), *strides, vocabulary,
            PENALISED=occurred is not None, BLOCK=BLOCK, num_warps=max(1, min(BLOCK // 256, 16)),
        )  # fmt: skip
    return out


def _require_table(name: str, table: torch.Tensor, shape: tuple[int, int], beside: torch.Tensor) -> None:
    if tuple(table.shape) != shape:
        raise ValueError(f"{name} must have shape {shape}, got {tuple(table.shape)}")
    if table.shape[1] > 1 and table.stride(1) != 1:
        raise ValueError(f"the last axis of {name} must be contiguous, got strides {table.stride()}")
    if table.device != beside.device:
        raise ValueError(f"{name} is on {table.device}, but logits are on {beside.device}; move it there")


SHAPES = {  # R, V, with penalties
    "tiny": [(2, 8, True)],
    "odd": [
        (6, 37, True),
        (1, 1, True),
        (3, 203, False),
        (2, 2 * MAX_BLOCK - 13, True),
    ],  # few: a row takes many passes
    "bench": [(64, 128256, True)],
}
SETTINGS = (  # temperature, top-k (0: all), top-p, min-p: rows take turns
    (0.75, 5, 1.0, 0.0),
    (1.5, 0, 0.9, 0.0),
    (0.0, 3, 0.5, 0.0),
    (0.5, 30, 0.8, 0.05),
    (1.0, 0, 1.0, 0.0),
    (1.25, 0, 1.0, 0.1),
)
PENALTIES = ((1.5, 0.5, 0.25), (0.75, -0.25, 1.0))  # sums of powers of two: subtracting them keeps ties in float32


def sample_tokens_cases(rng: np.random.Generator, size: str, dtype: str) -> list[dict]:
    return [_case(rng, *shape, dtype) for shape in SHAPES[size]]


def _case(rng: np.random.Generator, rows: int, vocabulary: int, penalised: bool, dtype: str) -> dict:
    turn = vocabulary + np.arange(rows)  # so that shapes do not all begin with the same settings
    temperature, top_k, top_p, min_p = np.array(SETTINGS, np.float32)[turn % len(SETTINGS)].T.copy()
    seed, sequence = rng.integers(-(2**63), 2**63, rows), rng.integers(2**40, size=rows)
    case = {
        "logits": _scores(rng, rows, vocabulary).astype(dtype),
        "temperature": temperature,
        "top_k": np.where((top_k == 0) | (top_k > vocabulary), vocabulary, top_k).astype(np.int32),
        "top_p": top_p,
        "min_p": min_p,
        "noise_key": np.stack([seed, sequence, turn], axis=1),
    }
    if penalised:
        case["occurred"] = rng.poisson(0.5, (rows, vocabulary)).astype(np.int32)
        case["penalties"] = np.array(PENALTIES, np.float32)[turn % len(PENALTIES)]
    return case


def _scores(rng: np.random.Generator, rows: int, vocabulary: int) -> np.ndarray:
    """Random scores, every seventh masked; those of every other row on a grid, so that there are ties."""
    x = 2 * rng.standard_normal((rows, vocabulary), np.float32)
    x[1::2] = np.round(2 * x[1::2]) / 2
    x[:, :-1:7] = -np.inf
    return x


def _sample_tokens_torch(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
    min_p: torch.Tensor,
    noise_key: torch.Tensor,
    occurred: torch.Tensor | None = None,
    penalties: torch.Tensor | None = None,
) -> torch.Tensor:
    """The same law by sorting, with noise of torch's own: other tokens, but the work it takes without a kernel."""
    x = logits.float()  # [R, V]
    if occurred is not None:
        repetition, frequency, presence = penalties[:, :, None].unbind(1)  # [R, 1] each
        x = torch.where(occurred > 0, torch.where(x > 0, x / repetition, x * repetition), x)
        x = x - frequency * (occurred - 1).clamp(min=0) - presence * (occurred > 1)
    greedy = x.argmax(-1)
    x, order = (x / torch.where(temperature == 0, 1, temperature)[:, None]).sort(-1, descending=True)
    x = x.masked_fill(x < x.gather(1, top_k.long()[:, None] - 1), -torch.inf)
    probability = x.softmax(-1)
    above = probability.cumsum(-1) - probability
    x = x.masked_fill((above >= top_p[:, None]) & (top_p < 1)[:, None], -torch.inf)
    x = x.masked_fill(probability < min_p[:, None] * probability[:, :1], -torch.inf)
    generator = torch.Generator(x.device).manual_seed(0)
    place = (x.softmax(-1) / torch.empty_like(x).exponential_(generator=generator)).argmax(-1)  # the first to arrive
    return torch.where(temperature == 0, greedy, order.gather(1, place[:, None])[:, 0])


SAMPLE_TOKENS = Pair(
    "basics.sample_tokens",
    reference=batched_sampling.sample_tokens,
    kernel=sample_tokens,
    baseline=_sample_tokens_torch,
    cases=sample_tokens_cases,
    cost=batched_sampling.sample_tokens_cost,
    dtypes=("float32", "float16", "bfloat16"),
    compare="exact",
    scaled=("logits",),
)
