"""Draws follow the softmax, and nothing but (seed, sequence, position) moves them."""

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from llminfer.basics.probabilities import softmax
from llminfer.basics.sampling import gumbel, sample
from llminfer.core.philox import token_uniform

LOGITS = np.array([2.0, -1.0, 0.5, 0.5, -30.0, 1.0, -np.inf, 3.0])
V = len(LOGITS)


def draws(logits: np.ndarray, temperature: float, count: int) -> np.ndarray:
    return np.array([sample(logits, temperature, token_uniform(7, 0, i, len(logits))) for i in range(count)])


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_draws_have_the_frequencies_of_the_softmax(temperature):
    counts = np.bincount(draws(LOGITS, temperature, 3000), minlength=V)
    expected = 3000 * softmax(LOGITS / temperature)
    likely = expected > 5  # the rule of thumb for the chi-square approximation
    assert counts[~likely].sum() <= 5
    observed, expected = counts[likely], expected[likely]
    assert scipy.stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-3


def test_a_masked_token_is_never_drawn():
    logits = np.where(np.arange(V) == 3, 0.0, -np.inf)
    assert set(draws(logits, 5.0, 200)) == {3}


@settings(deadline=None)
@given(
    logits=hnp.arrays(np.float32, st.integers(1, 40), elements=st.floats(-1e4, 1e4, width=32), unique=True),
    position=st.integers(0, 2**32 - 1),
    temperature=st.sampled_from([1e-9, 1e-300, 5e-324]),
)
def test_the_limit_of_low_temperature_is_greedy(logits, position, temperature):
    assert sample(logits, temperature, token_uniform(0, 0, position, len(logits))) == sample(logits, 0)


def test_high_temperature_is_uniform():
    counts = np.bincount(draws(LOGITS[LOGITS > -np.inf], 1e9, 1400), minlength=V - 1)
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


def test_greedy_takes_the_first_of_equals():
    assert sample(np.array([1.0, 3.0, 3.0]), 0) == 1


def test_a_draw_does_not_depend_on_the_level_of_the_logits():
    noise = token_uniform(1, 2, 3, V)
    assert sample(LOGITS, 1.0, noise) == sample(LOGITS + 1e6, 1.0, noise)


@pytest.mark.parametrize("winner", [0, 1, 5])
def test_the_largest_noisy_logit_has_the_probability_of_the_softmax(winner):
    """P(x_i + G_i is the largest) = integral of the density of G_i times the chances that all others are smaller."""
    others = np.delete(LOGITS[LOGITS > -np.inf], winner)
    law = scipy.stats.gumbel_r

    def density(height: float) -> float:
        return law.pdf(height - LOGITS[winner]) * np.prod(law.cdf(height - others))

    probability, _ = scipy.integrate.quad(density, -40, 60, epsabs=1e-12, limit=200)
    assert probability == pytest.approx(softmax(LOGITS)[winner], rel=1e-8)


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # the clock of a masked token never rings
def test_the_largest_noisy_logit_is_the_first_of_exponential_clocks():
    """argmax of x - log(E) is argmin of E / e^x: a race in which each token's clock rings at the rate e^x."""
    for position in range(200):
        uniform = token_uniform(5, 0, position, V)
        clocks = -np.log1p(-(uniform.astype(np.float64) + 2.0**-32)) / np.exp(LOGITS)
        assert sample(LOGITS, 1.0, uniform) == np.argmin(clocks)


def test_noise_has_the_gumbel_distribution():
    noise = gumbel(token_uniform(3, 0, 0, 20_000))
    assert scipy.stats.kstest(noise, "gumbel_r").pvalue > 1e-3


def test_the_ends_of_the_uniform_interval_give_finite_noise():
    ends = gumbel(np.array([0.0, np.nextafter(np.float32(1), np.float32(0))], np.float32))
    assert np.isfinite(ends).all()
    assert ends[0] > 20 > -2 > ends[1]


@pytest.mark.parametrize("logits", [[-np.inf, -np.inf], [0.0, np.nan], [0.0, np.inf]])
@pytest.mark.parametrize("temperature", [0, 1.0])
def test_logits_without_a_finite_largest_are_refused(logits, temperature):
    with pytest.raises(ValueError, match="the largest logit is"):
        sample(np.array(logits), temperature, token_uniform(0, 0, 0, 2))


@pytest.mark.parametrize("temperature", [-1.0, np.nan, np.inf])
def test_impossible_temperatures_are_refused(temperature):
    with pytest.raises(ValueError, match="temperature must be a finite number of at least 0"):
        sample(LOGITS, temperature, token_uniform(0, 0, 0, V))


def test_a_draw_needs_noise():
    with pytest.raises(ValueError, match="needs a uniform number per token"):
        sample(LOGITS, 1.0)
