"""A range of numbers, written out digit by digit: for UTF-8 (digits of 6 bits), hexadecimal escapes and decimals."""

from collections.abc import Iterator
from functools import lru_cache

Digits = tuple[tuple[int, int], ...]
"""For each place, the digits from .. to, both inclusive."""

UTF8_FORMS = ((0x00, 0x7F, (0x00,)), (0x80, 0x7FF, (0xC0, 0x80)), (0x800, 0xFFFF, (0xE0, 0x80, 0x80)),
              (0x10000, 0x10FFFF, (0xF0, 0x80, 0x80, 0x80)))  # fmt: skip
"""(first and last code point, what marks each byte) of the characters of 1, 2, 3 and 4 bytes; RFC 3629, section 3."""


def digit_ranges(low: int, high: int, base: int, width: int) -> Iterator[Digits]:
    """The numbers low .. high, each of `width` digits with leading zeros, as few products of digit ranges.

    1..123 in three decimal digits: 00[1-9], 0[1-9][0-9], 1[0-1][0-9], 12[0-3].
    """
    if low > high:
        return
    if width == 0:
        yield ()
        return
    place = base ** (width - 1)
    first, last = low // place, high // place
    if low % place == 0 and high % place == place - 1:  # all that begins with these digits
        yield ((first, last), *(((0, base - 1),) * (width - 1)))
        return
    if first == last:
        for rest in digit_ranges(low % place, high % place, base, width - 1):
            yield ((first, first), *rest)
        return
    whole_from = low if low % place == 0 else (first + 1) * place
    whole_to = high if high % place == place - 1 else last * place - 1
    yield from digit_ranges(low, whole_from - 1, base, width)
    yield from digit_ranges(whole_from, whole_to, base, width)
    yield from digit_ranges(whole_to + 1, high, base, width)


@lru_cache(maxsize=1024)
def utf8_forms(ranges: tuple[tuple[int, int], ...]) -> tuple[Digits, ...]:
    """The UTF-8 forms of the characters of these ranges (no surrogates among them), as sequences of byte ranges."""
    forms = []
    for low, high in ranges:
        for first, last, marks in UTF8_FORMS:
            base = 64 if len(marks) > 1 else 128
            for digits in digit_ranges(max(low, first), min(high, last), base, len(marks)):
                forms.append(tuple((mark + a, mark + b) for mark, (a, b) in zip(marks, digits, strict=True)))
    return tuple(forms)
