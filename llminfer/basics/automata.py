"""From an expression to a deterministic automaton over bytes: each of its states is a set of Thompson's.

Bytes that no expression tells apart form one class, a column of the table. A call of a recursive rule is one more
column; `pushdown` follows it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from llminfer.basics.expressions import Expression
from llminfer.basics.thompson import Nfa, byte_classes, check_size

DEAD = 0
"""The state from which no text can be completed; every other state can still reach the end."""
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
