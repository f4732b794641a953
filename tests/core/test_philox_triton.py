"""NumPy's noise is Triton's, bit for bit."""

import numpy as np
import pytest

pytest.importorskip("llminfer.core.triton_environment", exc_type=ImportError)  # torch or triton may be missing

import torch

from llminfer.core.philox import randint4x, token_uniform, uniform
from llminfer.core.philox_triton import token_uniform as token_uniform_in_a_kernel
from llminfer.core.triton_environment import DEVICE, tl, triton

SEEDS = [0, 1, 7, -3, 2**31, 2**40 + 5, 2**63 - 1]


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
