"""Order-statistic intervals: against scipy's binomial law, against what they promise, and what they refuse."""

from math import inf

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from llminfer.basics.percentiles import (
    Percentile,
    Refusal,
    highest_percent,
    interval_ranks,
    percentile,
    percentile_row,
    samples_needed,
    upper_bound,
)

PERCENTS = (1, 10, 25, 50, 75, 90, 95, 99, 99.9)


@pytest.mark.parametrize(
    ("percent", "sided", "needed"), [(99, 1, 299), (99, 2, 368), (95, 1, 59), (95, 2, 72), (50, 2, 6), (99.9, 1, 2995)]
)
def test_how_many_samples_a_percentile_takes(percent, sided, needed):
    """0.99^n <= 0.05 from n = 299 on, and <= 0.025 from n = 368 on."""
    assert samples_needed(percent, 0.95, sided) == needed
    tail = 0.05 / sided
    assert (percent / 100) ** needed <= tail < (percent / 100) ** (needed - 1)


def test_a_low_percentile_fails_on_its_lower_side():
    assert samples_needed(1) == samples_needed(99) == 368
    assert samples_needed(1, sided=1) == 1  # from above only, any single time is above it with 99 %


@given(st.integers(1, 5000), st.sampled_from([1, 2]), st.sampled_from([0.9, 0.95, 0.99]))
def test_the_highest_percentile_is_the_one_that_needs_just_these_samples(samples, sided, confidence):
    highest = highest_percent(samples, confidence, sided)
    assert (highest / 100) ** samples == pytest.approx((1 - confidence) / sided)
    if highest > 50:
        assert samples_needed(highest - 1e-6, confidence, sided) <= samples
        assert samples_needed(min(highest + 0.01, 99.9999), confidence, sided) > samples or highest > 99.98


@given(st.integers(6, 3000), st.sampled_from(PERCENTS), st.sampled_from([0.8, 0.95, 0.99]))
def test_ranks_are_the_tightest_that_the_binomial_law_allows(samples, percent, confidence):
    if samples < samples_needed(percent, confidence):
        return
    low, high = interval_ranks(samples, percent, confidence)
    count = scipy.stats.binom(samples, percent / 100)
    tail, slack = (1 - confidence) / 2, 1e-9
    assert 1 <= low < high <= samples
    assert count.cdf(low - 1) <= tail + slack < count.cdf(low) + 2 * slack
    assert count.sf(high - 1) <= tail + slack
    assert count.sf(high - 2) >= tail - slack


def test_ranks_survive_a_probability_too_small_for_a_float():
    """0.01^100000 is 0 as a float; the interval is the normal one, 99000 ± 1.96 sqrt(990)."""
    low, high = interval_ranks(100_000, 99)
    assert (low, high) == pytest.approx((99_000 - 61.7, 99_000 + 61.7), abs=2)


@pytest.mark.parametrize("percent", [50, 90, 99])
def test_the_interval_holds_the_percentile_as_often_as_it_says(percent):
    """2000 samples of 400 exponential times, whose percentile is known; at 95 %, and not much more (it is discrete)."""
    rng = np.random.default_rng(7)
    times = np.sort(rng.exponential(size=(2000, 400)), axis=1)
    low, high = interval_ranks(400, percent)
    truth = -np.log(1 - percent / 100)
    covered = np.mean((times[:, low - 1] <= truth) & (truth <= times[:, high - 1]))
    assert 0.95 - 3 * 0.005 < covered < 0.985


def test_the_largest_of_a_hundred_times_is_most_often_no_bound_of_p99():
    """What tools print as p99 of 100 requests is below the true one with probability 0.99^100 = 37 %."""
    rng = np.random.default_rng(8)
    largest = rng.exponential(size=(4000, 100)).max(axis=1)
    assert np.mean(largest < -np.log(0.01)) == pytest.approx(0.99**100, abs=0.025)


@given(st.lists(st.floats(0, 1e6), min_size=400, max_size=500), st.sampled_from(PERCENTS[:-1]))
def test_the_value_is_numpys_nearest_rank(times, percent):
    got = percentile(times, percent)
    assert got.value_s == np.percentile(times, percent, method="inverted_cdf")
    assert got.low_s <= got.value_s <= got.high_s
    assert got.samples == len(times)


