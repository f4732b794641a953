"""Automata: the fewest states there can be, bytes of UTF-8 and no others, and bounds in place of hangs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llminfer.basics.automata import DEAD, MAX_LOOKS, MAX_STATES, Automaton, determinise
from llminfer.basics.digit_ranges import digit_ranges, utf8_forms
from llminfer.basics.expressions import UNICODE, complement, united
from llminfer.basics.grammars import Grammar
from llminfer.basics.minimization import minimise
from llminfer.basics.regular_expressions import parse_regular_expression
from llminfer.basics.thompson import MAX_POSITIONS

SMALL = st.recursive(
    st.sampled_from(["a", "b", "[ab]", "é", "."]),
    lambda inner: (
        st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "?", "{2}", "{1,3}"]))
        | st.builds("{}{}".format, inner, inner)
        | st.builds("(?:{}|{})".format, inner, inner)
    ),
    max_leaves=7,
)


def residual_languages(automaton: Automaton) -> int:
    """How many states no text tells apart, without the dead: pairs are marked until none is left (Moore 1956)."""
    table, states = automaton.table, len(automaton.table)
    differ = automaton.accepting[:, None] != automaton.accepting[None, :]  # [states, states]
    while True:
        later = differ[table[:, None, :], table[None, :, :]].any(axis=2)
        if not (later & ~differ).any():
            break
        differ |= later
    alive = differ[DEAD]  # what differs from the dead state reaches an end
    return len({tuple(differ[state]) for state in range(states) if alive[state]})


@settings(max_examples=100, deadline=None)
@given(SMALL)
def test_no_automaton_has_fewer_states(pattern):
    whole = determinise({"root": parse_regular_expression(pattern)}, "root", ())
    assert minimise(whole).states == residual_languages(whole)


@settings(max_examples=60, deadline=None)
@given(SMALL, st.lists(st.text("abcé", max_size=6), max_size=20))
def test_minimising_changes_no_language(pattern, texts):
    whole = determinise({"root": parse_regular_expression(pattern)}, "root", ())
    small = minimise(whole)
    for text in texts:
        assert small.accepts(text.encode()) == whole.accepts(text.encode())


def test_an_expression_that_backtracking_engines_fear_has_two_states():
    automaton = Grammar.from_regex("(a*)*b").automaton
    assert automaton.states == 2
    assert automaton.accepts(b"a" * 10_000 + b"b")


def test_the_textbook_example_is_doubled_by_each_character_it_must_remember():
    assert [Grammar.from_regex(f"(a|b)*a(a|b){{{n}}}").automaton.states for n in range(5)] == [2, 4, 8, 16, 32]


@pytest.mark.parametrize(
    ("pattern", "bound"),
    [
        ("a{1,1000000}", MAX_POSITIONS),
        ("(((a{1000}){1000}){1000}){1000}", MAX_POSITIONS),
        ("(a|b)*a(a|b){20}", MAX_STATES),
        ("(a{0,90}){0,90}", MAX_LOOKS),
    ],
)
def test_what_would_grow_too_large_is_refused_and_the_bound_named(pattern, bound):
    with pytest.raises(ValueError, match=f"{bound}"):
        Grammar.from_regex(pattern)


def test_a_long_count_within_the_bounds_is_built():
    grammar = Grammar.from_regex("[a-z]{1,1000}")
    assert grammar.automaton.states == 1001
    assert grammar.accepts("q" * 1000)
    assert not grammar.accepts("q" * 1001)


def test_any_character_is_every_character_and_no_other_bytes():
    grammar = Grammar.from_regex(r"[\s\S]")
    for code in [
        *range(0, 0xD800, 97),
        *range(0xE000, 0x110000, 997),
        0x7F,
        0x80,
        0x7FF,
        0x800,
        0xFFFF,
        0x10000,
        0x10FFFF,
    ]:
        assert grammar.accepts(chr(code)), hex(code)
    for wrong in (
        b"\x80",
        b"\xc0\x80",
        b"\xe0\x80\x80",
        b"\xed\xa0\x80",
        b"\xf0\x80\x80\x80",
        b"\xf4\x90\x80\x80",
        b"\xff",
    ):
        assert not grammar.accepts(wrong), wrong


@given(st.integers(0, 0x10FFFF), st.integers(0, 0x10FFFF), st.integers(0, 0x10FFFF))
def test_the_forms_of_a_range_are_the_utf8_of_its_characters(a, b, code):
    ranges = united([(min(a, b), max(a, b))])
    for code_point in (code, a, b):
        if not 0xD800 <= code_point <= 0xDFFF:
            text = chr(code_point).encode()
            fits = [
                all(low <= byte <= high for byte, (low, high) in zip(text, places, strict=True))
                for places in utf8_forms(ranges)
                if len(places) == len(text)
            ]
            assert sum(fits) == (min(a, b) <= code_point <= max(a, b))


def test_a_range_of_numbers_digit_by_digit():
    assert list(digit_ranges(1, 123, 10, 3)) == [
        ((0, 0), (0, 0), (1, 9)), ((0, 0), (1, 9), (0, 9)), ((1, 1), (0, 1), (0, 9)), ((1, 1), (2, 2), (0, 3)),
    ]  # fmt: skip


def test_neighbours_are_joined_and_others_are_not():
    assert united([(5, 6), (1, 1), (2, 3), (8, 8), (5, 5)]) == ((1, 3), (5, 6), (8, 8))


def test_a_complement_of_a_complement_is_the_same_characters():
    ranges = united([(0x41, 0x5A), (0xD000, 0xE100), (0x10FFFF, 0x10FFFF)])
    assert complement(complement(ranges)) == ranges
    assert united([*ranges, *complement(ranges)]) == UNICODE


def test_bytes_that_nothing_tells_apart_share_a_column():
    automaton = Grammar.from_regex("[a-z]+1").automaton
    assert automaton.classes == 3  # letters, the digit, all else
    assert np.unique(automaton.class_of[ord("a") : ord("z") + 1]).size == 1
