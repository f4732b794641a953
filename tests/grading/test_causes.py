"""What may be behind a wrong answer, for the mistakes that everybody makes once."""

import numpy as np
import pytest

from llminfer.grading.causes import likely_cause
from llminfer.grading.comparison import compare
from llminfer.grading.spec import Tolerance

X = np.random.default_rng(5).normal(size=(4, 6))
ROWS = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
SOFT = Tolerance(1e-5)


@pytest.mark.parametrize(
    ("got", "expected", "arguments", "cause"),
    [
        (X.T, X, {}, "The values are right, but rows and columns are exchanged."),
        (X[:, None], X, {}, "The values are right, with an axis of length 1 too many; keepdims"),
        (X.ravel(), X, {}, "The values are right and in order; only the shape is another."),
        (X[0] + X[0][:, None], X[0], {}, "[N] met [N, 1] and NumPy made [N, N] of it."),
        (-X, X, {}, "Every value has the wrong sign."),
        (
            X / 8,
            X,
            {"q": np.ones((3, 64))},
            "Every value is 0.125 times the expected one, that is 1/sqrt(64), and 64 is",
        ),
        (X * np.log(2), X, {}, "Every value is 0.693147 times the expected one, that is ln 2."),
        (X * 1.7, X, {}, "Every value is 1.7 times the expected one."),
        (X + 0.25, X, {}, "Every value is too large by 0.25."),
        (np.roll(X, 1, axis=1), X, {}, "Everything stands one place too far on along axis 1."),
        (np.vstack([X[1:], X[:1] * 0]), X, {}, "Off by one along axis 0: values stand one place too far back."),
        (X[::-1], X, {}, "The values are right, in the opposite order along axis 0."),
        (np.sort(X, axis=1), X, {}, "The right values in another order along axis 1."),
        (ROWS * np.arange(1, 5)[:, None], ROWS, {}, "Each row is off by a factor of its own"),
        (X - X.max(axis=1, keepdims=True), X, {}, "Each row is off by a constant of its own"),
        (X * np.arange(1, 7), X, {}, "Each column is off by a factor of its own"),
        (np.zeros_like(X), X, {}, "All elements are 0."),
        (X, ROWS, {"x": X}, "What comes back is x, unchanged."),
        (X.astype(np.float16).astype(float), X, {}, "Nearly right: off by"),
        (np.full_like(X, np.nan), X, {"x": np.full(3, 1e4, np.float32)}, "exp overflows beyond 88 in float32"),
        (np.where(np.eye(4, 6) > 0, np.nan, X), X, {"x": X}, "NaN comes of 0/0"),
        ([1, 2], [1, 2, 3], {}, "All right as far as it goes, with the last 1 missing."),
        ([1, 2, 3, 4], [1, 2], {}, "All right as far as it goes, with 2 too many at the end."),
        ([2, 1], [1, 2], {}, "The right items in another order."),
        ([1, 2, 9], [1, 2, 3], {}, "The first 2 are right."),
        (np.array([1, 2]), [1, 2], {}, ".tolist() makes a list of an array."),
        ("text ", "text", {}, "Only white space at the ends differs."),
        ("tex", "text", {}, "It ends 1 character too early."),
        (4, 5, {}, "One too few."),
        (8e9, 1e9, {}, "Off by a factor of 8: bits for bytes?"),
        (X.astype(np.float32), X, {}, "np.zeros and np.arange make types of their own"),
    ],
)
def test_cause(got, expected, arguments, cause):
    found = likely_cause(compare(got, expected, SOFT), arguments)
    assert found.startswith(cause)


def test_a_wrong_answer_without_a_pattern_is_left_without_a_cause():
    noise = np.random.default_rng(6).normal(size=X.shape)
    assert likely_cause(compare(noise, X, SOFT), {"x": ROWS}) == ""


def test_an_argument_of_another_name_is_said_to_be_one():
    mismatch = compare(None, X, SOFT)
    assert "keep the names" in likely_cause(mismatch, {}, raised="TypeError")
