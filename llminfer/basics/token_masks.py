"""Masks over the vocabulary, one bit a token: how a grammar reaches the logits, 32 times smaller than float32."""

import numpy as np
from jaxtyping import Bool, Float, Int

from llminfer.core.cost import Cost

WORD_BITS = 32


def apply_token_mask(logits: Float[np.ndarray, "R V"], mask: Int[np.ndarray, "R words"]) -> None:
    """Write -inf, in place, over the logits of all tokens whose bit in `mask` is 0.

    Token t is bit t % 32 (the lowest is 0) of word t // 32 of its row; words = ceil(V / 32), and bits past V mean
    nothing. Raises ValueError for a mask of another shape.
    Source: the bit mask of Dong et al. 2024 (XGrammar), section 3.1. Book section 3.1.7.
    """
    check_mask_shape(logits.shape, mask.shape)
    for row, words in zip(logits, mask, strict=True):
        row[~unpack_mask(words, len(row))] = -np.inf  # [V]


def apply_token_mask_cost(logits: Float[np.ndarray, "R V"], mask: Int[np.ndarray, "R words"]) -> Cost:
    """The mask is read; logits are only written, and only those of tokens that are not allowed."""
    allowed = sum(int(unpack_mask(words, logits.shape[1]).sum()) for words in mask)
    return Cost(flops=0, read_bytes=mask.nbytes, write_bytes=(logits.size - allowed) * logits.itemsize)


def pack_mask(allowed: Bool[np.ndarray, "V"]) -> Int[np.ndarray, "words"]:
    """A mask as bits: token t is bit t % 32 of word t // 32; the bits past V are 0. Book section 3.1.7."""
    bits = np.packbits(allowed, bitorder="little")
    padding = np.zeros(-len(bits) % 4, np.uint8)
    return np.concatenate([bits, padding]).view("<i4").astype(np.int32)


def unpack_mask(words: Int[np.ndarray, "words"], vocabulary: int) -> Bool[np.ndarray, "V"]:
    """The mask that `pack_mask` packed. Book section 3.1.7."""
    bits = np.ascontiguousarray(words).astype("<i4").view(np.uint8)
    return np.unpackbits(bits, count=vocabulary, bitorder="little").view(bool)


def check_mask_shape(logits: tuple[int, ...], mask: tuple[int, ...]) -> None:
    """Raise ValueError unless `mask` has a bit for each of the logits [R, V]."""
    if len(logits) != 2:
        raise ValueError(f"logits must be [R, V], got shape {tuple(logits)}")
    expected = (logits[0], -(-logits[1] // WORD_BITS))
    if tuple(mask) != expected:
        raise ValueError(
            f"logits {tuple(logits)} need a mask of shape {expected}, a bit per token in words of {WORD_BITS}, "
            f"got {tuple(mask)}"
        )
