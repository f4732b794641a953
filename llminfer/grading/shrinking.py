"""Make a failing case small: fewer calls, shorter axes, plainer numbers, as long as it fails in the same way.

Greedy, and bounded by the number of tries, so that a busy machine finds the same case as a quiet one. Axes of one name
are cut together, then axes, texts and whole numbers of one length, which are likely one dimension.
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
CANDIDATES = 600
"""Cases looked at, with those that the reference refuses, for which the student is not asked."""
SECONDS = 5.0
"""A net under slow programs; what the tries allow takes a NumPy exercise a twentieth of it."""
ONE_BY_ONE = 12
"""Up to so many items are taken out, or made plain, one at a time."""

Fails = Callable[[Case], bool | None]
"""Whether a case fails in the same way; None if it is no case at all."""
Change = Callable[[str, Any], Any]  # (address of a value, the value) -> the value in the smaller case


def shrink(
    case: Case,
    fails: Fails,
    axes: Mapping[str, tuple[str, ...]] | None = None,
    tries: int = TRIES,
    seconds: float = SECONDS,
) -> Case:
    """The smallest case found for which `fails` still holds; `case` itself if there is none.

    axes: the names of an array argument's axes, as ("T", "D"), where they are known.
    """
    began, seen, shrunk = monotonic(), {_key(case)}, True
    while shrunk:
        shrunk = False
        for smaller in _smaller(case, axes or {}):
            key = _key(smaller)
            if key in seen or not _is_lighter(smaller, case):
                continue
            if tries == 0 or len(seen) > CANDIDATES or monotonic() - began > seconds:
                return case
            seen.add(key)
            failed = fails(smaller)
            tries -= failed is not None
            if failed:
                case, shrunk = smaller, True
                break
    return case


def _is_lighter(one: Case, other: Case) -> bool:
    """What there is to read: first the number of values, then the letters that they take, then how large they are."""
    for weight in (_count, lambda case: len(_text(case)), _size):
        mine, its = weight(one), weight(other)
        if mine != its:
            return mine < its
    return False


def _smaller(case: Case, axes: Mapping[str, tuple[str, ...]]) -> Iterator[Case]:
    """Smaller cases, the boldest first: whole dimensions, then plain values, then a place or a value at a time."""
    for bold in (True, False):
        for kept in _shorter(len(case.calls), bold):
            yield replace(case, calls=tuple(case.calls[place] for place in kept))
        for name in dict.fromkeys(name for names in axes.values() for name in names):
            yield from _cut_by_name(case, axes, name, bold)
        values = _values(case)
        lengths = {length for value in values.values() for length in _lengths(value)}
        for length in sorted(lengths, reverse=True):
            for kept in _shorter(length, bold):
                yield _changed(case, lambda _, value: _cut(value, length, kept, counts=True))  # noqa: B023 (used at once)
                yield _changed(case, lambda _, value: _cut(value, length, kept))  # noqa: B023
        for change in (_cuts_of_one, _plainer):
            for address, value in values.items():
                for smaller in change(value, bold):
                    yield _with(case, address, smaller)


def _cut_by_name(case: Case, axes: Mapping[str, tuple[str, ...]], name: str, bold: bool) -> Iterator[Case]:
    """The case with one named dimension shorter in every argument that has it."""
    arguments = {
        argument: value
        for argument, value in case.arguments.items()
        if isinstance(value, np.ndarray) and len(axes.get(argument, ())) == value.ndim
    }
    places = [(argument, axis) for argument in arguments for axis, found in enumerate(axes[argument]) if found == name]
    lengths = {arguments[argument].shape[axis] for argument, axis in places}
    for kept in _shorter(lengths.pop(), bold) if len(lengths) == 1 else ():
        cut = dict(case.arguments)
        for argument, axis in places:
            cut[argument] = np.take(cut[argument], kept, axis)
        yield replace(case, arguments=cut)


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
        return literal([case.arguments, [call.arguments for call in case.calls]])
    except TooLongError:
        return "?" * 100_000  # too long to be shown, so anything that can be is better


def _key(value: Any) -> Any:
    """Equal for equal cases, and quick to make."""
    if isinstance(value, Case):
        return _key(value.arguments), tuple((call.method, _key(call.arguments)) for call in value.calls)
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.char, value.tobytes()
    if isinstance(value, Mapping):
        return tuple((key, _key(entry)) for key, entry in value.items())
    return (type(value), *map(_key, value)) if isinstance(value, list | tuple) else repr(value)


def _count(value: Any) -> int:
    if isinstance(value, Case):
        return _count(value.arguments) + sum(1 + _count(call.arguments) for call in value.calls)
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, Mapping | list | tuple):
        return 1 + sum(map(_count, value.values() if isinstance(value, Mapping) else value))
    return max(1, len(value)) if isinstance(value, str | bytes) else 1


def _size(value: Any) -> float:
    if isinstance(value, Case):
        return _size(value.arguments) + sum(_size(call.arguments) for call in value.calls)
    if isinstance(value, np.ndarray) and value.dtype != np.bool_:
        return float(np.sum(np.abs(value.astype(np.float64)), where=np.isfinite(value)))
    if isinstance(value, Mapping | list | tuple):
        return sum(map(_size, value.values() if isinstance(value, Mapping) else value))
    return float(abs(value)) if isinstance(value, int | float) and abs(value) < 1e300 else 0.0


def _lengths(value: Any) -> tuple[int, ...]:
    if isinstance(value, np.ndarray):
        return value.shape
    if isinstance(value, Mapping):
        return tuple(length for entry in value.values() for length in _lengths(entry))
    return (len(value),) if isinstance(value, list | tuple | str | bytes) else ()


def _shorter(length: int, bold: bool) -> Iterator[list[int]]:
    """Which places to keep, the fewest first; at least one, since what is empty is another case."""
    every, half, quarter = list(range(length)), length // 2, length // 4
    if bold:
        tried = (
            every[:1],
            every[-1:],
            every[:2],
            every[:half],
            every[half:],
            every[quarter:],
            every[: length - quarter],
        )
    elif length > ONE_BY_ONE:
        tried = (every[:-1], every[1:])
    else:
        tried = tuple(every[:place] + every[place + 1 :] for place in reversed(every))
    yield from (kept for kept in tried if 0 < len(kept) < length)


def _cut(value: Any, length: int, kept: list[int], counts: bool = False) -> Any:
    """Everything in `value` that has this length keeps only these places; with `counts` a number of it follows."""
    if isinstance(value, np.ndarray):
        for axis, found in enumerate(value.shape):
            value = np.take(value, kept, axis) if found == length else value
        return value
    if isinstance(value, Mapping):
        return {key: _cut(entry, length, kept, counts) for key, entry in value.items()}
    if isinstance(value, list | tuple | str | bytes) and len(value) == length:
        return _items(value, kept)
    is_count = counts and type(value) is int and value == length
    return len(kept) if is_count else value


def _items(value: Any, kept: list[int]) -> Any:
    if isinstance(value, str):
        return "".join(value[place] for place in kept)
    return type(value)([value[place] for place in kept])


def _cuts_of_one(value: Any, bold: bool) -> Iterator[Any]:
    """One argument cut along one axis, the others left as they are."""
    if isinstance(value, np.ndarray):
        for axis, length in enumerate(value.shape):
            for kept in _shorter(length, bold):
                yield np.take(value, kept, axis)
    elif isinstance(value, list | tuple | str | bytes):
        for kept in _shorter(len(value), bold):
            yield _items(value, kept)
    elif isinstance(value, Mapping) and len(value) > 1:
        for key in value:
            yield {other: entry for other, entry in value.items() if other != key}


def _plainer(value: Any, bold: bool) -> Iterator[Any]:
    """Values of the same shape that are easier to read. 0 is offered in arrays alone: as a count it is another case."""
    if isinstance(value, np.ndarray):
        yield from _pattern_or_rounded(value) if bold else _with_a_zero(value)
    elif type(value) is int and abs(value) > 1:
        sign = 1 if value > 0 else -1
        yield from (sign, int(value / 2)) if bold else (value - sign,)
    elif type(value) is float and np.isfinite(value) and bold:
        yield from (float(np.sign(value)), float(round(value)), round(value, 1), float(f"{value:.0e}"))
    elif isinstance(value, list | tuple) and len(value) <= ONE_BY_ONE:
        for place, entry in enumerate(value):
            for plainer in [*_cuts_of_one(entry, bold), *_plainer(entry, bold)]:
                yield type(value)([*value[:place], plainer, *value[place + 1 :]])
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield from ({**value, key: plainer} for plainer in [*_cuts_of_one(entry, bold), *_plainer(entry, bold)])


def _pattern_or_rounded(array: np.ndarray) -> Iterator[np.ndarray]:
    yield from (same for _, same in pattern_arrays(array))
    if is_floating(array.dtype):
        for form in ("%.0f", "%.1f", "%.0e", "%.1e"):
            rounded = [float(form % number) for number in array.ravel()]
            yield np.array(rounded).reshape(array.shape).astype(array.dtype)


def _with_a_zero(array: np.ndarray) -> Iterator[np.ndarray]:
    for place in np.ndindex(array.shape) if array.size <= 2 * ONE_BY_ONE else ():
        if array[place] != 0:
            plainer = array.copy()
            plainer[place] = 0
            yield plainer
