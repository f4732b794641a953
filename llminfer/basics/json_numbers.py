"""JSON numbers between bounds, as expressions over their digits; bounds are compared as decimals, digit by digit.

Integers are written without fraction and exponent. Numbers with a bound are written without exponent; without bounds
every form of RFC 8259, section 6 is allowed. Zero may have a minus sign, as it may in JSON.
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from llminfer.basics.digit_ranges import digit_ranges
from llminfer.basics.expressions import (
    EMPTY,
    NOTHING,
    Characters,
    Expression,
    Repeat,
    choice,
    optional,
    sequence,
)

DIGIT = Characters(((0x30, 0x39),))
DIGITS = Repeat(DIGIT)
WHOLE = choice(["0", sequence(Characters(((0x31, 0x39),)), DIGITS)])
EXPONENT = sequence(Characters(((0x45, 0x45), (0x65, 0x65))), optional(choice(["+", "-"])), Repeat(DIGIT, 1))
INTEGER = sequence(optional(choice(["-"])), WHOLE)
NUMBER = sequence(INTEGER, optional(sequence(".", Repeat(DIGIT, 1))), optional(EXPONENT))
MAX_DIGITS = 400  # of a bound; the largest float64 has 309


@dataclass(frozen=True)
class Bounds:
    """low <= x <= high, or < where that side is open; None: no bound."""

    low: Decimal | None = None
    high: Decimal | None = None
    low_open: bool = False
    high_open: bool = False

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            if bound is not None and max(bound.adjusted(), -int(bound.as_tuple().exponent)) > MAX_DIGITS:
                raise ValueError(f"the bound {bound} has more than {MAX_DIGITS} digits before or after the point")

    @property
    def none(self) -> bool:
        return self.low is None and self.high is None

    def magnitudes(self, sign: int) -> "Bounds":
        """Bounds of the sizes of the numbers of this sign (1 or -1) between these bounds, zero among both."""
        near, far = (self.low, self.high) if sign > 0 else (self.high, self.low)
        near_open, far_open = (self.low_open, self.high_open) if sign > 0 else (self.high_open, self.low_open)
        near = None if near is None else sign * near
        if near is None or near < 0:
            near, near_open = Decimal(0), False
        return Bounds(near, None if far is None else sign * far, near_open, far_open)


def integers(bounds: Bounds) -> Expression:
    """The integers between bounds."""
    if bounds.none:
        return INTEGER
    return _signed([_wholes(*_whole_limits(bounds.magnitudes(sign))) for sign in (1, -1)])


def numbers(bounds: Bounds) -> Expression:
    """The numbers between bounds, in decimal digits with or without a fraction."""
    if bounds.none:
        return NUMBER
    return _signed([_decimals(bounds.magnitudes(sign)) for sign in (1, -1)])


def _signed(sizes: list[Expression]) -> Expression:
    return choice([sizes[0], sequence("-", sizes[1])])


def _whole_limits(size: Bounds) -> tuple[int, int | None]:
    """The first and the last whole number between bounds that are not negative."""
    low = int(size.low.to_integral_value(ROUND_CEILING))
    low += size.low_open and low == size.low
    if size.high is None:
        return low, None
    high = int(size.high.to_integral_value(ROUND_FLOOR))
    return low, high - (size.high_open and high == size.high)


def _wholes(low: int, high: int | None) -> Expression:
    """The whole numbers low .. high, low >= 0, without leading zeros."""
    widest = len(str(low if high is None else max(high, 0)))
    options = []
    for width in range(len(str(low)), widest + 1):
        first = max(low, 10 ** (width - 1) if width > 1 else 0)
        last = 10**width - 1 if high is None else min(high, 10**width - 1)
        options += [sequence(*map(_digit, digits)) for digits in digit_ranges(first, last, 10, width)]
    if high is None:  # and all that have more digits
        options.append(sequence(_digit((1, 9)), Repeat(DIGIT, widest)))
    return choice(options)


def _digit(digits: tuple[int, int]) -> Expression:
    return Characters(((0x30 + digits[0], 0x30 + digits[1]),)) if digits[0] <= digits[1] else NOTHING


def _decimals(size: Bounds) -> Expression:
    """The decimals between bounds that are not negative: the lowest whole part, those in between, and the highest."""
    low, low_fraction = _split(size.low)
    wholes = _wholes(*_whole_limits(size))
    lowest = sequence(_wholes(low, low), ".", _fractions(low_fraction, None, size.low_open, False))
    if size.high is None:
        return choice([wholes, lowest, sequence(_wholes(low + 1, None), ".", Repeat(DIGIT, 1))])
    if size.high < size.low:
        return NOTHING
    high, high_fraction = _split(size.high)
    if low == high:
        fractions = _fractions(low_fraction, high_fraction, size.low_open, size.high_open)
        return choice([wholes, sequence(_wholes(low, low), ".", fractions)])
    between = sequence(_wholes(low + 1, high - 1), ".", Repeat(DIGIT, 1))
    highest = sequence(_wholes(high, high), ".", _fractions("", high_fraction, False, size.high_open))
    return choice([wholes, lowest, between, highest])


def _split(number: Decimal) -> tuple[int, str]:
    """The whole part, and the digits behind the point without zeros at the end."""
    whole, _, fraction = f"{number:f}".partition(".")
    return int(whole), fraction.rstrip("0")


def _fractions(low: str, high: str | None, low_open: bool, high_open: bool) -> Expression:
    """At least one digit d, such that 0.low <= 0.d <= 0.high (< where open); high None: no bound."""
    a, b = int(low[:1] or 0), 10 if high is None else int(high[:1] or 0)
    if a > b:
        return NOTHING
    rest_low, rest_high = low[1:], None if high is None else high[1:]
    if a == b:
        return sequence(_digit((a, a)), _rest(rest_low, rest_high, low_open, high_open))
    return choice(
        [
            sequence(_digit((a, a)), _rest(rest_low, None, low_open, high_open)),
            sequence(_digit((a + 1, min(b - 1, 9))), DIGITS),
            sequence(_digit((b, b)), _rest("", rest_high, False, high_open)) if b < 10 else NOTHING,
        ]
    )


def _rest(low: str, high: str | None, low_open: bool, high_open: bool) -> Expression:
    """As `_fractions`, or no further digit where that is between the bounds too."""
    if not low and high is None and not low_open:
        return DIGITS
    if not low and not high and high is not None:  # only zero is left
        return NOTHING if low_open or high_open else Repeat(_digit((0, 0)))
    if not low and high is None:  # above zero: zeros, and then a digit that is none
        return sequence(Repeat(_digit((0, 0))), _digit((1, 9)), DIGITS)
    ends = not low and not low_open  # zero is at least low, and below high, which has digits left
    return choice([EMPTY if ends else NOTHING, _fractions(low, high, low_open, high_open)])
