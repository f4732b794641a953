"""JSON strings as expressions: what stands between the quotes, given what it means.

A character may stand for itself or be escaped, short (`\\n`) or by number (`\\u000a`, beyond U+FFFF by two surrogates);
where values are free, every spelling is allowed (RFC 8259, section 7). A number of half a pair is none.
"""

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache

from llminfer.basics.digit_ranges import digit_ranges
from llminfer.basics.expressions import (
    EMPTY,
    UNICODE,
    Characters,
    Choice,
    Expression,
    Ranges,
    Repeat,
    Separated,
    Sequence,
    choice,
    complement,
    intersection,
    literal,
    sequence,
    united,
)

SHORT = {0x22: '"', 0x5C: "\\", 0x2F: "/", 0x08: "b", 0x0C: "f", 0x0A: "n", 0x0D: "r", 0x09: "t"}
ITSELF: Ranges = complement(((0x00, 0x1F), (0x22, 0x22), (0x5C, 0x5C)))
"""The characters that may stand for themselves."""


def quoted(content: Expression) -> Expression:
    """A string with this content, in every spelling of each of its characters."""
    return sequence('"', spelled(content), '"')


def spelled(content: Expression) -> Expression:
    """The same texts with each character as it can be written in a JSON string."""
    match content:
        case Characters(ranges):
            return spelled_character(ranges)
        case Sequence(parts):
            return Sequence(tuple(map(spelled, parts)))
        case Choice(options):
            return Choice(tuple(map(spelled, options)))
        case Repeat(item, minimum, maximum):
            return Repeat(spelled(item), minimum, maximum)
        case Separated(items, separator):
            return Separated(tuple((spelled(item), left_out) for item, left_out in items), spelled(separator))
    raise TypeError(f"rules have no place in a string, got {content}")


@lru_cache(maxsize=256)
def spelled_character(ranges: Ranges) -> Expression:
    """A character of these ranges: itself, by letter, or by number."""
    letters = united(
        (ord(letter), ord(letter)) for code, letter in SHORT.items() if intersection(ranges, [(code, code)])
    )
    numbers = [_hexadecimal(low, high) for low, high in intersection(ranges, [(0, 0xFFFF)])]
    pairs = [pair for low, high in intersection(ranges, [(0x10000, 0x10FFFF)]) for pair in _surrogates(low, high)]
    escaped = choice([Characters(letters), sequence("u", choice([*numbers, *pairs]))])
    return choice([Characters(intersection(ranges, ITSELF)), sequence("\\", escaped)])


def other_names(names: Iterable[str]) -> Expression:
    """A string, in the one spelling of `json.dumps(name, ensure_ascii=False)`, that is none of these names."""
    return sequence('"', _other_than(sorted(set(names))), '"')


def _other_than(names: list[str]) -> Expression:
    """Whatever is none of these (sorted) texts: it ends before, goes on behind, or leaves the path of one of them."""
    if not names:
        return Repeat(_plain_character(UNICODE))
    firsts = sorted({name[0] for name in names if name})
    options: list[Expression] = [] if "" in names else [EMPTY]
    elsewhere = _plain_character(complement(united((ord(first), ord(first)) for first in firsts)))
    options.append(sequence(elsewhere, Repeat(_plain_character(UNICODE))))
    for first in firsts:
        rest = _other_than([name[1:] for name in names if name[:1] == first])
        options.append(sequence(_plain_character(((ord(first), ord(first)),)), rest))
    return choice(options)


def _plain_character(ranges: Ranges) -> Expression:
    """A character of these ranges as `json.dumps` writes it: itself, or the one escape it needs."""
    needs_escape = [code for code in (*range(0x20), 0x22, 0x5C) if intersection(ranges, [(code, code)])]
    escaped = [literal(json.dumps(chr(code))[1:-1]) for code in needs_escape]
    return choice([Characters(intersection(ranges, ITSELF)), *escaped])


def _hexadecimal(low: int, high: int) -> Expression:
    """Four hexadecimal digits, of either case, for the numbers low .. high."""
    return choice(
        sequence(*(_hexadecimal_digit(first, last) for first, last in digits))
        for digits in digit_ranges(low, high, 16, 4)
    )


def _hexadecimal_digit(first: int, last: int) -> Expression:
    written = [f"{digit:{case}}" for digit in range(first, last + 1) for case in "xX"]
    return Characters(united((ord(digit), ord(digit)) for digit in written))


def _surrogates(low: int, high: int) -> Iterator[Expression]:
    """The escapes, less their first \\u, of characters beyond U+FFFF: ten bits in each half."""
    for (first, last), (below, above) in digit_ranges(low - 0x10000, high - 0x10000, 1024, 2):
        leading = _hexadecimal(0xD800 + first, 0xD800 + last)
        yield sequence(leading, "\\u", _hexadecimal(0xDC00 + below, 0xDC00 + above))
