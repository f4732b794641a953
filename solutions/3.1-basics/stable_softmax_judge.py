"""Judge's side of stable_softmax: e^(difference) by `math`, row by row, summed exactly."""

import math

import numpy as np

from llminfer.grading.spec import Case, Mutant, Tolerance, Variant

VERSION = 1
TOLERANCE = Tolerance(relative=1e-5)  # float32 holds 6e-8 of a number, and rows have at most 100 terms


def reference(x):
    if x.ndim == 0 or not x.size or np.isnan(x).any() or not np.isfinite(x.max(axis=-1)).all():
        raise ValueError("every row needs a finite largest score")
    rows = [_row(row) for row in x.reshape(-1, x.shape[-1]).tolist()]
    return np.array(rows).reshape(x.shape).astype(x.dtype)


def _row(scores):
    """1 over the sum of e^(other - own): no largest score is looked for, and what overflows is a probability of 0."""
    return [1 / math.fsum(_exp(other - own) for other in scores) if own > -math.inf else 0.0 for own in scores]


def _exp(x):
    return math.inf if x > 700 else math.exp(x)


def cases(group, rng):
    if group == "small scores":
        yield Case({"x": np.array([[0.0, 0.0]])}, label="two equal scores")
        yield Case({"x": np.array([[3.0]], np.float32)}, label="a row of one")
        yield Case({"x": rng.normal(size=(3, 5)).astype(np.float32)}, label="three rows of five")
        yield Case({"x": rng.normal(size=(2, 100))}, label="rows of 100 in float64")
    elif group == "ten thousand":
        yield Case({"x": np.array([[1e4, 1e4 - 1, 1e4 - 2]], np.float32)}, label="a row at 10,000")
        yield Case({"x": np.array([[-1e4, -1e4 - 1, -1e4 - 2]], np.float32)}, label="a row at -10,000")
        rows = np.array([[1e4], [-1e4], [0.0]]) + rng.normal(size=(3, 4))
        yield Case({"x": rows.astype(np.float32)}, label="rows far apart")
        yield Case({"x": 1e4 * rng.normal(size=(4, 7))}, label="rows of wide spread")
    elif group == "masked scores":
        x = rng.normal(size=(4, 6)).astype(np.float32) + np.array([[0], [1e4], [-1e4], [0]], np.float32)
        x[rng.random(x.shape) < 0.5] = -np.inf
        x[:, rng.integers(6)] = [0.5, 1e4, -1e4, 2.0]
        yield Case({"x": np.array([-np.inf, 0.0, -np.inf])}, label="one score is left")
        yield Case({"x": x}, label="half of the scores masked")
    elif group == "any shape":
        yield Case({"x": rng.normal(size=6)}, label="one axis")
        yield Case({"x": (1e4 * rng.normal(size=(2, 3, 4))).astype(np.float32)}, label="three axes")
        yield Case({"x": rng.normal(size=(2, 1, 3, 5)) - 1e4}, label="four axes")


PEAK = "peak = np.max(x, axis=-1, keepdims=True)  # [..., 1], each row's own"
WEIGHTS = "weights = np.exp(x - peak)  # the largest is 1: nothing overflows, and no sum is 0"
RESULT = "return weights / np.sum(weights, axis=-1, keepdims=True)"

MUTANTS = (
    Mutant(
        "nothing subtracted",
        ((WEIGHTS, "weights = np.exp(x)"),),
        hint="Small scores come out right and large ones as NaN. Print np.exp(np.float32(10000)), and what is left "
        "when "
        "you divide it by itself. What could you do to a row's scores that leaves its probabilities as they are?",
    ),
    Mutant(
        "one maximum for all rows",
        ((PEAK, "peak = np.max(x)"),),
        hint="The row with the largest score of all is right, and rows far below it are NaN. Whose largest score did "
        "you "
        "subtract from them?",
    ),
    Mutant(
        "the largest magnitude",
        ((PEAK, "peak = np.max(np.abs(x), axis=-1, keepdims=True)"),),
        hint="Rows near 10,000 are right, rows near -10,000 are not. Work out by hand what you subtract from -10,000.",
    ),
    Mutant(
        "down the columns",
        (
            (PEAK, "peak = np.max(x, axis=0, keepdims=True)"),
            (RESULT, "return weights / np.sum(weights, axis=0, keepdims=True)"),
        ),
        hint="Add up your result along each axis. Which sums are 1, and which should be?",
    ),
    Mutant(
        "clipped",
        ((WEIGHTS, "weights = np.exp(np.clip(x, -80, 80))"),),
        hint="No NaN, but scores of 10,000 and 9,999 came out equally probable. Probabilities depend on differences "
        "of scores: which differences are left after your clipping?",
    ),
    Mutant(
        "the logarithm of the sum, rounded",
        ((WEIGHTS, "weights = np.exp(x - np.logaddexp.reduce(x, axis=-1, keepdims=True))"), (RESULT, "return weights")),
        hint="Near 10,000 your float32 rows are right to three digits only, and do not add up to 1. How far apart are "
        "two neighbouring float32 numbers at 10,000, and which of your numbers has to lie there?",
    ),
    Mutant(
        "powers of two",
        ((WEIGHTS, "weights = np.exp2(x - peak)"),),
        hint="Two scores that differ by 1 should have probabilities that differ by a factor of e. What is your factor?",
    ),
    Mutant(
        "the logarithm",
        ((RESULT, "return np.log(weights / np.sum(weights, axis=-1, keepdims=True))"),),
        hint="These numbers are right, as logarithms. Probabilities were asked for.",
    ),
    Mutant(
        "the caller's array",
        ((WEIGHTS, "x -= peak\n    weights = np.exp(x)"),),
        hint="The probabilities are right, but the caller's scores are no longer what they were. Which of your lines "
        "writes into an array that it was given?",
    ),
    Mutant(
        "always float32",
        ((RESULT, "return (weights / np.sum(weights, axis=-1, keepdims=True)).astype(np.float32)"),),
        hint="Scores in float64 came back in another dtype. What decides the dtype of your result?",
    ),
)

LOOP = """
import math

import numpy as np


def stable_softmax(x):
    result = np.zeros_like(x)
    for place in np.ndindex(x.shape[:-1]):
        row = [float(score) for score in x[place]]
        weights = [math.exp(score - max(row)) for score in row]
        result[place] = [weight / sum(weights) for weight in weights]
    return result
"""

HONEST = (
    Variant("a loop over rows", source=LOOP),
    Variant("float64 inside", ((WEIGHTS, "weights = np.exp(x.astype(np.float64) - peak)"),
                               (RESULT, f"{RESULT[:7]}({RESULT[7:]}).astype(x.dtype)"))),
    Variant("the sum's logarithm after the shift", (
        (WEIGHTS, "shifted = x - peak\n    total = np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))"),
        (RESULT, "return np.exp(shifted - total)"))),
)  # fmt: skip
