"""Judge's side of gumbel_sampling: exact probabilities of every outcome, and a chi-square test of the frequencies.

The threshold is where chance alone would put one right program in a billion. Wrong laws lie far beyond.
"""

from itertools import permutations, product

import numpy as np

from llminfer.grading.spec import Case, Mutant, Variant

VERSION = 1
DRAWS = 8000
SIGMAS = 6.5  # of a normal variable, exceeded by chance once in 1e10; the tails of counts are a little heavier
LEAST = 25.0  # expected draws of a cell; rarer outcomes are counted together


def reference(logits, count, draws, seed):
    """Not tokens but their law: [V] * count, the probability of each row. 0 for what must never come out."""
    if logits.ndim != 1 or not np.isfinite(logits).sum() >= count >= 1 or draws < 1000 or np.isnan(logits).any():
        raise ValueError("logits [V] of which count are finite, and enough draws to judge")
    return _law(np.asarray(logits, np.float64), count)


def _law(logits, count, again=False):
    """Token after token from what is left; `again`: from all of them each time."""
    weights = np.exp(logits - logits.max())
    law = np.zeros((len(logits),) * count)
    for row in product(range(len(logits)), repeat=count) if again else permutations(range(len(logits)), count):
        left, probability = weights.copy(), 1.0
        for token in row:
            probability *= left[token] / left.sum() if left.sum() else 0.0
            left[token] = weights[token] if again else 0.0
        law[row] = probability
    return law


def accept(case, got, expected):
    """None if the rows come out as often as `expected` says, else what is wrong."""
    count, draws = case.arguments["count"], case.arguments["draws"]
    if not isinstance(got, np.ndarray) or got.dtype.kind not in "iu":
        return "token ids are expected, an array of integers"
    if got.shape != (draws, count):
        return f"shape ({draws}, {count}) is expected, a row for each draw, this is {got.shape}"
    if got.min() < 0 or got.max() >= len(expected):
        return f"ids lie in 0..{len(expected) - 1}, these in {got.min()}..{got.max()}"
    counts = np.zeros(expected.shape)
    np.add.at(counts, tuple(got.T), 1)
    impossible = np.argwhere((counts > 0) & (expected == 0))
    if len(impossible):
        row, times = impossible[0].tolist(), int(counts[tuple(impossible[0])])
        return f"the row {row} came out {times} times; it has probability 0 (a masked token, or one drawn twice)"
    surprise, limit = _chi_square(counts.ravel(), draws * expected.ravel())
    if surprise <= limit:
        return None
    first, wanted = (table.reshape(len(expected), -1).sum(axis=1) for table in (counts / draws, expected))
    return (
        f"in {draws} draws the first token was 0, 1, ... with frequencies {_listed(first)}; expected are "
        f"{_listed(wanted)}. Over all outcomes chi-square is {surprise:.0f}, and chance stays below {limit:.0f}"
    )


def _chi_square(counts, expected):
    """The statistic, and the value that it exceeds by chance at SIGMAS (Wilson and Hilferty 1931)."""
    rare = expected < LEAST
    cells = list(zip(counts[~rare], expected[~rare], strict=True))
    if expected[rare].sum() >= LEAST or not cells:
        cells.append((counts[rare].sum(), expected[rare].sum()))
    else:  # too few to be a cell: with the last of the others
        cells[-1] = (cells[-1][0] + counts[rare].sum(), cells[-1][1] + expected[rare].sum())
    surprise = sum((seen - wanted) ** 2 / wanted for seen, wanted in cells)
    freedom = max(len(cells) - 1, 1)
    return surprise, freedom * (1 - 2 / (9 * freedom) + SIGMAS * (2 / (9 * freedom)) ** 0.5) ** 3


def _listed(numbers):
    return "[" + ", ".join(f"{number:.3f}" for number in numbers) + "]"


