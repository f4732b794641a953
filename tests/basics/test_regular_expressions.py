"""Regular expressions against Python's own engine, and what they refuse."""

import random
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llminfer.basics.automata import DEAD
from llminfer.basics.grammars import Grammar

ALPHABET = "ab0_-. \né€😀"
CHARACTERS = st.sampled_from(
    ["a", "b", "0", "_", "-", r"\.", " ", r"\n", "é", "€", "😀", r"\x61", r"\u20ac", r"\U0001f600"]
)
ATOMS = CHARACTERS | st.sampled_from(
    [
        ".",
        r"\d",
        r"\w",
        r"\s",
        r"\D",
        r"\W",
        r"\S",
        "[ab]",
        "[^a]",
        "[a-é]",
        r"[^\d\s]",
        r"[]a-]",
        r"[\w.-]",
        "[€-😀]",
        "{",
        "}",
    ]
)
COUNTS = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{,2}", "{2,}", "*?", "+?", "??", "{0}", "{,}"])


def _larger(patterns: st.SearchStrategy) -> st.SearchStrategy:
    groups = st.builds("{}{})".format, st.sampled_from(["(", "(?:", "(?P<n>"]), patterns).filter(_compiles)
    return (
        st.builds(str.__add__, groups | ATOMS, COUNTS)
        | st.builds("{}{}".format, patterns, patterns)
        | (st.builds("(?:{}|{})".format, patterns, patterns))
    )


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


PATTERNS = st.recursive(ATOMS, _larger, max_leaves=8).filter(_compiles)
TEXTS = st.text(ALPHABET, max_size=8)


def matches(grammar: Grammar | None, text: str) -> bool:
    return grammar is not None and grammar.accepts(text)


@settings(max_examples=100, deadline=None)
@given(PATTERNS, st.lists(TEXTS, min_size=5, max_size=20), st.randoms(use_true_random=False))
@example("(a*)*b", ["aab", "b", "a", ""], random.Random(0))
@example("", ["", "a"], random.Random(0))
@example("^a|b$|^c$", ["a", "b", "c", "ac"], random.Random(0))
@example(r"[\b-]\0\a\t\v\f\r", ["\b\0\a\t\v\f\r", "-\0\a\t\v\f\r"], random.Random(0))
@example("a{}b{x}{2}", ["a{}b{x}}", "a{}b{x}"], random.Random(0))
def test_an_expression_matches_what_pythons_fullmatch_matches(pattern, texts, rng):
    try:
        grammar = Grammar.from_regex(pattern)
    except ValueError as problem:
        assert "allows no text" in str(problem)
        grammar = None
    for text in texts + ([sample(grammar, rng) for _ in range(5)] if grammar else []):
        assert matches(grammar, text) == bool(re.fullmatch(pattern, text, re.ASCII)), (pattern, text)


def sample(grammar: Grammar, rng: random.Random) -> str:
    """A text of the grammar, or one with a character dropped: at random along the automaton, and then straight out."""
    automaton, state, text = grammar.automaton, grammar.automaton.starts[0], bytearray()
    while not (automaton.accepting[state] and rng.random() < 0.3) and len(text) < 200:
        following = automaton.table[state, automaton.class_of]  # [256]
        choices = np.flatnonzero(following != DEAD)
        if not len(choices):
            break
        text.append(rng.choice(choices.tolist()))
        state = int(following[text[-1]])
    whole = text.decode(errors="ignore")
    return whole if rng.random() < 0.7 else whole[:-1]


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("(?=a)", "lookahead"), ("(?!a)", "negative lookahead"), ("(?<=a)", "lookbehind"), ("(?<!a)b", "lookbehind"),
        (r"(a)\1", "backreference"), ("(?P<x>a)(?P=x)", "backreference"), (r"\bword", "word boundary"),
        ("(?i)a", "flag"), ("(?>a)", "atomic group"), ("a++", "possessive"), (r"\p{L}", "Unicode property"),
    ],
)  # fmt: skip
def test_what_is_no_regular_language_is_refused_by_name(pattern, what):
    with pytest.raises(ValueError, match=f"{what}.* is not supported"):
        Grammar.from_regex(pattern)


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("(a", "not closed"), ("a)", "unmatched"), ("[a", "not closed"), ("*a", "repeats nothing"),
        ("a**", "repetition of a repetition"), ("a{3,2}", "ends below"), ("[b-a]", "backwards"), ("a\\", "backslash"),
        (r"\xz1", "hexadecimal"), (r"\ud800", "no character"), ("(^a|b)c", "anchor"), ("a$b", "inside"),
        (r"\q", "unknown escape"), (r"[a-\d]", "between two characters"),
    ],
)  # fmt: skip
def test_a_malformed_expression_says_where(pattern, what):
    with pytest.raises(ValueError, match=rf"index \d+: .*{what}"):
        Grammar.from_regex(pattern)


def test_classes_are_ascii_as_in_ecma_262():
    assert not Grammar.from_regex(r"\d").accepts("٣")
    assert Grammar.from_regex(r"\D").accepts("٣")


def test_groups_nested_beyond_reading_are_refused():
    with pytest.raises(ValueError, match="nested more than"):
        Grammar.from_regex("(" * 5000 + ")" * 5000)


def test_an_expression_that_nothing_matches_is_refused():
    with pytest.raises(ValueError, match="allows no text"):
        Grammar.from_regex(r"a[^\s\S]")
