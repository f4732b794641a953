"""A bit mask over logits, in place: a program per row and block of words. No logit is read, only -inf is written."""

import numpy as np
import torch

from llminfer.basics import token_masks
from llminfer.basics.row_views_triton import require_rows
from llminfer.core.pairs import Pair
from llminfer.core.triton_environment import tl, triton

WORDS = 64  # 2048 tokens a program


@triton.jit
def _apply_token_mask_kernel(logits_ptr, mask_ptr, logits_stride, mask_stride, vocabulary, WORDS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # int64: R * V may pass 2**31
    word = tl.program_id(1) * WORDS + tl.arange(0, WORDS)
    bits = tl.load(mask_ptr + row * mask_stride + word, mask=word * 32 < vocabulary, other=0).to(tl.int32)
    bit = tl.arange(0, 32)
    allowed = (bits[:, None] >> bit[None, :]) & 1  # [WORDS, 32]; the shift repeats the sign, which & 1 takes away
    token = word[:, None] * 32 + bit[None, :]
    forbidden = tl.full([WORDS, 32], float("-inf"), tl.float32).to(logits_ptr.dtype.element_ty)
    tl.store(logits_ptr + row * logits_stride + token, forbidden, mask=(allowed == 0) & (token < vocabulary))


def apply_token_mask(logits: torch.Tensor, mask: torch.Tensor) -> None:
    """`apply_token_mask` of the reference, on the device of `logits`. Rows may be strided.

    Raises ValueError or TypeError where shapes, dtypes or devices do not fit.
    """
    token_masks.check_mask_shape(logits.shape, mask.shape)
    require_rows("logits", logits)
    if mask.dtype != torch.int32:
        raise TypeError(f"mask must be int32, got {mask.dtype}; pack_mask makes one")
    if mask.shape[1] > 1 and mask.stride(1) != 1:
        raise ValueError(f"the words of a row of mask must be contiguous, got strides {mask.stride()}")
    if mask.device != logits.device:
        raise ValueError(f"mask is on {mask.device}, but logits are on {logits.device}; move it there")
    rows, vocabulary = logits.shape
    if rows:
        _apply_token_mask_kernel[(rows, triton.cdiv(mask.shape[1], WORDS))](
            logits, mask, logits.stride(0), mask.stride(0), vocabulary, WORDS=WORDS
        )


SHAPES = {
    "tiny": [(2, 40)],
    "odd": [(1, 199), (3, 256), (2, 37), (5, 1), (1, 2 * 32 * WORDS + 33)],
    "bench": [(256, 128256)],
}


def apply_token_mask_cases(rng: np.random.Generator, size: str, dtype: str) -> list[dict]:
    cases = []
    for rows, vocabulary in SHAPES[size]:
        words = -(-vocabulary // token_masks.WORD_BITS)
        mask = rng.integers(-(2**31), 2**31, (rows, words), np.int32)  # bits past V at random: they mean nothing
        cases.append({"logits": rng.standard_normal((rows, vocabulary), np.float32).astype(dtype), "mask": mask})
    return cases


def _apply_token_mask_torch(logits: torch.Tensor, mask: torch.Tensor) -> None:
    bit = torch.arange(32, dtype=torch.int32, device=mask.device)
    forbidden = (mask[:, :, None] >> bit & 1).flatten(1) == 0  # [R, 32 * words]
    logits.masked_fill_(forbidden[:, : logits.shape[1]], float("-inf"))


APPLY_TOKEN_MASK = Pair(
    "basics.apply_token_mask",
    reference=token_masks.apply_token_mask,
    kernel=apply_token_mask,
    baseline=_apply_token_mask_torch,
    cases=apply_token_mask_cases,
    cost=token_masks.apply_token_mask_cost,
    dtypes=("float32", "float16", "bfloat16"),
    mutates=("logits",),
    compare="exact",
)
