"""Make a failing case small: fewer calls, shorter axes, plainer numbers, as long as it fails in the same way.

Greedy, and bounded by the number of tries, so that a busy machine finds the same case as a quiet one. Axes, texts and
whole numbers of one length are first cut together: they are likely one dimension.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np

from llminfer.core.tolerances import is_floating
from llminfer.grading.literals import TooLongError, literal, pattern_arrays
from llminfer.grading.spec import Call, Case

TRIES = 120
SECONDS = 1.5
"""A net under slow kernels; what the tries allow takes a NumPy exercise a tenth of it."""
ONE_BY_ONE = 12
"""Up to so many items are taken out, or made plain, one at a time."""

Change = Callable[[str, Any], Any]  # (address of a value, the value) -> the value in the smaller case


def shrink(case: Case, fails: Callable[[Case], bool], tries: int = TRIES, seconds: float = SECONDS) -> Case:
    """The smallest case found for which `fails` still holds; `case` itself if there is none."""
    began, seen = monotonic(), {_text(case)}
    shrunk = True
    while shrunk:
        shrunk = False
        for smaller in _smaller(case):
            text = _text(smaller)
            if text in seen or weight(smaller) >= weight(case):
                continue
            if tries == 0 or monotonic() - began > seconds:
                return case
            seen.add(text)
            tries -= 1
            if fails(smaller):
                case, shrunk = smaller, True
                break
    return case


def weight(case: Case) -> tuple[int, int, float]:
    """What there is to read: first the number of values, then the letters that they take, then how large they are."""
    values = _values(case).values()
    return sum(map(_count, values)) + len(case.calls), len(_text(case)), sum(map(_size, values))


def _smaller(case: Case) -> Iterator[Case]:
    """Smaller cases, the boldest first."""
    for kept in _shorter(len(case.calls)) if case.calls else ():
        yield replace(case, calls=tuple(case.calls[place] for place in kept))
    values = _values(case)
    lengths = {length for value in values.values() for length in _lengths(value) if length > 1}
    for length in sorted(lengths, reverse=True):
        for kept in _shorter(length):
            yield _changed(case, lambda _, value: _cut(value, length, kept, counts=True))  # noqa: B023 (used at once)
            yield _changed(case, lambda _, value: _cut(value, length, kept))  # noqa: B023
    for address, value in values.items():
        for plainer in _cuts_of_one(value):
            yield _with(case, address, plainer)
    for address, value in values.items():
        for plainer in _plainer(value):
            yield _with(case, address, plainer)


def _values(case: Case) -> dict[str, Any]:
    """Every argument with its address."""
    found = {f"0.{name}": value for name, value in case.arguments.items()}
    for place, call in enumerate(case.calls, start=1):
        found |= {f"{place}.{name}": value for name, value in call.arguments.items()}
    return found


def _changed(case: Case, change: Change) -> Case:
    def changed(place: int, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {name: change(f"{place}.{name}", value) for name, value in arguments.items()}

    calls = tuple(Call(call.method, changed(place, call.arguments)) for place, call in enumerate(case.calls, start=1))
    return replace(case, arguments=changed(0, case.arguments), calls=calls)


def _with(case: Case, address: str, plainer: Any) -> Case:
    return _changed(case, lambda place, value: plainer if place == address else value)


def _text(case: Case) -> str:
    try:
        return literal([case.arguments, [(call.method, call.arguments) for call in case.calls]])
    except TooLongError:
        return repr([(address, _bytes(value)) for address, value in _values(case).items()])


def _bytes(value: Any) -> Any:
    return (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


def _count(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, Mapping):
        return 1 + sum(map(_count, value.values()))
    if isinstance(value, list | tuple):
        return 1 + sum(map(_count, value))
    return max(1, len(value)) if isinstance(value, str | bytes) else 1


def _size(value: Any) -> float:
    if isinstance(value, np.ndarray) and value.dtype != np.bool_:
        return float(np.sum(np.abs(value.astype(np.float64)), where=np.isfinite(value)))
    if isinstance(value, Mapping | list | tuple):
        return sum(map(_size, value.values() if isinstance(value, Mapping) else value))
    return float(abs(value)) if isinstance(value, int | float) and abs(value) < 1e300 else 0.0


def _lengths(value: Any) -> tuple[int, ...]:
    if isinstance(value, np.ndarray):
        return value.shape
    return (len(value),) if isinstance(value, list | tuple | str | bytes) else ()


def _shorter(length: int) -> Iterator[list[int]]:
    """Which places to keep, the fewest first. Never none: what is empty is another case."""
    half = length // 2
    every = list(range(length))
    for kept in (every[:1], every[-1:], every[:2], every[:half], every[half:], every[:-1], every[1:]):
        if 0 < len(kept) < length:
            yield kept
    if 2 < length <= ONE_BY_ONE:
        for place in every[1:-1]:
            yield every[:place] + every[place + 1 :]


def _cut(value: Any, length: int, kept: list[int], counts: bool = False) -> Any:
    """Everything in `value` that has this length keeps only these places; with `counts` a number of it follows."""
    if isinstance(value, np.ndarray):
        for axis, found in enumerate(value.shape):
            value = np.take(value, kept, axis) if found == length else value
        return value
    if isinstance(value, list | tuple | str | bytes) and len(value) == length:
        return _items(value, kept)
    is_count = counts and type(value) is int and value == length
    return len(kept) if is_count else value


def _items(value: Any, kept: list[int]) -> Any:
    if isinstance(value, str):
        return "".join(value[place] for place in kept)
    return type(value)([value[place] for place in kept])


def _cuts_of_one(value: Any) -> Iterator[Any]:
    """One argument cut along one axis, the others left as they are."""
    if isinstance(value, np.ndarray):
        for axis, length in enumerate(value.shape):
            for kept in _shorter(length):
                yield np.take(value, kept, axis)
    elif isinstance(value, list | tuple | str | bytes):
        for kept in _shorter(len(value)):
            yield _items(value, kept)
    elif isinstance(value, Mapping) and len(value) > 1:
        for key in value:
            yield {other: entry for other, entry in value.items() if other != key}


def _plainer(value: Any) -> Iterator[Any]:
    """Values of the same shape that are easier to read. 0 is offered in arrays alone: as a count it is another case."""
    if isinstance(value, np.ndarray):
        yield from _plainer_arrays(value)
    elif type(value) is int and abs(value) > 1:
        sign = 1 if value > 0 else -1
        yield from (sign, int(value / 2), value - sign)
    elif type(value) is float and np.isfinite(value):
        yield from (float(np.sign(value)), float(round(value)), round(value, 1), float(f"{value:.0e}"))
    elif isinstance(value, list | tuple):
        for place in range(min(len(value), ONE_BY_ONE)):
            for plainer in [*_cuts_of_one(value[place]), *_plainer(value[place])]:
                yield type(value)([*value[:place], plainer, *value[place + 1 :]])
    elif isinstance(value, Mapping):
        for key in value:
            yield from ({**value, key: plainer} for plainer in [*_cuts_of_one(value[key]), *_plainer(value[key])])


def _plainer_arrays(array: np.ndarray) -> Iterator[np.ndarray]:
    yield from (same for _, same in pattern_arrays(array))
    if is_floating(array.dtype):
        for form in ("%.0f", "%.1f", "%.0e", "%.1e"):
            rounded = [float(form % number) for number in array.ravel()]
            yield np.array(rounded).reshape(array.shape).astype(array.dtype)
    if array.size <= 2 * ONE_BY_ONE:
        for place in np.ndindex(array.shape):
            if array[place] != 0:
                plainer = array.copy()
                plainer[place] = 0
                yield plainer