def cases(group, rng):
    if group == "one token":
        yield _case("a coin", [0.0, 0.0], 1, rng)
        yield _case("one in four", [0.0, np.log(3.0)], 1, rng)
        yield _case("six tokens", [1.0, -1.0, 0.5, 2.0, 0.0, -2.0], 1, rng)
    elif group == "several tokens":
        yield _case("two of three", [0.0, 1.0, 2.0], 2, rng)
        yield _case("three of three: an order", [1.5, 0.0, -1.0], 3, rng)
        yield _case("two of five", rng.normal(size=5), 2, rng)
    elif group == "masks and large logits":
        yield _case("two masked", [0.5, -np.inf, 1.0, -np.inf, 0.0], 2, rng)
        yield _case("near 10,000", [10000.0, 9999.0, 9998.5, -10000.0], 1, rng)
        yield _case("near -10,000", [-10000.0, -10001.0, -10002.0], 2, rng)
    elif group == "any logits":
        for i in range(4):
            logits = 1.5 * rng.normal(size=int(rng.integers(3, 7)))
            logits[rng.integers(len(logits))] = (-np.inf, 0.0)[i % 2]
            yield _case(f"logits {i + 1}", logits, int(rng.integers(1, 3)), rng)


def _case(label, logits, count, rng):
    seed = int(rng.integers(2**31))
    return Case({"logits": np.array(logits), "count": count, "draws": DRAWS, "seed": seed}, label=label)


UNIFORM = (
    "uniform = np.random.default_rng(seed).random((draws, len(logits)))  # [draws, V], each token its own in each draw"
)
SCORES = "scores = logits - np.log(-np.log(uniform))"
CHOICE = "return np.argsort(-scores, axis=-1)[:, :count]"


def _simulated(scores, largest_first=True):
    """The law of a mistake that has no formula, from many draws: `scores(logits, uniform)` instead of the right "
    "ones."""

    def law(logits, count, draws, seed):
        with np.errstate(all="ignore"):
            found = scores(logits, np.random.default_rng(1).random((10 * DRAWS, len(logits))))
        rows = np.argsort(-found if largest_first else found, axis=-1)[:, :count]
        table = np.zeros((len(logits),) * count)
        np.add.at(table, tuple(rows.T), 1 / len(rows))
        return np.maximum(table, 1e-7)  # what never came may still come

    return law


def _of_probabilities(logits, count, draws, seed):
    return _law(_law(logits, 1), count)


def _with_repetition(logits, count, draws, seed):
    return _law(logits, count, again=True)


def _by_id(logits, count, draws, seed):
    law = _law(logits, count)
    ordered = np.zeros_like(law)
    for row in np.ndindex(law.shape):
        ordered[tuple(sorted(row))] += law[row]
    return ordered


def _backwards(logits, count, draws, seed):
    return np.transpose(_law(logits, count))


def _no_chance(logits, count, draws, seed):
    law = np.zeros((len(logits),) * count)
    law[tuple(np.argsort(-logits)[:count])] = 1
    return law


