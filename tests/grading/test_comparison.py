"""What is right and what is wrong, by hand: the ways in which weak comparisons have been passed."""

import numpy as np
import pytest

from llminfer.grading.comparison import compare
from llminfer.grading.results import Status
from llminfer.grading.spec import Tolerance

CLOSE, EXACT = Tolerance(1e-5), Tolerance(0)
X = np.array([1.0, 2.0, 4.0], np.float32)


@pytest.mark.parametrize(
    ("got", "expected", "tolerance"),
    [
        (X * (1 + 1e-6), X, CLOSE),
        (np.array([np.nan, np.inf, 1], np.float32), np.array([np.nan, np.inf, 1], np.float32), CLOSE),
        (X.astype(np.float64), X, Tolerance(1e-5, "floating")),
        (np.array([1, 2, 4]), X, Tolerance(1e-5, "any")),
        (np.array([-np.inf, 0.0]), np.array([-np.inf, 0.0]), CLOSE),
        (np.float32(0.5), 0.5, CLOSE),
        (np.array(0.5), 0.5, CLOSE),
        (np.int64(3), 3, EXACT),
        (3, 3.0, CLOSE),
        (3.0, 3, Tolerance(0, "any")),
        ([1, 2], (1, 2), EXACT),
        ({"b": 2, "a": [1.0]}, {"a": [1.0], "b": 2}, CLOSE),
        (np.bool_(True), True, EXACT),
        (float("nan"), float("nan"), CLOSE),
        (10**400, 10**400, EXACT),
        (np.empty((0, 3)), np.empty((0, 3)), CLOSE),
        ("text", "text", EXACT),
        (None, None, EXACT),
    ],
)
def test_right(got, expected, tolerance):
    assert compare(got, expected, tolerance) is None


@pytest.mark.parametrize(
    ("got", "expected", "tolerance", "status", "message"),
    [
        (X[:, None], X, CLOSE, Status.SHAPE, "shape (3,) is expected, this is (3, 1)"),
        (np.float32(1), X, CLOSE, Status.DTYPE, "a float32 array of shape (3,) is expected, this is a float32"),
        ([1.0, 2.0, 4.0], X, CLOSE, Status.DTYPE, "a float32 array of shape (3,) is expected, this is a list of 3"),
        (X.astype(np.float64), X, CLOSE, Status.DTYPE, "float32 is expected, this is float64"),
        (
            np.array([1, 2, 4]),
            X,
            Tolerance(1e-5, "floating"),
            Status.DTYPE,
            "any floating type is expected, this is int64",
        ),
        (np.array([1, np.nan, 4], np.float32), X, CLOSE, Status.NONFINITE, "1 of 3 elements is wrong, some"),
        (np.array([np.inf, 0.0]), np.array([-np.inf, 0.0]), CLOSE, Status.WRONG, "1 of 2 elements is wrong"),
        (np.zeros(3), np.array([-np.inf, 0, 0]), CLOSE, Status.WRONG, "1 of 3"),
        (X + 1e-3, X, CLOSE, Status.WRONG, "3 of 3 elements are wrong"),
        (np.array([1, 2]), np.array([1, 3]), CLOSE, Status.WRONG, "1 of 2"),
        (True, 1, EXACT, Status.DTYPE, "an int is expected, this is a bool"),
        (1, True, EXACT, Status.DTYPE, "a bool is expected, this is an int"),
        (3.0, 3, EXACT, Status.DTYPE, "an int is expected, this is a float"),
        ("3", 3, EXACT, Status.DTYPE, "an int is expected, this is a str"),
        (float("inf"), 3.0, CLOSE, Status.NONFINITE, "this is NaN or infinite"),
        (10**400, 3.0, CLOSE, Status.NONFINITE, "this is NaN or infinite"),
        (float("nan"), 3, EXACT, Status.DTYPE, "an int is expected"),
        ([1, 2, 3], [1, 2], EXACT, Status.WRONG, "its length should be 2, and is 3"),
        (np.array([1, 2]), [1, 2], EXACT, Status.DTYPE, "a list of 2 is expected"),
        ({"a": 1}, {"a": 1, "b": 2}, EXACT, Status.WRONG, "the key 'b' is missing"),
        ({"a": 1, "b": 2}, {"a": 1}, EXACT, Status.WRONG, "the key 'b' is not expected"),
        (None, 1, EXACT, Status.DTYPE, "an int is expected, this is None"),
        ("b", "a", EXACT, Status.WRONG, "not the expected value"),
    ],
)
def test_wrong(got, expected, tolerance, status, message):
    found = compare(got, expected, tolerance)
    assert found.status is status
    assert found.message.startswith(message) or message in found.message


def test_zeros_are_no_softmax_however_small_its_values():
    expected = np.full((2, 100_000), 1e-5, np.float32)
    assert np.allclose(np.zeros_like(expected), expected, atol=1e-2)  # what others would say
    assert compare(np.zeros_like(expected), expected, CLOSE).status is Status.WRONG


def test_the_worst_element_is_named_with_its_error():
    found = compare({"a": [0, X + np.array([0, 0.5, 1], np.float32)]}, {"a": [0, X]}, CLOSE)
    assert (found.where, found.worst_index, found.error) == ("['a'][1]", (2,), 1.0)
    assert found.allowed == pytest.approx(4e-5)
    np.testing.assert_array_equal(found.wrong, [False, True, True])


def test_what_the_reference_itself_rounds_away_is_allowed_up_to_a_limit():
    expected = np.array([1.0, 1.0], np.float32)
    off = expected + np.array([0, 4e-5], np.float32)
    assert compare(off, expected, CLOSE)
    assert compare(off, expected, CLOSE, wide=expected + 3e-5) is None
    assert compare(expected + np.float32(0.1), expected, CLOSE, wide=expected + 1.0)


def test_bfloat16_is_a_floating_type():
    import ml_dtypes

    x = X.astype(ml_dtypes.bfloat16)
    assert compare(x, x, Tolerance(1e-2)) is None
    assert compare(X, x, Tolerance(1e-2)).status is Status.DTYPE
    assert compare(X, x, Tolerance(1e-2, "floating")) is None
