"""Limits that a JSON Schema sets to numbers and lengths, checked, and refused where they contradict each other."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from llminfer.basics.json_numbers import Bounds


def bounds(schema: Mapping[str, Any], path: str) -> Bounds:
    """The tightest of the bounds for numbers."""
    sides = []
    for closed, opened, sign in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        given = [
            (sign * decimal(schema[keyword], f"{path}/{keyword}"), keyword == opened)
            for keyword in (closed, opened)
            if keyword in schema
        ]
        sides.append(max(given, default=(None, False)))
    (low, low_open), (high, high_open) = sides
    high = None if high is None else -high
    if low is not None and high is not None and (low > high or low == high and (low_open or high_open)):
        raise ValueError(f"{path}: no number lies between {low} and {high}; minimum and maximum contradict each other")
    return Bounds(low, high, low_open, high_open)


def decimal(value: Any, path: str) -> Decimal:
    """A bound as the decimal it was written as."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not Decimal(str(value)).is_finite():
        raise ValueError(f"{path}: expected a finite number, got {value!r}")
    return Decimal(str(value))


def counts(schema: Mapping[str, Any], least: str, most: str, path: str) -> tuple[int, int | None]:
    """(least, most) of a length; raises ValueError unless they are whole numbers in this order."""
    for keyword in (least, most):
        value = schema.get(keyword, 0)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"{path}/{keyword}: expected a whole number of at least 0, got {value!r}")
    low, high = schema.get(least, 0), schema.get(most)
    if high is not None and low > high:
        raise ValueError(f"{path}: {least} {low} is above {most} {high}; no value satisfies both")
    return low, high