MUTANTS = (
    Mutant(
        "a number for each draw",
        ((UNIFORM, "uniform = np.random.default_rng(seed).random((draws, 1))"),),
        like=_no_chance,
        hint="Always the same tokens: those with the largest logits. How many random numbers does one draw need so "
        "that "
        "any token can win?",
    ),
    Mutant(
        "noise on probabilities",
        ((SCORES, "p = np.exp(logits - np.max(logits))\n        scores = p / p.sum() - np.log(-np.log(uniform))"),),
        like=_of_probabilities,
        hint="Your frequencies lie too close together. The noise goes onto the logits; what are yours when it is "
        "added?",
    ),
    Mutant(
        "a logarithm too few",
        ((SCORES, "scores = logits - np.log(uniform)"),),
        like=_simulated(lambda logits, uniform: logits - np.log(uniform)),
        hint="Your noise has another law: -log(U) is always positive, and Gumbel's is not. Compare the formula.",
    ),
    Mutant(
        "uniform noise",
        ((SCORES, "scores = logits + uniform"),),
        like=_simulated(lambda logits, uniform: logits + uniform),
        hint="Your noise never exceeds 1: a token whose logit is smaller by more than that can never win.",
    ),
    Mutant(
        "normal noise",
        ((SCORES, "scores = logits + np.random.default_rng(seed).normal(size=uniform.shape)"),),
        like=_simulated(lambda logits, uniform: logits + np.random.default_rng(2).normal(size=uniform.shape)),
        hint="Near the softmax, and not equal to it. Only one law of noise gives it exactly.",
    ),
    Mutant(
        "the sign of the noise",
        ((SCORES, "scores = logits + np.log(-np.log(uniform))"),),
        like=_simulated(lambda logits, uniform: logits + np.log(-np.log(uniform))),
        hint="The noise has its long tail on the wrong side. Which sign has the outer logarithm?",
    ),
    Mutant(
        "noise of half the size",
        ((SCORES, "scores = logits - 0.5 * np.log(-np.log(uniform))"),),
        like=lambda logits, count, draws, seed: _law(2 * logits, count),
        hint="Your frequencies are those of the squared probabilities. Scaling the noise is a temperature.",
    ),
    Mutant(
        "smallest first",
        ((CHOICE, "return np.argsort(scores, axis=-1)[:, :count]"),),
        like=_simulated(lambda logits, uniform: logits - np.log(-np.log(uniform)), largest_first=False),
        hint="Improbable tokens come out most often. Which end of a sorted array do you take?",
    ),
    Mutant(
        "the largest, backwards",
        ((CHOICE, "return np.argsort(scores, axis=-1)[:, -count:]"),),
        like=_backwards,
        hint="The right tokens; but the first of a row should be the one with the largest sum.",
    ),
    Mutant(
        "in order of id",
        ((CHOICE, "return np.sort(np.argsort(-scores, axis=-1)[:, :count], axis=-1)"),),
        like=_by_id,
        hint="The right tokens; but your rows are in order of their ids, not of drawing.",
    ),
    Mutant(
        "drawn again",
        ((SCORES, "scores = (logits - np.log(-np.log(np.random.default_rng(seed).random((count, *uniform.shape)))))"),
         (CHOICE, "return np.argmax(scores, axis=-1).T")),
        like=_with_repetition,
        hint="Single tokens come out right, but some rows hold a token twice. One noise for all tokens of a row says "
        "in "
        "what order they come.",
    ),
)  # fmt: skip

RACE = '''
import numpy as np


def gumbel_sampling(logits, count, draws, seed):
    """An exponential race: token v arrives after a time with the rate of its weight."""
    rng = np.random.default_rng(seed)
    with np.errstate(divide="ignore"):
        times = rng.exponential(size=(draws, len(logits))) / np.exp(logits - logits.max())
    return np.argsort(times, axis=1)[:, :count]
'''

ONE_BY_ONE = '''
import numpy as np


def gumbel_sampling(logits, count, draws, seed):
    """Token by token: a cumulative sum over what is left, and a uniform number that falls into it."""
    rng = np.random.default_rng(seed)
    left = np.tile(np.exp(logits - logits.max()), (draws, 1))
    tokens = np.empty((draws, count), np.int32)
    for i in range(count):
        total = np.cumsum(left, axis=-1)
        aim = rng.random((draws, 1)) * total[:, -1:]
        tokens[:, i] = np.sum(total <= aim, axis=-1)
        left[np.arange(draws), tokens[:, i]] = 0
    return tokens
'''

BY_THE_LIBRARY = """
import numpy as np

from llminfer.basics import gumbel


def gumbel_sampling(logits, count, draws, seed):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(draws):
        scores = logits.astype(np.float64) + gumbel(rng.random(len(logits)))
        rows.append(np.argpartition(-scores, count - 1)[:count] if count == 1 else np.argsort(-scores)[:count])
    return np.array(rows)
"""

HONEST = (
    Variant("an exponential race", source=RACE),
    Variant("token by token", source=ONE_BY_ONE),
    Variant("the library's noise, a draw at a time", source=BY_THE_LIBRARY),
    Variant("NumPy's Gumbel", ((SCORES, "scores = logits + np.random.default_rng(seed).gumbel(size=uniform.shape)"),)),
)
