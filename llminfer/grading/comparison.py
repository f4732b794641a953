"""Is an answer the expected one? Type and shape exactly, then dtype, then finite values, then the error.

An error is held against the largest expected magnitude, never against a fixed number: a softmax over a large vocabulary
is smaller than any fixed number, and zeros would pass for it. Nothing is broadcast, and NaN is right only where NaN is
expected.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from llminfer.core.tolerances import is_floating
from llminfer.grading.results import Status
from llminfer.grading.spec import Tolerance

OWN_ERROR_FACTOR = 2.0
"""An answer may be off by this many times the reference's own rounding error, where that is known."""
OWN_ERROR_CAP = 10.0
"""But by no more than this many times what the tolerance says: a reference that jumps at a tie has a huge "error"."""


@dataclass(frozen=True)
class Mismatch:
    """Why an answer is not the expected one.

    where: the path to the piece that differs, such as `["logits"][2]`; got, expected: that piece. wrong: which elements
    of an array differ. error, allowed: at worst_index.
    """

    status: Status
    message: str
    got: Any
    expected: Any
    where: str = ""
    worst_index: tuple[int, ...] | None = None
    error: float | None = None
    allowed: float | None = None
    wrong: np.ndarray | None = None


def compare(got: Any, expected: Any, tolerance: Tolerance, wide: Any = None) -> Mismatch | None:
    """None if `got` answers as `expected` does, else the first piece that differs.

    wide: what the reference gives in float64. Its distance from `expected` is what the reference itself rounds away,
    and an honest answer may round as much.
    """
    if isinstance(expected, Mapping):
        return _compare_mappings(got, expected, tolerance, wide)
    if isinstance(expected, list | tuple):
        return _compare_sequences(got, expected, tolerance, wide)
    if isinstance(expected, np.ndarray) and expected.ndim:
        return _compare_arrays(got, expected, tolerance, wide)
    got, expected = plain_scalar(got), plain_scalar(expected)
    if isinstance(expected, int | float) and not isinstance(expected, bool):
        return _compare_numbers(got, expected, tolerance, plain_scalar(wide))
    if type(got) is not type(expected):
        return Mismatch(Status.DTYPE, f"{described(expected)} is expected, this is {described(got)}", got, expected)
    return None if got == expected else Mismatch(Status.WRONG, "this is not the expected value", got, expected)


def plain_scalar(value: Any) -> Any:
    """NumPy's scalars and arrays without axes as Python's own; everything else as it is."""
    is_scalar = isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0)
    return value.item() if is_scalar else value


def described(value: Any) -> str:
    """Type and size in words: "a float32 array of shape (3, 4)"."""
    if isinstance(value, np.ndarray):
        shape = "(" + ", ".join(map(str, value.shape)) + ("," if value.ndim == 1 else "") + ")"
        return f"a {value.dtype} array of shape {shape}"
    if isinstance(value, list | tuple | Mapping):
        return f"a {type(value).__name__} of {len(value)}"
    return "None" if value is None else f"{'an' if type(value).__name__[0] in 'aeiou' else 'a'} {type(value).__name__}"


def _compare_numbers(got: Any, expected: float, tolerance: Tolerance, wide: Any) -> Mismatch | None:
    """A whole number must come as one (unless any dtype will do); where a float is expected, an int will do."""
    is_number = isinstance(got, int | float) and not isinstance(got, bool)
    wanted = int if isinstance(expected, int) and tolerance.dtype == "same" else int | float
    if not is_number or not isinstance(got, wanted):
        return Mismatch(Status.DTYPE, f"{described(expected)} is expected, this is {described(got)}", got, expected)
    if isinstance(expected, int) or tolerance.relative == 0:
        exact = got == expected or (got != got and expected != expected)
        return None if exact else Mismatch(Status.WRONG, "this is not the expected number", got, expected)
    try:
        found = np.asarray(got, np.float64)
    except OverflowError:  # a Python int has no largest value
        found = np.asarray(np.inf)
    wide = np.asarray(wide, np.float64) if isinstance(wide, int | float) else None
    differing = _compare_floats(found, np.asarray(expected, np.float64), tolerance, wide)
    if differing is None:
        return None
    words = "this is NaN or infinite" if differing.status is Status.NONFINITE else "this is not the expected number"
    return replace(differing, message=words, got=got, expected=expected, worst_index=None, wrong=None)


