"""From an expression to a deterministic automaton over bytes: Thompson's construction, then sets of its states.

Works on UTF-8, byte by byte, because tokens are bytes and may end inside of a character. Bytes that no expression tells
apart form one class, a column of the table. A call of a recursive rule is one more column; `pushdown` follows it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from llminfer.basics.digit_ranges import utf8_forms
from llminfer.basics.expressions import Characters, Choice, Expression, Ranges, Repeat, Rule, Separated, Sequence

DEAD = 0
"""The state from which no text can be completed; every other state can still reach the end."""
MAX_POSITIONS = 200_000
"""Characters an expression may have once its repetitions are written out."""
MAX_STATES = 20_000
"""States a deterministic automaton may have: a table of 4 MB for 50 classes of bytes, built in seconds."""
MAX_LOOKS = 2_000_000
"""States looked at while sets of them are put together; only ambiguity makes them so many."""


@dataclass(frozen=True, eq=False)
class Automaton:
    """A deterministic automaton, or several that call each other, in one table.

    table:     next state by state and column; DEAD where there is none. The first C columns are classes of bytes, then
               comes one per recursive rule: the state to go on in once that rule is through.
    class_of:  the column of each byte.
    accepting: may the text, or the called rule, end here?
    starts:    where the whole grammar begins, then where each recursive rule begins.
    """

    table: Int[np.ndarray, "states columns"]
    class_of: Int[np.ndarray, "256"]
    accepting: Bool[np.ndarray, "states"]
    starts: tuple[int, ...]

    @property
    def classes(self) -> int:
        """C: how many columns are classes of bytes."""
        return int(self.class_of.max()) + 1

    @property
    def states(self) -> int:
        """How many states there are besides DEAD."""
        return len(self.table) - 1

    def accepts(self, text: bytes) -> bool:
        """Does the text belong to the language? For automata without calls, a byte at a time."""
        state = self.starts[0]
        for byte in text:
            state = self.table[state, self.class_of[byte]]
        return bool(self.accepting[state])


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


def determinise(
    rules: Mapping[str, Expression], start: str, recursive: Collection[str], what: str = "the grammar"
) -> Automaton:
    """The automaton of a grammar: rule `start`, then each of the `recursive` ones; all other rules are written out.

    Dead ends are left in; see `minimization`. Raises ValueError, naming the bound, for what would grow beyond it.
    Sources: Thompson 1968 for the states with free edges; Rabin and Scott 1959, theorem 11, for the sets of them.
    """
    check_size(rules, (start, *recursive), recursive, what)
    nfa = Nfa(rules, {name: 256 + place for place, name in enumerate(recursive)})
    begins, ends = [], set()
    for name in (start, *recursive):
        begins.append(nfa.state())
        ends.add(nfa.build(rules[name], begins[-1]))
    class_of = byte_classes(nfa)
    columns = np.append(class_of, class_of.max() + 1 + np.arange(len(recursive)))  # of each byte and each call
    sets = _Subsets(nfa, ends, columns, what)
    starts = tuple(sets.number({begin}) for begin in begins)
    rows = []
    while len(rows) < len(sets.subsets):  # grows with the rows
        rows.append([DEAD] * (int(columns.max()) + 1))
        for column, target in sets.targets(sets.subsets[len(rows) - 1]).items():
            rows[-1][column] = target
    accepting = np.array([not ends.isdisjoint(subset) for subset in sets.subsets])
    return Automaton(np.array(rows, np.int32), class_of, accepting, starts)


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


def byte_classes(nfa: Nfa) -> Int[np.ndarray, "256"]:
    """A class for each byte: two bytes share one when every edge that takes the one takes the other."""
    ranges = sorted({(low, high) for edges in nfa.edges for low, high, _ in edges if low < 256})
    taken_by = np.zeros((256, len(ranges)), bool)
    for place, (low, high) in enumerate(ranges):
        taken_by[low : high + 1, place] = True
    _, class_of = np.unique(taken_by, axis=0, return_inverse=True)
    return class_of.reshape(256).astype(np.int32)


class _Subsets:
    """Sets of states that the same text can lead to; each becomes one state of the deterministic automaton."""

    def __init__(self, nfa: Nfa, ends: set[int], columns: Int[np.ndarray, "bytes_and_calls"], what: str) -> None:
        self.what = what
        self.free = nfa.free
        ranges = {(low, high) for edges in nfa.edges for low, high, _ in edges}
        covered = {(low, high): np.unique(columns[low : high + 1]).tolist() for low, high in ranges}
        self.moves = [[(covered[low, high], to) for low, high, to in edges] for edges in nfa.edges]
        self.ends = ends
        self.subsets: list[frozenset[int]] = [frozenset()]
        self._numbers: dict[frozenset[int], int] = {frozenset(): DEAD}
        self._closures: dict[int, frozenset[int]] = {}
        self._looked_at = 0

    def number(self, states: set[int]) -> int:
        """The number of the set of all that can be reached from these states for free."""
        closures = [self._closure(state) for state in states]
        self._count(sum(map(len, closures)))
        subset = frozenset().union(*closures)
        if subset not in self._numbers:
            if len(self.subsets) > MAX_STATES:
                raise ValueError(
                    f"{self.what} needs more than {MAX_STATES} states, the bound for a deterministic automaton: lower "
                    "its counts and lengths, or let its alternatives differ earlier"
                )
            self._numbers[subset] = len(self.subsets)
            self.subsets.append(subset)
        return self._numbers[subset]

    def targets(self, subset: frozenset[int]) -> dict[int, int]:
        """Column -> number of the set that it leads to."""
        reached: dict[int, set[int]] = {}
        for state in subset:
            for columns, to in self.moves[state]:
                for column in columns:
                    reached.setdefault(column, set()).add(to)
        return {column: self.number(states) for column, states in reached.items()}

    def _closure(self, state: int) -> frozenset[int]:
        """What can be reached for free, kept only where something begins or the text may end."""
        if state not in self._closures:
            seen, stack = {state}, [state]
            while stack:
                for following in self.free[stack.pop()]:
                    if following not in seen:
                        seen.add(following)
                        stack.append(following)
            self._count(len(seen))
            self._closures[state] = frozenset(s for s in seen if self.moves[s] or s in self.ends)
        return self._closures[state]

    def _count(self, states: int) -> None:
        self._looked_at += states
        if self._looked_at > MAX_LOOKS:
            raise ValueError(
                f"{self.what} is too ambiguous: the same text can be read in so many ways that more than {MAX_LOOKS} "
                "states had to be looked at, the bound; do not repeat what is optional, as in (a{0,99}){0,99}"
            )
