"""Philox4x32-10: random numbers as a pure function of a key and a counter, bit-equal to Triton's `tl.rand`.

There is no state to advance, so the noise of a token depends on nothing but its name (seed, sequence, position):
recomputing, forking or rolling back a sequence cannot shift it.
"""

import numpy as np
from jaxtyping import Float, Int, UInt32

MULTIPLIER_A, MULTIPLIER_B = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
KEY_STEP_A, KEY_STEP_B = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)  # golden ratio, sqrt(3) - 1
LOW_WORD, WORD_BITS = np.uint64(0xFFFFFFFF), np.uint64(32)
UNIFORM_SCALE = np.float32(4.6566127342e-10)
"""A little under 2**-31, so that the largest 31-bit integer still lands below 1 after rounding."""


def philox_4x32(
    counter: UInt32[np.ndarray, "*N 4"], key: UInt32[np.ndarray, "2"], rounds: int = 10
) -> UInt32[np.ndarray, "*N 4"]:
    """Mix each counter of four words with a key of two; every output bit depends on every input bit.

    Source: Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", section 3.3.
    """
    c0, c1, c2, c3 = np.moveaxis(counter.astype(np.uint64), -1, 0).copy()  # 64-bit words hold 32 x 32-bit products
    k0, k1 = key.astype(np.uint64)
    for _ in range(rounds):
        product_a, product_b = MULTIPLIER_A * c0, MULTIPLIER_B * c2
        c0, c1 = (product_b >> WORD_BITS) ^ c1 ^ k0, product_b & LOW_WORD
        c2, c3 = (product_a >> WORD_BITS) ^ c3 ^ k1, product_a & LOW_WORD
        k0, k1 = (k0 + KEY_STEP_A) & LOW_WORD, (k1 + KEY_STEP_B) & LOW_WORD
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)  # [N, 4]


def randint4x(seed: int, offsets: Int[np.ndarray, "*N"]) -> tuple[UInt32[np.ndarray, "*N"], ...]:
    """Four words of noise an offset: `tl.randint4x(seed, offsets)`. A 64-bit offset fills two words of the counter."""
    words = np.zeros((*offsets.shape, 4), np.uint32)  # [N, 4]
    words[..., 0] = offsets.astype(np.uint32)
    if offsets.dtype.itemsize == 8:
        words[..., 1] = (offsets >> 32).astype(np.uint32)
    noise = philox_4x32(words, _two_words(seed))
    return tuple(noise[..., word] for word in range(4))


def uniform(seed: int, offsets: Int[np.ndarray, "*N"]) -> Float[np.ndarray, "*N"]:
    """Uniform float32 in [0, 1), one an offset: `tl.rand(seed, offsets)`, bit for bit."""
    return as_uniform(randint4x(seed, offsets)[0])


def token_uniform(seed: int, sequence: int, position: int, vocabulary: int) -> Float[np.ndarray, "V"]:
    """Noise for choosing the token at `position` of `sequence`: one uniform float32 in [0, 1) a vocabulary entry.

    The key is the 64-bit seed; the counter is (token // 4, position, sequence low, sequence high), and token % 4 picks
    one of the four words that come out. Counters whose first word is 2**30 or more are never used here.
    philox_triton.py holds the same for kernels.
    Raises ValueError for a negative sequence, position or vocabulary, or one that its words cannot hold.
    """
    _require("sequence", sequence, 2**64)
    _require("position", position, 2**32)
    _require("vocabulary", vocabulary, 2**32)
    counter = np.empty((-(-vocabulary // 4), 4), np.uint32)  # [ceil(V / 4), 4]
    counter[:, 0] = np.arange(len(counter))
    counter[:, 1] = position
    counter[:, 2:] = _two_words(sequence)
    return as_uniform(philox_4x32(counter, _two_words(seed))).reshape(-1)[:vocabulary]  # [V]


def as_uniform(words: UInt32[np.ndarray, "*N"]) -> Float[np.ndarray, "*N"]:
    """Words to float32 in [0, 1) as Triton does: read as signed, fold the negative half over, scale by 2**-31."""
    signed = words.view(np.int32)
    return np.where(signed < 0, -signed - 1, signed).astype(np.float32) * UNIFORM_SCALE


def _two_words(number: int) -> UInt32[np.ndarray, "2"]:
    """Low and high word of a 64-bit number; a negative one in two's complement, as Triton takes it."""
    return np.array([number & 0xFFFFFFFF, (number >> 32) & 0xFFFFFFFF], np.uint32)


def _require(name: str, number: int, limit: int) -> None:
    if not 0 <= number < limit:
        raise ValueError(f"{name} must be from 0 to {limit - 1}, got {number}")
