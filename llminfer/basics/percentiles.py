"""Percentiles that say how far they can be trusted, and that refuse where a sample is too small to know them.

Nothing is assumed of how times are distributed. Of n independent times each lies below the true p-th percentile with
probability p, so how many of them do is a binomial count, and two of the sorted times bound the percentile with a
probability that can be computed beforehand. With few times no bound exists at all: all 100 of 100 times lie below the
99th percentile more than once in three runs, and then whatever a tool prints as p99, at most the largest, is too small.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log, log1p

import numpy as np
from jaxtyping import Float

Numbers = Sequence[float] | Float[np.ndarray, "n"]


@dataclass(frozen=True)
class Percentile:
    """The `percent`-th percentile of `samples` times: its best estimate, and the times between which it lies.

    The true percentile lies in low_s..high_s with probability `confidence` at least. Book section 3.1.8.
    """

    percent: float
    value_s: float
    low_s: float
    high_s: float
    samples: int
    confidence: float

    def __str__(self) -> str:
        bounds = f"{self.confidence:.0%} between {1e3 * self.low_s:.4g} and {1e3 * self.high_s:.4g} ms"
        return f"p{self.percent:g} {1e3 * self.value_s:.4g} ms ({bounds}, n = {self.samples})"


@dataclass(frozen=True)
class Refusal:
    """What is said in place of a percentile that a sample cannot bound: what it would take, and what can be said.

    Book section 3.1.8.
    """

    percent: float
    samples: int
    needed: int
    highest_percent: float
    confidence: float

    def __str__(self) -> str:
        instead = f"; highest with bounds is p{self.highest_percent:.3g}" if self.highest_percent > 50 else ""
        return (
            f"p{self.percent:g} refused: n = {self.samples}, and {self.needed} are needed to bound it with "
            f"{self.confidence:.0%} confidence ({samples_needed(self.percent, self.confidence, sided=1)} from above "
            f"only){instead}"
        )


def samples_needed(percent: float, confidence: float = 0.95, sided: int = 2) -> int:
    """How many independent times bound a percentile: 368 for p99 from both sides, 299 from above only.

    The largest of n times exceeds the percentile unless all n lie below it, which happens with probability p^n. That
    must be at most 1 - confidence, or half of it where the lower bound may fail too (sided=2). A percentile below the
    median fails first on the other side. Raises ValueError for a percent outside 0..100 or sided other than 1 or 2.
    Book section 3.1.8.
    """
    p = _share(percent)
    tail = (1 - _check_confidence(confidence)) / _check_sided(sided)
    # one-sided is from above: a latency must not be underestimated; log1p, as 1 - 1e-300 is 1
    log_farther = log1p(-p) if sided == 2 and p < 0.5 else log(p)
    return max(1, ceil(log(tail) / log_farther - 1e-9))


def highest_percent(samples: int, confidence: float = 0.95, sided: int = 2) -> float:
    """The highest percentile that `samples` times can bound from above: 96.4 for a hundred of them.

    Book section 3.1.8.
    """
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples}")
    tail = (1 - _check_confidence(confidence)) / _check_sided(sided)
    return 100 * tail ** (1 / samples)


def interval_ranks(samples: int, percent: float, confidence: float = 0.95) -> tuple[int, int]:
    """Which of n sorted times bound the percentile: ranks from 1 to n.

    With B ~ Binomial(n, p): the time of rank l lies at or below it when B >= l, that of rank u at or above it when
    B < u. Each is chosen as near as it can be while its own failure has at most probability (1 - confidence) / 2.
    Raises ValueError where no such ranks exist. Source: Conover 1999, "Practical Nonparametric Statistics", 3.2.
    Book section 3.1.8.
    """
    if samples < samples_needed(percent, confidence):
        raise ValueError(str(_refusal(percent, samples, confidence)))
    at_most = _binomial_cdf(samples, _share(percent))  # [n + 1], at_most[k] = P(B <= k)
    tail = (1 - confidence) / 2
    low = int(np.searchsorted(at_most, tail, side="right"))  # P(B <= low - 1) <= tail
    high = int(np.searchsorted(at_most, 1 - tail, side="left")) + 1  # P(B <= high - 1) >= 1 - tail
    return low, high


def percentile(times: Numbers, percent: float, confidence: float = 0.95) -> Percentile:
    """A percentile of independent times in seconds with its interval; infinite times, of failed requests, are welcome.

    Its value is the smallest time that `percent` % do not exceed ("nearest rank"): always one that was measured.
    Raises ValueError for too few times, saying how many it takes, and for times that are not numbers.
    Source: Hyndman and Fan 1996, definition 1. Book section 3.1.8.
    """
    ordered = _ordered(times)  # [n]
    n = len(ordered)
    low, high = interval_ranks(n, percent, confidence)
    nearest = ceil(n * percent / 100 - 1e-9)  # 1e-9: n * 99.9 / 100 may land a rounding error above a whole number
    value, below, above = (float(ordered[rank - 1]) for rank in (nearest, low, high))
    return Percentile(percent, value, below, above, n, confidence)


def upper_bound(times: Numbers, percent: float, confidence: float = 0.95) -> float:
    """The time that the true percentile does not exceed, with probability `confidence` at least: enough for a promise.

    One-sided, so it takes fewer times than an interval, 299 for p99, and is nearer than the interval's upper end.
    Raises ValueError for too few times and for times that are not numbers. Book section 3.1.8.
    """
    ordered = _ordered(times)  # [n]
    n, needed = len(ordered), samples_needed(percent, confidence, sided=1)
    if n < needed:
        raise ValueError(f"no bound of p{percent:g} with {confidence:.0%} confidence: it takes {needed} times, got {n}")
    at_most = _binomial_cdf(n, _share(percent))  # [n + 1]
    return float(ordered[np.searchsorted(at_most, confidence, side="left")])  # rank u = index + 1: P(B < u) >= it


def percentile_row(
    times: Numbers, percents: Sequence[float] = (50, 90, 95, 99), confidence: float = 0.95
) -> list[Percentile | Refusal]:
    """A row of a report: each percentile, or the reason why it cannot be given. Book section 3.1.8."""
    n = len(times)
    return [
        percentile(times, percent, confidence)
        if n >= samples_needed(percent, confidence)
        else _refusal(percent, n, confidence)
        for percent in percents
    ]


def _ordered(times: Numbers) -> Float[np.ndarray, "n"]:
    """The times, shortest first. Raises ValueError if one is not a number."""
    ordered = np.sort(np.asarray(times, dtype=float))
    if np.isnan(ordered).any():
        raise ValueError("some of the times are NaN; give a failed request the latency infinity, not NaN")
    return ordered


def _refusal(percent: float, samples: int, confidence: float) -> Refusal:
    highest = highest_percent(samples, confidence) if samples else 0.0
    return Refusal(percent, samples, samples_needed(percent, confidence), highest, confidence)


def _binomial_cdf(n: int, p: float) -> Float[np.ndarray, "ranks"]:
    """P(B <= k) for k = 0..n, by logarithms, as p^n may be smaller than the smallest float."""
    k = np.arange(n)
    steps = np.log((n - k) / (k + 1)) + log(p) - log1p(-p)  # log P(B = k + 1) - log P(B = k)
    log_pmf = n * log1p(-p) + np.concatenate([[0.0], np.cumsum(steps)])  # [n + 1]
    return np.cumsum(np.exp(log_pmf))


def _share(percent: float) -> float:
    if not 0 < percent / 100 < 1:
        raise ValueError(f"percent must lie strictly between 0 and 100, got {percent}; 0 and 100 have no bound")
    return percent / 100


def _check_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1, such as 0.95, got {confidence}")
    return confidence


def _check_sided(sided: int) -> int:
    if sided not in (1, 2):
        raise ValueError(f"sided must be 1 (a bound from above) or 2 (from both sides), got {sided}")
    return sided
