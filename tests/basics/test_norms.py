"""Norms against torch's, and by the symmetries that define them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from llminfer.basics.norms import (
    layernorm,
    layernorm_cost,
    rmsnorm,
    rmsnorm_cost,
    rmsnorm_residual,
    rmsnorm_residual_cost,
)

RNG = np.random.default_rng(7)
ROWS = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(2, 40)), elements=st.floats(-100, 100, width=32))


def normal(*shape: int, dtype: type = np.float64) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("shape", [(1, 1), (1, 576), (5, 37), (2, 3, 64)])
def test_rmsnorm_is_that_of_torch(torch, shape):
    x, gain = normal(*shape), normal(shape[-1])
    expected = torch.nn.functional.rms_norm(torch.tensor(x), shape[-1:], torch.tensor(gain), eps=1e-6)
    np.testing.assert_allclose(rmsnorm(x, gain, 1e-6), expected.numpy(), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("shape", [(1, 1), (1, 768), (5, 37), (2, 3, 64)])
def test_layernorm_is_that_of_torch(torch, shape):
    x, gain, bias = normal(*shape) + 3, normal(shape[-1]), normal(shape[-1])
    expected = torch.nn.functional.layer_norm(
        torch.tensor(x), shape[-1:], torch.tensor(gain), torch.tensor(bias), eps=1e-5
    )
    np.testing.assert_allclose(layernorm(x, gain, bias), expected.numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_norms_stay_in_the_dtype_they_are_given(dtype):
    x, gain = normal(3, 16, dtype=dtype), np.ones(16, dtype)
    outputs = [rmsnorm(x, gain), *rmsnorm_residual(x, x, gain), layernorm(x, gain, gain)]
    assert {output.dtype for output in outputs} == {np.dtype(dtype)}


def test_float16_is_as_near_to_float64_as_its_ten_bits_allow():
    x, gain = normal(4, 64, dtype=np.float16), np.ones(64, np.float16)
    exact = rmsnorm(x.astype(np.float64), gain.astype(np.float64))
    np.testing.assert_allclose(rmsnorm(x, gain), exact, rtol=4 * 2**-11)


@pytest.mark.filterwarnings("error")
def test_a_float16_sum_of_squares_may_pass_65504():
    x, ones = np.full((1, 64), 40, np.float16), np.ones(64, np.float16)  # 64 * 40**2 = 102400
    x[0, ::2] *= -1
    for normed in (rmsnorm(x, ones), rmsnorm_residual(x, np.zeros_like(x), ones)[0], layernorm(x, ones, 0 * ones)):
        np.testing.assert_array_equal(normed, np.sign(x))


@settings(deadline=None)
@given(x=ROWS, scale=st.floats(0.01, 100))
def test_scaling_the_input_leaves_rmsnorm_unchanged_when_eps_vanishes(x, scale):
    x = x + np.sign(x) + (x == 0)  # no row near zero
    gain = np.ones(x.shape[1])
    np.testing.assert_allclose(rmsnorm(scale * x, gain, 1e-30), rmsnorm(x, gain, 1e-30), rtol=1e-12)


@settings(deadline=None)
@given(x=ROWS)
def test_rmsnorm_gives_every_row_the_length_of_the_square_root_of_its_width(x):
    x = x + np.sign(x) + (x == 0)
    length = np.linalg.norm(rmsnorm(x, np.ones(x.shape[1]), 1e-30), axis=-1)
    np.testing.assert_allclose(length, np.sqrt(x.shape[1]), rtol=1e-12)


@settings(deadline=None)
@given(x=ROWS, shift=st.floats(-100, 100))
def test_adding_a_constant_to_a_row_leaves_layernorm_unchanged(x, shift):
    gain, bias = np.ones(x.shape[1]), np.zeros(x.shape[1])
    np.testing.assert_allclose(layernorm(x + shift, gain, bias), layernorm(x, gain, bias), atol=1e-9)


def test_layernorm_of_a_constant_row_is_its_bias():
    bias = normal(8)
    np.testing.assert_array_equal(layernorm(np.full((1, 8), 3.0), normal(8), bias)[0], bias)


def test_a_row_of_zeros_stays_zero():
    np.testing.assert_array_equal(rmsnorm(np.zeros((1, 8)), normal(8)), np.zeros((1, 8)))


def test_the_fused_form_is_add_then_norm():
    x, residual, gain = normal(3, 16), normal(3, 16), normal(16)
    normed, total = rmsnorm_residual(x, residual, gain, 1e-6)
    np.testing.assert_array_equal(total, x + residual)
    np.testing.assert_array_equal(normed, rmsnorm(x + residual, gain, 1e-6))


def test_inputs_are_left_as_they_were():
    x, residual, gain = normal(3, 16), normal(3, 16), normal(16)
    before = x.copy(), residual.copy()
    rmsnorm_residual(x, residual, gain)
    layernorm(x, gain, gain)
    np.testing.assert_array_equal((x, residual), before)


@pytest.mark.parametrize("eps", [0.0, -1e-5, float("nan")])
def test_eps_must_be_positive(eps):
    x, gain = normal(1, 8), normal(8)
    for call in (lambda: rmsnorm(x, gain, eps), lambda: layernorm(x, gain, gain, eps)):
        with pytest.raises(ValueError, match="eps must be positive"):
            call()


def test_a_norm_moves_each_element_twice_and_the_fused_one_four_times():
    x, gain = np.zeros((4096, 4096), np.float32), np.zeros(4096, np.float32)
    assert rmsnorm_cost(x, gain).bytes == 2 * 4096 * 4096 * 4 + 4096 * 4
    assert rmsnorm_residual_cost(x, x, gain).bytes == 4 * 4096 * 4096 * 4 + 4096 * 4
    assert layernorm_cost(x, gain, gain).intensity < 1  # under one FLOP a byte: memory-bound on every device
