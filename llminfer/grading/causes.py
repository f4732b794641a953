"""The likely cause of a wrong answer, read off the answer alone: turned round, scaled, shifted, copied, too coarse.

Used where no mutant of the exercise does the same. Each rule looks for an exact relation between what came and what
was expected, so that a hint is rarely given for the wrong reason; where none holds, nothing is said.
"""

from collections.abc import Callable, Mapping
from itertools import permutations
from math import log, sqrt
from typing import Any

import numpy as np

from llminfer.core.tolerances import is_floating
from llminfer.grading.comparison import Mismatch, plain_scalar
from llminfer.grading.results import Status

CLOSE = 1e-4
"""Relations are looked for to this fraction of the largest value: students round in their own way."""
BY_STATUS = {
    Status.DTYPE: "np.zeros and np.arange make types of their own; dtype=x.dtype or .astype(x.dtype) keeps that of x.",
    Status.MUTATED_INPUT: "`x -= ...`, `x[...] = ...`, `x.sort()` and `out=x` write into the caller's array. "
    "Work on a copy, or write `x = x - ...`.",
    Status.TIMEOUT: "A loop that never ends, or one in Python over what NumPy does at once.",
    Status.MEMORY: "An array larger than the task needs. What shape has the largest thing that you make?",
    Status.EXIT: "Nothing here should end the process: no exit(), quit() or os._exit().",
    Status.OUTPUT_LIMIT: "Take out the prints, or print less.",
}
STATE = (
    "In a fresh process this very case is right. So the answer depends on what was called before (state is kept "
    "between calls: a global, a cache, a default argument such as `x=[]` that lives on), or on chance."
)


def likely_cause(mismatch: Mismatch, arguments: Mapping[str, Any], raised: str = "") -> str:
    """One sentence, or nothing."""
    if raised == "TypeError":
        return "The judge calls by name: keep the names and the order of the arguments as they were in the starter."
    got, expected = mismatch.got, mismatch.expected
    if isinstance(got, np.ndarray) and isinstance(expected, np.ndarray):
        if mismatch.status in (Status.DTYPE, Status.MUTATED_INPUT):  # the values may well be right
            return BY_STATUS[mismatch.status]
        rules = _ARRAYS if got.shape == expected.shape else _SHAPES
        found = _first(rules, got, expected, arguments) if _numeric(got) and _numeric(expected) else ""
        return found or BY_STATUS.get(mismatch.status, "")
    if mismatch.status in BY_STATUS and mismatch.status is not Status.DTYPE:
        return BY_STATUS[mismatch.status]
    if isinstance(expected, list | tuple) and isinstance(got, np.ndarray):
        return ".tolist() makes a list of an array."
    if isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        return _sequence_cause(list(got), list(expected))
    if isinstance(expected, str) and isinstance(got, str):
        return _text_cause(got, expected)
    return _number_cause(got, expected)


def _first(rules: tuple[Callable[..., str], ...], got: np.ndarray, expected: np.ndarray, arguments: Mapping) -> str:
    with np.errstate(all="ignore"):
        got, expected = got.astype(np.float64), expected.astype(np.float64)
        return next((words for rule in rules if (words := rule(got, expected, arguments))), "")


