"""Thompson's automaton of an expression: a few states for each of its parts, joined by edges that are free.

Works on UTF-8, byte by byte, because tokens are bytes and may end inside of a character. Source: Thompson 1968.
"""

from collections.abc import Collection, Mapping

import numpy as np
from jaxtyping import Int

from llminfer.basics.digit_ranges import utf8_forms
from llminfer.basics.expressions import (
    Characters,
    Choice,
    Expression,
    Network,
    Ranges,
    Repeat,
    Rule,
    Separated,
    Sequence,
)

MAX_POSITIONS = 200_000
"""Characters an expression may have once its repetitions are written out."""


class Nfa:
    """Thompson's automaton: states with edges by bytes (or calls) and edges that are free.

    edges: state -> (from byte, to byte, next state); a call of a recursive rule is a number from 256 on.
    free:  state -> next states.
    """

    def __init__(self, rules: Mapping[str, Expression], calls: Mapping[str, int]) -> None:
        self.rules = rules
        self.calls = calls
        self.edges: list[list[tuple[int, int, int]]] = []
        self.free: list[list[int]] = []

    def state(self) -> int:
        """A new state."""
        self.edges.append([])
        self.free.append([])
        return len(self.edges) - 1

    def build(self, item: Expression, begin: int) -> int:
        """Add what `item` matches behind the state `begin`; returns the state behind it."""
        match item:
            case Characters(ranges):
                return self._characters(ranges, begin)
            case Sequence(parts):
                for part in parts:
                    begin = self.build(part, begin)
                return begin
            case Choice(options):
                end = self.state()
                for option in options:
                    self.free[self.build(option, begin)].append(end)
                return end
            case Repeat(inner, minimum, maximum):
                return self._repeat(inner, minimum, maximum, begin)
            case Separated(items, separator):
                return self._separated(items, separator, begin)
            case Network(states, edges, ends):
                return self._network(states, edges, ends, begin)
            case Rule(name) if name in self.calls:
                end = self.state()
                self.edges[begin].append((self.calls[name], self.calls[name], end))
                return end
            case Rule(name):
                return self.build(self.rules[name], begin)

    def _characters(self, ranges: Ranges, begin: int) -> int:
        """Forms with the same last bytes share the states before them."""
        end = self.state()
        before: dict[tuple, int] = {(): end}  # the byte ranges still to come -> the state they come behind
        for places in utf8_forms(ranges):
            for start in range(len(places) - 1, 0, -1):
                if places[start:] not in before:
                    before[places[start:]] = self.state()
                    self.edges[before[places[start:]]].append((*places[start], before[places[start + 1 :]]))
            self.edges[begin].append((*places[0], before[places[1:]]))
        return end

    def _repeat(self, item: Expression, minimum: int, maximum: int | None, begin: int) -> int:
        for _ in range(minimum):
            begin = self.build(item, begin)
        end = self.state()
        self.free[begin].append(end)
        if maximum is None:
            inside = self.state()
            self.free[begin].append(inside)
            self.free[self.build(item, inside)] += [inside, end]
        for _ in range((maximum or 0) - minimum):
            begin = self.build(item, begin)
            self.free[begin].append(end)
        return end

    def _separated(self, items: tuple[tuple[Expression, bool], ...], separator: Expression, begin: int) -> int:
        """Two tracks side by side: nothing there yet, and something there, so that a separator must come first."""
        none_yet, some = begin, self.state()
        for item, may_be_left_out in items:
            before, none_after, some_after = self.state(), self.state(), self.state()
            self.free[none_yet].append(before)
            self.free[self.build(separator, some)].append(before)
            self.free[self.build(item, before)].append(some_after)
            if may_be_left_out:
                self.free[none_yet].append(none_after)
                self.free[some].append(some_after)
            none_yet, some = none_after, some_after
        end = self.state()
        self.free[none_yet].append(end)
        self.free[some].append(end)
        return end

    def _network(
        self, states: int, edges: tuple[tuple[int, int, int, int], ...], ends: tuple[int, ...], begin: int
    ) -> int:
        new, end = [self.state() for _ in range(states)], self.state()
        self.free[begin].append(new[0])  # not `begin` itself, to which its edges may lead back
        for state, low, high, following in edges:
            self.edges[new[state]].append((low, high, new[following]))
        for state in ends:
            self.free[new[state]].append(end)
        return end


def byte_classes(nfa: Nfa) -> Int[np.ndarray, "256"]:
    """A class for each byte: two bytes share one when every edge that takes the one takes the other."""
    ranges = sorted({(low, high) for edges in nfa.edges for low, high, _ in edges if low < 256})
    taken_by = np.zeros((256, len(ranges)), bool)
    for place, (low, high) in enumerate(ranges):
        taken_by[low : high + 1, place] = True
    _, class_of = np.unique(taken_by, axis=0, return_inverse=True)
    return class_of.reshape(256).astype(np.int32)


def check_size(rules: Mapping[str, Expression], names: Collection[str], recursive: Collection[str], what: str) -> None:
    """Raise ValueError if the rules, written out, have more than MAX_POSITIONS characters. Counts; builds nothing."""
    known: dict[str, int] = {}

    def size(item: Expression) -> int:
        match item:
            case Characters():
                return 1
            case Sequence(parts) | Choice(parts):
                return 1 + sum(map(size, parts))
            case Repeat(inner, minimum, maximum):
                return 1 + size(inner) * max(minimum + 1 if maximum is None else maximum, 1)
            case Separated(items, separator):
                return 1 + sum(size(inner) + size(separator) + 1 for inner, _ in items)
            case Network(states):
                return states
            case Rule(name):
                if name in recursive:
                    return 1
                if name not in known:
                    known[name] = size(rules[name])
                return known[name]

    positions = sum(size(rules[name]) for name in names)
    if positions > MAX_POSITIONS:
        raise ValueError(
            f"{what} has {positions} characters once its repetitions are written out; the bound is {MAX_POSITIONS}: "
            "use smaller counts, or * and + in their place"
        )