def test_a_rank_that_is_whole_is_not_rounded_up():
    """99.9 % of 41000 is 40959, which floats make 40959.00000000001."""
    assert percentile(np.arange(1.0, 41_001.0), 99.9).value_s == 40_959


def test_failures_sit_at_the_upper_end():
    times = [0.1] * 380 + [inf] * 20
    assert percentile(times, 90).value_s == 0.1
    assert percentile(times, 99).value_s == inf
    assert percentile(times, 95) == Percentile(95, 0.1, 0.1, inf, 400, 0.95)  # rank 380, and the bound is beyond


def test_too_few_times_are_refused_with_what_it_takes_and_what_can_be_said():
    with pytest.raises(ValueError, match=r"p99 refused: n = 100, and 368 are needed to bound it with 95% confidence"):
        percentile(np.ones(100), 99)
    with pytest.raises(ValueError, match=r"\(299 from above only\); highest with bounds is p96.4"):
        percentile(np.ones(100), 99)
    with pytest.raises(ValueError, match=r"p50 refused: n = 0, and 6 are needed"):
        percentile([], 50)


def test_a_row_gives_what_it_can_and_says_why_it_gives_no_more():
    row = percentile_row(np.linspace(1, 2, 100), (50, 90, 99))
    assert [type(cell) for cell in row] == [Percentile, Percentile, Refusal]
    assert row[2] == Refusal(99, 100, 368, highest_percent(100), 0.95)
    assert str(row[0]).startswith("p50 1495 ms (95% between ")
    assert all(isinstance(cell, Percentile) for cell in percentile_row(np.ones(368)))
    assert isinstance(percentile_row(np.ones(367))[-1], Refusal)


def test_a_bound_from_above_takes_299_times_for_p99():
    """With 299 times it is the largest of them."""
    times = np.arange(1.0, 300.0)
    assert upper_bound(times, 99) == 299
    with pytest.raises(ValueError, match="no bound of p99 with 95% confidence: it takes 299 times, got 298"):
        upper_bound(times[1:], 99)


@given(st.integers(59, 3000), st.sampled_from([50, 90, 95]), st.sampled_from([0.8, 0.95]))
def test_a_bound_from_above_is_the_lowest_that_holds(samples, percent, confidence):
    rank = upper_bound(np.arange(1.0, samples + 1.0), percent, confidence)
    count = scipy.stats.binom(samples, percent / 100)
    assert count.cdf(rank - 1) >= confidence - 1e-9
    assert count.cdf(rank - 2) < confidence + 1e-9
    if samples >= samples_needed(percent, confidence):
        assert rank <= interval_ranks(samples, percent, confidence)[1]


def test_times_that_are_not_numbers_are_refused():
    with pytest.raises(ValueError, match="NaN; give a failed request the latency infinity"):
        percentile([1.0] * 400 + [float("nan")], 50)


@pytest.mark.parametrize("percent", [0, 100, -1, 101])
def test_a_percentile_without_an_inside_is_refused(percent):
    with pytest.raises(ValueError, match="percent must lie strictly between 0 and 100"):
        samples_needed(percent)


@pytest.mark.parametrize(("confidence", "sided"), [(0.0, 1), (1.0, 2), (95, 2)])
def test_a_confidence_is_a_probability(confidence, sided):
    with pytest.raises(ValueError, match="confidence must lie strictly between 0 and 1"):
        samples_needed(50, confidence, sided)


def test_other_mistakes_are_named():
    with pytest.raises(ValueError, match="sided must be 1 .* or 2 .*, got 3"):
        samples_needed(50, sided=3)
    with pytest.raises(ValueError, match="samples must be at least 1, got 0"):
        highest_percent(0)


def test_a_bound_of_times_that_are_no_numbers_is_refused_too():
    with pytest.raises(ValueError, match="some of the times are NaN"):
        upper_bound([float("nan")] * 400, 50)


def test_the_smallest_percentiles_take_more_samples_than_anyone_has():
    assert samples_needed(1e-300) > 10**300
    with pytest.raises(ValueError, match="strictly between 0 and 100"):
        samples_needed(5e-324)  # a hundredth of which is 0
