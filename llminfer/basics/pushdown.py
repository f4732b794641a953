"""A grammar at work: stacks of states that move byte by byte, so that rules may call rules and themselves.

An automaton that calls no rule has one stack of one state for ever: a finite automaton is the case without a stack.
Where a text can be read in several ways there are several stacks. Left recursion would push for ever and is refused.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Int

from llminfer.basics.automata import DEAD, Automaton

Stack = tuple[int, ...]
"""States to go on in, the innermost rule's last. The empty stack: all rules are through."""
Configuration = frozenset[Stack]
"""All stacks that the text so far can have led to; empty when none is left."""

UNKNOWN = -1
MAX_STACKS = 2000


class Pushdown:
    """An automaton with its stacks.

    Besides whole configurations it numbers *local* ones, which know only what lies on top: `step` moves arrays of these
    numbers, and `returned` says where the frame below must take over. Number q is the state q on its own; others are
    made when first met. Raises ValueError for left recursion.
    """

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self._classes = automaton.classes
        self._rows = automaton.table.tolist()
        calls = automaton.table[:, self._classes :]
        self._calls = [[(automaton.starts[1 + rule], row[rule]) for rule in np.flatnonzero(row)] for row in calls]
        self._leaf = automaton.accepting & ~automaton.table.any(axis=1)  # nothing left to do there but to return
        _refuse_left_recursion(automaton)
        self._close = lru_cache(maxsize=65536)(self._closure)
        self._local: list[Configuration] = [frozenset({(q,)} if q else ()) for q in range(len(self._rows))]
        self._numbers = {configuration: number for number, configuration in enumerate(self._local)}
        self._next = np.where(calls.any(axis=1)[:, None], UNKNOWN, automaton.table[:, : self._classes])
        self._returned = np.array([() in self._close(configuration) for configuration in self._local])

    @property
    def start(self) -> Configuration:
        return frozenset({(self.automaton.starts[0],)})

    def after(self, configuration: Configuration, text: bytes) -> Configuration:
        """The configuration behind some more bytes; empty when they do not fit."""
        for byte in text:
            configuration = self._move(configuration, int(self.automaton.class_of[byte]))
        return configuration

    def may_end(self, configuration: Configuration) -> bool:
        return () in self._close(configuration)

    def next_bytes(self, configuration: Configuration) -> Int[np.ndarray, "n"]:
        """The bytes that can come next."""
        possible = np.zeros(self._classes, bool)
        for stack in self._close(configuration):
            if stack:
                possible |= self.automaton.table[stack[-1], : self._classes] != DEAD
        return np.flatnonzero(possible[self.automaton.class_of])

    def step(self, numbers: Int[np.ndarray, "n"], classes: Int[np.ndarray, "n"]) -> Int[np.ndarray, "n"]:
        """Local configurations after one byte each, by its class; DEAD where it does not fit."""
        following = self._next.take(numbers * self._classes + classes)
        if following.min(initial=0) == UNKNOWN:
            unknown = following == UNKNOWN
            for number, column in set(zip(numbers[unknown].tolist(), classes[unknown].tolist(), strict=True)):
                target = self._number(self._move(self._local[number], column))  # may lengthen the table
                self._next[number, column] = target
            following = self._next.take(numbers * self._classes + classes)
        return following

    def returned(self, numbers: Int[np.ndarray, "n"]) -> Bool[np.ndarray, "n"]:
        """Which local configurations may have used up their frame, so that the one below goes on."""
        return self._returned[numbers]

    def _number(self, configuration: Configuration) -> int:
        if configuration not in self._numbers:
            number = self._numbers[configuration] = len(self._local)
            self._local.append(configuration)
            if number >= len(self._next):  # twice the room, so that growing costs little in all
                self._next = np.concatenate([self._next, np.full_like(self._next, UNKNOWN)])
                self._returned = np.concatenate([self._returned, np.zeros_like(self._returned)])
            self._returned[number] = () in self._close(configuration)
        return self._numbers[configuration]

    def _move(self, configuration: Configuration, column: int) -> Configuration:
        moved = {(*stack[:-1], self._rows[stack[-1]][column]) for stack in self._close(configuration) if stack}
        return frozenset(stack for stack in moved if stack[-1] != DEAD)

    def _closure(self, configuration: Configuration) -> Configuration:
        """With all stacks that calls and returns lead to before the next byte."""
        seen, open_ = set(configuration), list(configuration)
        while open_:
            stack = open_.pop()
            if not stack:
                continue
            below, state = stack[:-1], stack[-1]
            followers = [below] if self.automaton.accepting[state] else []
            for begin, back in self._calls[state]:  # a call in last place leaves no frame: right recursion is a loop
                followers.append((*below, begin) if self._leaf[back] else (*below, int(back), begin))
            fresh = [follower for follower in followers if follower not in seen]
            seen.update(fresh)
            open_ += fresh
            if len(seen) > MAX_STACKS:
                raise ValueError(
                    f"the text can be read in more than {MAX_STACKS} ways, the bound; make the rules of the grammar "
                    "differ at their beginning, so that a few bytes tell which one applies"
                )
        return frozenset(seen)


def _refuse_left_recursion(automaton: Automaton) -> None:
    """Raise ValueError if a rule can call itself before it has read a byte."""
    starts, calls = automaton.starts[1:], automaton.table[:, automaton.classes :]
    empty = _rules_without_bytes(automaton)
    first_calls = {}  # rule -> rules it can call before any byte
    for rule, start in enumerate(starts):
        first_calls[rule] = {
            called for state in _reached_without_bytes(start, calls, empty) for called in np.flatnonzero(calls[state])
        }
    for rule in first_calls:
        seen, open_ = set(), [rule]
        while open_:
            fresh = first_calls[open_.pop()] - seen
            if rule in fresh:
                raise ValueError(
                    "left recursion: a rule begins with itself, as in  sum ::= sum '+' term | term; "
                    "write it as a repetition,  sum ::= term ('+' term)*"
                )
            seen |= fresh
            open_ += fresh


def _reached_without_bytes(start: int, calls: np.ndarray, empty: set[int]) -> set[int]:
    """The states of a rule behind calls that may match nothing."""
    seen, open_ = {start}, [start]
    while open_:
        state = open_.pop()
        fresh = {int(calls[state, rule]) for rule in empty} - seen - {DEAD}
        seen |= fresh
        open_ += fresh
    return seen - {DEAD}


def _rules_without_bytes(automaton: Automaton) -> set[int]:
    """The rules that match the empty text."""
    calls, empty = automaton.table[:, automaton.classes :], set()
    while True:
        now = {
            rule
            for rule, start in enumerate(automaton.starts[1:])
            if automaton.accepting[list(_reached_without_bytes(start, calls, empty))].any()
        }
        if now == empty:
            return empty
        empty = now
