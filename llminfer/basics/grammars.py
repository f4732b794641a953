"""A grammar: which texts are allowed, written as a regular expression, a JSON Schema or EBNF.

Rules that lead back to themselves are called at run time with a stack; all others are written out where they are named.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from llminfer.basics.automata import DEAD, Automaton, determinise
from llminfer.basics.expressions import Characters, Choice, Expression, Network, Repeat, Rule, Separated, Sequence
from llminfer.basics.minimization import minimise
from llminfer.basics.pushdown import Pushdown
from llminfer.basics.regular_expressions import parse_regular_expression


@dataclass(frozen=True, eq=False)
class Grammar:
    """A set of texts, as the automaton that recognises their UTF-8.

    Sources: Willard and Louf 2023 for automata over a vocabulary; Woods 1970 for the networks that call each other.
    Book section 3.1.7.
    """

    name: str
    automaton: Automaton

    @classmethod
    def from_regex(cls, pattern: str) -> "Grammar":
        """The texts that a regular expression matches as a whole (`re.fullmatch`).

        Raises ValueError for syntax that is no regular language (see `regular_expressions`), for an expression that
        matches nothing, and, naming the bound, for one that grows too large.
        """
        return cls.from_rules({"root": parse_regular_expression(pattern)}, "root", f"regular expression {pattern!r}")

    @classmethod
    def from_json_schema(cls, schema: Mapping[str, Any] | bool) -> "Grammar":
        """The JSON texts that are valid under a schema of Draft 2020-12 and keep to the spacing `json.dumps` uses.

        `json_schemas` states the policy and what is understood. Raises ValueError for every other keyword, naming it
        and its place, for a schema that no text satisfies, and, naming the bound, for one that grows too large.
        """
        from llminfer.basics.json_schemas import rules_of_schema

        return cls.from_rules(rules_of_schema(schema), "#", "the JSON Schema")

    @classmethod
    def from_ebnf(cls, text: str) -> "Grammar":
        """The texts of a grammar in EBNF, from its rule `root`, or its first one; `ebnf` states the notation.

        Raises ValueError for malformed text, for rules that are missing or begin with themselves, for a grammar that
        no text satisfies, and, naming the bound, for one that grows too large.
        """
        from llminfer.basics.ebnf import parse_ebnf

        rules, start = parse_ebnf(text)
        return cls.from_rules(rules, start, f"the grammar of {start!r}")

    @classmethod
    def from_rules(cls, rules: Mapping[str, Expression], start: str, name: str = "the grammar") -> "Grammar":
        """The texts of rule `start`. Raises ValueError as the other three do."""
        try:
            automaton = minimise(determinise(rules, start, recursive_rules(rules, start), name))
        except RecursionError:
            raise ValueError(f"{name} is nested too deep to be followed; flatten it") from None
        if automaton.starts[0] == DEAD:
            raise ValueError(f"{name} allows no text at all; some part of it contradicts another or never ends")
        grammar = cls(name, automaton)
        grammar.pushdown  # noqa: B018 - refuses left recursion now, not when the first text comes
        return grammar

    @cached_property
    def pushdown(self) -> Pushdown:
        """The automaton with its stacks; what it has met so far is kept in it."""
        return Pushdown(self.automaton)

    @property
    def recursive(self) -> bool:
        """Does it need a stack?"""
        return len(self.automaton.starts) > 1

    def accepts(self, text: str | bytes) -> bool:
        """Is this text one of the grammar's?"""
        text = text.encode() if isinstance(text, str) else text
        return self.pushdown.may_end(self.pushdown.after(self.pushdown.start, text))

    def __repr__(self) -> str:
        return f"<Grammar {self.name}, {self.automaton.states} states>"


def recursive_rules(rules: Mapping[str, Expression], start: str) -> tuple[str, ...]:
    """The rules that can be reached from `start` and lead back to themselves, in the order in which they are met."""
    named = {start: names_in(rules[start])}
    open_ = [start]
    while open_:
        for name in named[open_.pop()]:
            if name not in named:
                named[name] = names_in(rules[name])
                open_.append(name)
    return tuple(name for name in named if name in _reachable(named, name))


def names_in(expression: Expression) -> dict[str, None]:
    """The rules that an expression names, each once, in order."""
    match expression:
        case Characters() | Network():
            return {}
        case Rule(name):
            return {name: None}
        case Repeat(item):
            return names_in(item)
        case Sequence(parts) | Choice(parts):
            return {name: None for part in parts for name in names_in(part)}
        case Separated(items, separator):
            return {name: None for part in (separator, *(item for item, _ in items)) for name in names_in(part)}


def _reachable(named: Mapping[str, Mapping[str, None]], name: str) -> set[str]:
    seen: set[str] = set()
    open_ = [name]
    while open_:
        fresh = set(named[open_.pop()]) - seen
        seen |= fresh
        open_ += fresh
    return seen
