"""What a grammar is made of: sets of characters, one after the other, one or the other, again, and rules by name.

Regular expressions, JSON Schemas and EBNF are three ways to write these few nodes; `automata` knows only the nodes.
"""

from collections.abc import Iterable
from dataclasses import dataclass

Ranges = tuple[tuple[int, int], ...]
"""Code points from .. to, both inclusive; sorted, apart from each other, without surrogates."""

UNICODE: Ranges = ((0, 0xD7FF), (0xE000, 0x10FFFF))
"""All characters: code points without the surrogates, which UTF-8 cannot write."""


@dataclass(frozen=True)
class Characters:
    """Any one character of these ranges."""

    ranges: Ranges


@dataclass(frozen=True)
class Sequence:
    """All parts, in this order."""

    parts: "tuple[Expression, ...]"


@dataclass(frozen=True)
class Choice:
    """Any one of the options; without options: nothing, not even the empty text."""

    options: "tuple[Expression, ...]"


@dataclass(frozen=True)
class Repeat:
    """The item at least `minimum` and at most `maximum` times; None: as often as one likes."""

    item: "Expression"
    minimum: int = 0
    maximum: int | None = None


@dataclass(frozen=True)
class Separated:
    """Items in this order, the optional ones there or not, and the separator between those that are there."""

    items: "tuple[tuple[Expression, bool], ...]"  # (item, may it be left out)
    separator: "Expression"


@dataclass(frozen=True)
class Rule:
    """Whatever the rule of this name describes; rules may name each other and themselves."""

    name: str


@dataclass(frozen=True)
class Network:
    """An automaton over bytes, ready made: it begins in state 0 and may end in any of `ends`."""

    states: int
    edges: tuple[tuple[int, int, int, int], ...]  # (state, from byte, to byte, next state)
    ends: tuple[int, ...]


Expression = Characters | Sequence | Choice | Repeat | Separated | Rule | Network

EMPTY = Sequence(())
NOTHING = Choice(())


def literal(text: str) -> Expression:
    """This text and no other. Raises ValueError for lone surrogates, which are no characters."""
    text.encode()
    return Sequence(tuple(Characters(((ord(character), ord(character)),)) for character in text))


def sequence(*parts: Expression | str) -> Expression:
    """All parts in this order; a string stands for itself."""
    return Sequence(tuple(literal(part) if isinstance(part, str) else part for part in parts))


def choice(options: Iterable[Expression | str]) -> Expression:
    """Any one of the options; a string stands for itself."""
    return Choice(tuple(literal(option) if isinstance(option, str) else option for option in options))


def optional(item: Expression) -> Expression:
    """The item or nothing."""
    return Repeat(item, 0, 1)


def united(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The same code points, sorted, neighbours joined, surrogates left out."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return intersection(joined, UNICODE)


def intersection(left: Iterable[tuple[int, int]], right: Iterable[tuple[int, int]]) -> Ranges:
    """The code points in both; each side sorted and apart."""
    right = tuple(right)
    pairs = ((max(a, c), min(b, d)) for a, b in left for c, d in right)
    return tuple((low, high) for low, high in pairs if low <= high)


def alphabet(expression: Expression) -> Ranges:
    """The characters that an expression without rules speaks of; no text of it has any other."""
    match expression:
        case Characters(ranges):
            return ranges
        case Repeat(item):
            return alphabet(item)
        case Sequence(parts) | Choice(parts):
            return united(run for part in parts for run in alphabet(part))
    raise TypeError(f"expected characters and what joins them, got {expression}")


def complement(ranges: Ranges) -> Ranges:
    """All characters but these."""
    edges = [-1, *(edge for low, high in united(ranges) for edge in (low, high)), 0x110000]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return intersection([(low + 1, high - 1) for low, high in gaps if low + 1 < high], UNICODE)