def _numeric(array: np.ndarray) -> bool:
    return is_floating(array.dtype) or array.dtype.kind in "iub"


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal to within CLOSE of the largest finite value, infinities and NaN in the same places."""
    if a.shape != b.shape:
        return False
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    scale = np.max(np.abs(b), initial=0.0, where=finite) or 1.0
    return bool(np.all(np.abs(a - b)[finite] <= CLOSE * scale))


def _transposed(got: np.ndarray, expected: np.ndarray, arguments: Mapping) -> str:
    for order in permutations(range(got.ndim)) if 2 <= got.ndim <= 4 else ():
        if order != tuple(range(got.ndim)) and _same(got.transpose(order), expected):
            return "The values are right, but " + (
                "rows and columns are exchanged." if got.ndim == 2 else f"the axes want the order {order}."
            )
    return ""


def _reshaped(got: np.ndarray, expected: np.ndarray, arguments: Mapping) -> str:
    if got.size != expected.size or not _same(got.ravel(), expected.ravel()):
        return ""
    if got.squeeze().shape == expected.squeeze().shape:
        more = "an axis of length 1 too many" if got.ndim > expected.ndim else "an axis of length 1 missing"
        return f"The values are right, with {more}; keepdims=... decides that in a reduction."
    return "The values are right and in order; only the shape is another."


def _broadcast(got: np.ndarray, expected: np.ndarray, arguments: Mapping) -> str:
    if got.ndim == 2 and expected.ndim == 1 and got.shape == (len(expected),) * 2:
        return "[N] met [N, 1] and NumPy made [N, N] of it. Compare the shapes in the line that first has two axes."
    if got.ndim > expected.ndim and got.shape[: expected.ndim] == expected.shape:
        return "A reduction is missing: the result still has an axis that should be gone."
    return ""


def _constant(got: np.ndarray, expected: np.ndarray, arguments: Mapping) -> str:
    if got.size > 1 and np.all(got == got.flat[0]) and not np.all(expected == expected.flat[0]):
        return f"All elements are {got.flat[0]:g}."
    return ""


def _an_argument(got: np.ndarray, expected: np.ndarray, arguments: Mapping) -> str:
    for name, value in arguments.items():
        if (
            isinstance(value, np.ndarray)
            and value.size > 1
            and _numeric(value)
            and _same(got, value.astype(np.float64))
        ):
            return f"What comes back is {name}, unchanged."
    return ""


def _scaled(got: np.ndarray, expected: np.ndarray, arguments: Mapping) -> str:
    if expected.size < 2 or not np.isfinite(got).all() or not np.isfinite(expected).all() or not expected.any():
        return ""
    factor = float(np.vdot(expected, got) / np.vdot(expected, expected))
    if abs(factor - 1) < CLOSE or abs(factor) < 1e-9 or not _same(got, factor * expected):
        return ""
    if abs(factor + 1) < CLOSE:
        return "Every value has the wrong sign."
    return f"Every value is {factor:.6g} times the expected one{_name_of(factor, arguments)}."


def _name_of(factor: float, arguments: Mapping) -> str:
    """ ", that is 1/sqrt(64), and 64 is axis 1 of q": a number that may ring a bell."""
    for name, value in (("ln 2", log(2)), ("1/ln 2", 1 / log(2)), ("ln 10", log(10)), ("1/ln 10", 1 / log(10))):
        if abs(factor / value - 1) < CLOSE:
            return f", that is {name}"
    lengths = {
        length: f", and {length} is axis {axis} of {name}"
        for name, value in arguments.items()
        if isinstance(value, np.ndarray)
        for axis, length in reversed(list(enumerate(value.shape)))
        if length > 1
    }
    for n in [*lengths, *range(2, 33)]:
        forms = {f"1/{n}": 1 / n, f"sqrt({n})": sqrt(n), f"1/sqrt({n})": 1 / sqrt(n)}
        for name, value in (forms | {str(n): n} if n in lengths else forms).items():
            if abs(factor / value - 1) < CLOSE:
                return f", that is {name}{lengths.get(n, '')}"
    return ""


def _offset(got: np.ndarray, expected: np.ndarray, arguments: Mapping) -> str:
    difference = got - expected
    if got.size < 2 or not np.isfinite(difference).all() or not _same(got, expected + difference.mean()):
        return ""
    return f"Every value is too {'large' if difference.mean() > 0 else 'small'} by {abs(difference.mean()):.6g}."


def _shifted(got: np.ndarray, expected: np.ndarray, arguments: Mapping) -> str:
    for axis, length in enumerate(got.shape):
        for step in (1, -1) if length > 2 else ():
            if _same(np.roll(got, -step, axis), expected):
                return f"Everything stands one place too far {'on' if step > 0 else 'back'} along axis {axis}."
            mine, theirs = (got, expected) if step > 0 else (expected, got)
            moved = _same(_slice(mine, axis, 1, None), _slice(theirs, axis, 0, -1))
            if moved and not _same(_slice(got, axis, 0, -1), _slice(expected, axis, 0, -1)):
                return f"Off by one along axis {axis}: values stand one place too far {'on' if step > 0 else 'back'}."
    return ""


def _slice(array: np.ndarray, axis: int, start: int, stop: int | None) -> np.ndarray:
    return array[(slice(None),) * axis + (slice(start, stop),)]


def _flipped(got: np.ndarray, expected: np.ndarray, arguments: Mapping) -> str:
    for axis, length in enumerate(got.shape):
        if length > 1 and _same(np.flip(got, axis), expected):
            return f"The values are right, in the opposite order along axis {axis}."
    return ""


def _other_order(got: np.ndarray, expected: np.ndarray, arguments: Mapping) -> str:
    for axis in range(got.ndim):
        if got.shape[axis] > 2 and _same(np.sort(got, axis), np.sort(expected, axis)):
            return f"The right values in another order along axis {axis}."
    return "The right values in other places." if _same(np.sort(got, None), np.sort(expected, None)) else ""


def _scaled_by_row(got: np.ndarray, expected: np.ndarray, arguments: Mapping) -> str:
    """A normalisation along the wrong axis, or a missing one, leaves a factor (in logarithms a constant) a row."""
    if got.ndim < 2 or min(got.shape[-2:]) < 2 or not np.isfinite(got).all() or not np.isfinite(expected).all():
        return ""
    for axis, name in ((-1, "row"), (-2, "column")):
        squares = np.sum(expected * expected, axis, keepdims=True)
        factor = np.sum(expected * got, axis, keepdims=True) / np.where(squares == 0, 1, squares)
        if _same(got, factor * expected):
            return f"Each {name} is off by a factor of its own: look at what you divide or multiply a {name} by."
        if _same(got, expected + np.mean(got - expected, axis, keepdims=True)):
            return f"Each {name} is off by a constant of its own: look at what you add to or take from a {name}."
    return ""


def _overflowed(got: np.ndarray, expected: np.ndarray, arguments: Mapping) -> str:
    if np.isfinite(got).all() or not np.isfinite(expected).all():
        return ""
    values = [value for value in arguments.values() if isinstance(value, np.ndarray) and is_floating(value.dtype)]
    largest = max((float(np.max(np.abs(value), initial=0.0)) for value in values), default=0.0)
    if largest > 80:
        return f"exp overflows beyond 88 in float32 (709 in float64), and the input reaches {largest:g}."
    return "NaN comes of 0/0, inf - inf, 0 * inf, or of a part that was never written."


def _coarse(got: np.ndarray, expected: np.ndarray, arguments: Mapping) -> str:
    if not np.isfinite(got).all() or not np.isfinite(expected).all() or not expected.any():
        return ""
    error = float(np.max(np.abs(got - expected)) / np.max(np.abs(expected)))
    if error < 5e-3:
        kind = "float16 or bfloat16" if error > 1e-4 else "float32 where more is needed"
        return f"Nearly right: off by {error:.1e} of the largest value, as if something were kept in {kind}."
    return ""


_SHAPES = (_transposed, _reshaped, _broadcast)
_ARRAYS = (
    *(_overflowed, _constant, _an_argument, _transposed, _scaled, _offset, _flipped, _shifted, _other_order),
    *(_scaled_by_row, _coarse),
)


def _sequence_cause(got: list, expected: list) -> str:
    shared = next((at for at, (a, b) in enumerate(zip(got, expected, strict=False)) if repr(a) != repr(b)), None)
    if shared is None and len(got) != len(expected):
        fewer = len(expected) - len(got)
        what = f"the last {fewer} missing" if fewer > 0 else f"{-fewer} too many at the end"
        return f"All right as far as it goes, with {what}."
    if sorted(map(repr, got)) == sorted(map(repr, expected)):
        return "The right items in another order."
    return f"The first {shared} are right." if shared else ""


def _text_cause(got: str, expected: str) -> str:
    if got.strip() == expected.strip():
        return "Only white space at the ends differs."
    if got.lower() == expected.lower():
        return "Only small and capital letters differ."
    if got and (expected.startswith(got) or got.startswith(expected)):
        fewer = len(expected) - len(got)
        return f"It ends {abs(fewer)} character{'s' if abs(fewer) > 1 else ''} too {'early' if fewer > 0 else 'late'}."
    return ""


def _number_cause(got: Any, expected: Any) -> str:
    got, expected = plain_scalar(got), plain_scalar(expected)
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in (got, expected)):
        return ""
    if isinstance(expected, int) and isinstance(got, int) and abs(got - expected) == 1:
        return f"One too {'many' if got > expected else 'few'}."
    if not all(map(np.isfinite, (got, expected))) or not expected:
        return ""
    for factor, name in ((-1, "the wrong sign"), (8, "bits for bytes"), (1 / 8, "bytes for bits"), (1000, "1000 times"),
                         (1 / 1000, "a thousandth"), (1.024**3, "GiB for GB"), (1.024**-3, "GB for GiB"),
                         (100, "a percentage for a fraction"), (1 / 100, "a fraction for a percentage"),
                         (2, "twice"), (1 / 2, "half")):  # fmt: skip
        if abs(got / expected / factor - 1) < 1e-6:
            return f"Off by a factor of {factor:.6g}: {name}?"
    return ""
