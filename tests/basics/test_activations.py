"""Activations against torch's, and by the identities they satisfy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from llminfer.basics.activations import geglu, gelu, gelu_cost, swiglu, swiglu_clamped, swiglu_cost

RNG = np.random.default_rng(13)
NUMBERS = arrays(np.float64, st.integers(1, 20), elements=st.floats(-50, 50))


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("shape", [(1, 2), (3, 74), (2, 3, 64)])
def test_the_gated_forms_are_those_of_torch(torch, shape):
    gate_up = 5 * RNG.standard_normal(shape)
    gate, up = torch.tensor(gate_up).chunk(2, dim=-1)
    silu, tanh_gelu = torch.nn.functional.silu(gate), torch.nn.functional.gelu(gate, approximate="tanh")
    np.testing.assert_allclose(swiglu(gate_up), (silu * up).numpy(), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(geglu(gate_up), (tanh_gelu * up).numpy(), rtol=1e-12, atol=1e-14)


def test_the_clamped_form_is_that_of_transformers(torch):
    gpt_oss = pytest.importorskip("transformers.models.gpt_oss.modeling_gpt_oss")
    transformers = pytest.importorskip("transformers")
    config = transformers.GptOssConfig(
        hidden_size=8, intermediate_size=8, num_local_experts=1, num_hidden_layers=1, vocab_size=8
    )
    gate_up = 6 * RNG.standard_normal((5, 74))
    interleaved = torch.tensor(
        gate_up.reshape(5, 2, 37).swapaxes(1, 2).reshape(5, 74)
    )  # theirs: gate, up, gate, up, ...
    expected = gpt_oss.GptOssExperts(config)._apply_gate(interleaved).numpy()
    np.testing.assert_allclose(swiglu_clamped(gate_up), expected, rtol=1e-12, atol=1e-14)


def test_gelu_is_the_tanh_form_of_torch(torch):
    x = np.linspace(-8, 8, 1001)
    expected = torch.nn.functional.gelu(torch.tensor(x), approximate="tanh").numpy()
    np.testing.assert_allclose(gelu(x), expected, rtol=1e-12, atol=1e-15)


def test_the_tanh_form_is_within_5e_4_of_the_exact_one():
    x = np.linspace(-8, 8, 10001)
    exact = x * (1 + np.array([math.erf(value / math.sqrt(2)) for value in x])) / 2
    assert 4e-4 < np.abs(gelu(x) - exact).max() < 5e-4


@settings(deadline=None)
@given(x=NUMBERS)
def test_gelu_of_x_and_of_minus_x_differ_by_x(x):
    np.testing.assert_allclose(gelu(x) - gelu(-x), x, rtol=1e-12, atol=1e-12)


@settings(deadline=None)
@given(gate=NUMBERS)
def test_silu_of_x_and_of_minus_x_differ_by_x(gate):
    one = np.ones_like(gate)
    difference = swiglu(np.concatenate([gate, one])) - swiglu(np.concatenate([-gate, one]))
    np.testing.assert_allclose(difference, gate, rtol=1e-12, atol=1e-12)


@settings(deadline=None)
@given(gate=NUMBERS, scale=st.floats(-10, 10))
def test_a_gated_form_is_linear_in_up(gate, scale):
    up = np.arange(1.0, len(gate) + 1)
    for gated in (swiglu, geglu):
        scaled = gated(np.concatenate([gate, scale * up]))
        np.testing.assert_allclose(scaled, scale * gated(np.concatenate([gate, up])), rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_gate_far_from_zero_is_open_or_shut_without_a_warning(dtype):
    gate_up = np.array([[200, -200, 3, 3]], dtype)
    for gated in (swiglu, geglu):
        np.testing.assert_allclose(gated(gate_up), np.array([[600, 0]], dtype), atol=1e-80)
        assert gated(gate_up).dtype == dtype
    np.testing.assert_allclose(swiglu_clamped(gate_up), np.array([[28, 0]], dtype), rtol=1e-3, atol=1e-80)


def test_the_first_half_is_the_gate():
    np.testing.assert_array_equal(swiglu(np.array([[0.0, 0.0, 5.0, 7.0]])), [[0.0, 0.0]])
    assert np.all(swiglu(np.array([[5.0, 7.0, 0.0, 0.0]])) == 0)
    assert swiglu(np.array([[50.0, 2.0]]))[0, 0] == pytest.approx(100)


def test_an_odd_last_axis_has_no_halves():
    for gated in (swiglu, geglu, swiglu_clamped):
        with pytest.raises(ValueError, match=r"even last axis.*\(2, 3\)"):
            gated(np.ones((2, 3)))


def test_a_gated_form_reads_two_elements_and_writes_one():
    gate_up = np.ones((4, 2 * 14336), np.float32)
    cost = swiglu_cost(gate_up)
    assert cost.read_bytes == 2 * cost.write_bytes == gate_up.nbytes
    assert gelu_cost(gate_up).bytes == 2 * gate_up.nbytes
