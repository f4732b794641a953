"""The counter-based noise: published vectors, Triton's own `tl.rand`, and what sampling relies on."""

import numpy as np
import pytest
import torch
from scipy import stats

from llminfer.core.philox import as_uniform, philox_4x32, randint4x, token_uniform, uniform
from llminfer.core.philox_triton import token_uniform as token_uniform_in_a_kernel
from llminfer.core.triton_environment import DEVICE, tl, triton

# Random123's kat_vectors for philox4x32-10: counter, key, output. The third takes its digits from pi.
PUBLISHED = [
    ([0, 0, 0, 0], [0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]
SEEDS = [0, 1, 7, -3, 2**31, 2**40 + 5, 2**63 - 1]


@pytest.mark.parametrize(("counter", "key", "expected"), PUBLISHED)
def test_philox_gives_the_published_vectors(counter, key, expected):
    got = philox_4x32(np.array(counter, np.uint32), np.array(key, np.uint32))
    assert got.tolist() == expected


def test_counters_are_mixed_independently_of_their_company():
    counters = np.random.default_rng(0).integers(0, 2**32, (3, 5, 4), np.uint32)
    key = np.array([11, 12], np.uint32)
    alone = [philox_4x32(counter, key) for counter in counters.reshape(-1, 4)]
    np.testing.assert_array_equal(philox_4x32(counters, key).reshape(-1, 4), alone)


@triton.jit
def _rand_kernel(offset_ptr, uniform_ptr, word_ptr, seed, count, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    offsets = tl.load(offset_ptr + place)
    tl.store(uniform_ptr + place, tl.rand(seed, offsets))
    w0, w1, w2, w3 = tl.randint4x(seed, offsets)
    tl.store(word_ptr + place, w0.to(tl.int32, bitcast=True))
    tl.store(word_ptr + BLOCK + place, w1.to(tl.int32, bitcast=True))
    tl.store(word_ptr + 2 * BLOCK + place, w2.to(tl.int32, bitcast=True))
    tl.store(word_ptr + 3 * BLOCK + place, w3.to(tl.int32, bitcast=True))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_and_randint4x_equal_triton_bit_for_bit(seed, dtype):
    limits = np.iinfo(dtype)
    offsets = np.random.default_rng(1).integers(limits.min, limits.max, 256, dtype, endpoint=True)
    offsets[:4] = [0, 1, limits.max, limits.min]
    uniforms = torch.empty(256, dtype=torch.float32, device=DEVICE)
    words = torch.empty(4, 256, dtype=torch.int32, device=DEVICE)
    _rand_kernel[(1,)](torch.from_numpy(offsets).to(DEVICE), uniforms, words, seed, 256, BLOCK=256)
    np.testing.assert_array_equal(uniform(seed, offsets).view(np.uint32), uniforms.cpu().numpy().view(np.uint32))
    np.testing.assert_array_equal(np.stack(randint4x(seed, offsets)), words.cpu().numpy().view(np.uint32))


@triton.jit
def _token_noise_kernel(out_ptr, seed, sequence, position, BLOCK: tl.constexpr):
    first = tl.program_id(0) * BLOCK
    noise = token_uniform_in_a_kernel(seed, sequence, position, first, BLOCK)
    tl.store(out_ptr + first + tl.arange(0, BLOCK), noise)


@pytest.mark.parametrize(
    ("seed", "sequence", "position"), [(0, 0, 0), (1, 1, 1), (2**40 + 5, 2**35 + 9, 4095), (7, 3, 2**31 - 1)]
)
def test_token_noise_is_the_same_inside_a_kernel(seed, sequence, position):
    out = torch.empty(256, dtype=torch.float32, device=DEVICE)
    _token_noise_kernel[(4,)](out, seed, sequence, position, BLOCK=64)
    np.testing.assert_array_equal(out.cpu().numpy(), token_uniform(seed, sequence, position, 256))


def test_token_noise_does_not_depend_on_the_size_of_the_vocabulary():
    np.testing.assert_array_equal(token_uniform(3, 5, 8, 1000)[:37], token_uniform(3, 5, 8, 37))


def test_words_of_either_sign_become_uniforms_below_one():
    words = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)
    folded = as_uniform(words)
    assert folded.dtype == np.float32
    assert folded.min() == 0.0 and folded.max() < 1.0


def test_token_noise_is_uniform():
    noise = np.concatenate([token_uniform(0, 0, position, 4096) for position in range(16)])
    assert stats.kstest(noise, "uniform").pvalue > 0.01


NEIGHBOURS = {
    "next token": (token_uniform(1, 2, 3, 20001)[:-1], token_uniform(1, 2, 3, 20001)[1:]),
    "next position": (token_uniform(1, 2, 3, 20000), token_uniform(1, 2, 4, 20000)),
    "next sequence": (token_uniform(1, 2, 3, 20000), token_uniform(1, 3, 3, 20000)),
    "sequence 2**32 on": (token_uniform(1, 2, 3, 20000), token_uniform(1, 2 + 2**32, 3, 20000)),
    "next seed": (token_uniform(1, 2, 3, 20000), token_uniform(2, 2, 3, 20000)),
    "seed 2**32 on": (token_uniform(1, 2, 3, 20000), token_uniform(1 + 2**32, 2, 3, 20000)),
    "sequence and position swapped": (token_uniform(1, 2, 3, 20000), token_uniform(1, 3, 2, 20000)),
}


@pytest.mark.parametrize("neighbour", NEIGHBOURS)
def test_noise_of_neighbours_is_independent(neighbour):
    one, other = NEIGHBOURS[neighbour]
    table, _, _ = np.histogram2d(one, other, bins=8, range=[[0, 1], [0, 1]])
    assert stats.chisquare(table.ravel()).pvalue > 0.01
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(one.size)  # four standard deviations


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((0, -1, 0, 8), "sequence"),
        ((0, 0, 2**32, 8), "position"),
        ((0, 2**64, 0, 8), "sequence"),
        ((0, 0, 0, -1), "vocabulary"),
    ],
)
def test_what_does_not_fit_its_words_is_refused_by_name(arguments, named):
    with pytest.raises(ValueError, match=named):
        token_uniform(*arguments)
