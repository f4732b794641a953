"""Softmax against torch's, and by what makes it a distribution."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from llminfer.basics.probabilities import log_softmax, softmax, softmax_cost

RNG = np.random.default_rng(17)
SCORES = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 40)), elements=st.floats(-500, 500))


@pytest.mark.parametrize("shape", [(1,), (1, 1), (4, 199), (2, 3, 17)])
def test_softmax_and_its_logarithm_are_those_of_torch(shape):
    torch = pytest.importorskip("torch")
    x = 10 * RNG.standard_normal(shape)
    np.testing.assert_allclose(softmax(x), torch.softmax(torch.tensor(x), -1).numpy(), rtol=1e-12)
    np.testing.assert_allclose(log_softmax(x), torch.log_softmax(torch.tensor(x), -1).numpy(), rtol=1e-12, atol=1e-14)


@settings(deadline=None)
@given(x=SCORES)
def test_every_row_is_a_distribution(x):
    probabilities = softmax(x)
    assert np.all(probabilities >= 0)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=1e-12)


@settings(deadline=None)
@given(x=SCORES, shift=st.floats(-1000, 1000))
def test_adding_a_constant_to_a_row_leaves_its_softmax_unchanged(x, shift):
    np.testing.assert_allclose(softmax(x + shift), softmax(x), rtol=1e-9, atol=1e-300)


@settings(deadline=None)
@given(x=SCORES)
def test_log_softmax_is_the_logarithm_even_where_softmax_underflows(x):
    assert np.isfinite(log_softmax(x)).all()
    np.testing.assert_allclose(np.exp(log_softmax(x)), softmax(x), rtol=1e-9, atol=1e-300)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_scores_far_too_large_for_exp_do_not_overflow(dtype):
    x = np.array([[30000, 30000, -30000]], dtype)
    np.testing.assert_array_equal(softmax(x), np.array([[0.5, 0.5, 0.0]], dtype))
    assert softmax(x).dtype == log_softmax(x).dtype == dtype


@pytest.mark.filterwarnings("error")
def test_a_masked_score_gets_no_probability():
    x = np.array([[1.0, -np.inf, 1.0]])
    np.testing.assert_array_equal(softmax(x), [[0.5, 0.0, 0.5]])
    assert log_softmax(x)[0, 1] == -np.inf


@pytest.mark.parametrize("bad", [-np.inf, np.inf, np.nan])
def test_a_row_without_a_finite_maximum_is_refused_by_name(bad):
    x = np.zeros((3, 4))
    x[1] = bad
    for function in (softmax, log_softmax):
        with pytest.raises(ValueError, match=r"row \(1,\).*finite"):
            function(x)


def test_one_nan_among_numbers_is_refused():
    with pytest.raises(ValueError, match="nan"):
        softmax(np.array([1.0, np.nan, 2.0]))


def test_softmax_reads_and_writes_its_scores_once():
    x = np.zeros((2, 128256), np.float32)
    assert softmax_cost(x).bytes == 2 * x.nbytes