def _compare_arrays(got: Any, expected: np.ndarray, tolerance: Tolerance, wide: Any) -> Mismatch | None:
    if not isinstance(got, np.ndarray):
        return Mismatch(Status.DTYPE, f"{described(expected)} is expected, this is {described(got)}", got, expected)
    if got.shape != expected.shape:
        words = f"shape {expected.shape} is expected, this is {got.shape}"
        return Mismatch(Status.SHAPE, words, got, expected)
    if not _dtype_fits(got.dtype, expected.dtype, tolerance.dtype):
        words = "any floating type" if tolerance.dtype == "floating" and is_floating(expected.dtype) else expected.dtype
        return Mismatch(Status.DTYPE, f"{words} is expected, this is {got.dtype}", got, expected)
    if not is_floating(expected.dtype) or tolerance.relative == 0:
        return _compare_exactly(got, expected)
    same_shape = isinstance(wide, np.ndarray) and wide.shape == expected.shape
    return _compare_floats(got, expected, tolerance, wide if same_shape else None)


def _dtype_fits(got: np.dtype, expected: np.dtype, rule: str) -> bool:
    if rule == "any":
        return True
    if rule == "floating" and is_floating(expected):
        return is_floating(got)
    return got == expected


def _compare_exactly(got: np.ndarray, expected: np.ndarray) -> Mismatch | None:
    both_nan = (got != got) & (expected != expected)
    wrong = (got != expected) & ~both_nan
    if not wrong.any():
        return None
    with np.errstate(all="ignore"):
        error = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    error = np.where(wrong, np.nan_to_num(error, nan=np.inf), -1)
    worst = np.unravel_index(error.argmax(), error.shape)
    return _at(worst, Status.WRONG, got, expected, wrong, error[worst], 0.0)


def _compare_floats(
    got: np.ndarray, expected: np.ndarray, tolerance: Tolerance, wide: np.ndarray | None
) -> Mismatch | None:
    found, wanted = got.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(wanted)
    scale = np.max(np.abs(wanted), initial=0.0, where=finite) or 1.0
    allowed = tolerance.relative * scale
    with np.errstate(all="ignore"):
        if wide is not None:
            own = np.max(np.abs(wanted - wide.astype(np.float64)), initial=0.0, where=finite & np.isfinite(wide))
            allowed = max(allowed, min(OWN_ERROR_FACTOR * own, OWN_ERROR_CAP * allowed))
        error = np.abs(found - wanted)
    same_infinity = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    error = np.where(finite, error, np.where(same_infinity, 0.0, np.inf))
    error = np.nan_to_num(error, nan=np.inf)  # a NaN where a number is expected
    wrong = np.asarray(error > allowed)
    if not wrong.any():
        return None
    worst = np.unravel_index(error.argmax(), error.shape)
    lost = bool(np.any(finite & ~np.isfinite(found)))
    return _at(worst, Status.NONFINITE if lost else Status.WRONG, got, expected, wrong, error[worst], allowed)


def _at(
    worst: tuple, status: Status, got: np.ndarray, expected: np.ndarray, wrong: np.ndarray, error: float, allowed: float
) -> Mismatch:
    what = "wrong, some of them NaN or infinite" if status is Status.NONFINITE else "wrong"
    message = f"{wrong.sum()} of {wrong.size} elements {'is' if wrong.sum() == 1 else 'are'} {what}"
    if wrong.size == 1:
        message = "its only element is " + ("NaN or infinite" if status is Status.NONFINITE else "wrong")
    index = tuple(int(place) for place in worst)
    return Mismatch(status, message, got, expected, "", index, float(error), float(allowed), wrong)


def _compare_sequences(got: Any, expected: Sequence, tolerance: Tolerance, wide: Any) -> Mismatch | None:
    if not isinstance(got, list | tuple):  # either will do for the other
        return Mismatch(Status.DTYPE, f"{described(expected)} is expected, this is {described(got)}", got, expected)
    if len(got) != len(expected):
        return Mismatch(Status.WRONG, f"its length should be {len(expected)}, and is {len(got)}", got, expected)
    wides = wide if isinstance(wide, list | tuple) and len(wide) == len(expected) else [None] * len(expected)
    for place, (one, wanted, widened) in enumerate(zip(got, expected, wides, strict=True)):
        if differing := compare(one, wanted, tolerance, widened):
            whole = {} if differing.where or differing.wrong is not None else {"got": got, "expected": expected}
            return replace(differing, where=f"[{place}]{differing.where}", **whole)  # one item alone says little
    return None


def _compare_mappings(got: Any, expected: Mapping, tolerance: Tolerance, wide: Any) -> Mismatch | None:
    if not isinstance(got, Mapping):
        return Mismatch(Status.DTYPE, f"{described(expected)} is expected, this is {described(got)}", got, expected)
    if missing := [key for key in expected if key not in got]:
        return Mismatch(Status.WRONG, f"the key {missing[0]!r} is missing", got, expected)
    if extra := [key for key in got if key not in expected]:
        return Mismatch(Status.WRONG, f"the key {extra[0]!r} is not expected", got, expected)
    for key, wanted in expected.items():
        widened = wide.get(key) if isinstance(wide, Mapping) else None
        if differing := compare(got[key], wanted, tolerance, widened):
            return replace(differing, where=f"[{key!r}]{differing.where}")
    return None
