"""Masks over toy vocabularies that can be checked by eye, and over the bundled one; what is forced, what is refused."""

import re

import numpy as np
import pytest

from llminfer.basics.checkpoints import load_tokenizer
from llminfer.basics.constraints import Constraint
from llminfer.basics.grammars import Grammar
from llminfer.basics.token_masks import pack_mask, unpack_mask
from llminfer.basics.tokenization import Tokenizer
from llminfer.basics.vocabulary_tries import build_trie, vocabulary_trie

TINY = load_tokenizer("tiny")


def toy(*tokens: str) -> Tokenizer:
    """A tokenizer of these tokens and an end-of-text token, and a control token, behind them."""
    ranks = {token.encode("latin-1"): id for id, token in enumerate(tokens)}
    special = {"<end>": len(tokens), "<control>": len(tokens) + 1}
    return Tokenizer("toy", ranks, r"[a-z]+|[^a-z]+", special, {}, eos_ids=(len(tokens),))


def names(constraint: Constraint) -> set[str]:
    tokenizer = constraint.tokenizer
    return {tokenizer.decode_bytes([id]).decode("latin-1") for id in np.flatnonzero(constraint.mask()).tolist()}


def constrained(pattern: str, tokenizer: Tokenizer, *taken: str) -> Constraint:
    constraint = Constraint(Grammar.from_regex(pattern), tokenizer)
    for token in taken:
        constraint.advance(tokenizer.ranks[token.encode("latin-1")])
    return constraint


def test_the_mask_of_an_integer_over_a_vocabulary_of_words_and_numbers():
    # Published example: the guidance cookbook's trie of twelve tokens, integers written without exponents.
    tokenizer = toy("a", "ab", "an", "and", "ant", "1", "10", "103", "108", "1e", "1e1", "1e2")
    constraint = constrained("-?(0|[1-9][0-9]*)", tokenizer)
    assert names(constraint) == {"1", "10", "103", "108"}
    assert not constraint.can_end
    constraint.advance(tokenizer.ranks[b"10"])
    assert names(constraint) == {"1", "10", "103", "108", "<end>"}


def test_a_mask_equals_trying_every_token_on_its_own():
    begun = r'"(?:[^"\\]|\\.){0,20}(?:"|\\)?'  # what a quoted text may look like on its way
    constraint = constrained(r'"([^"\\]|\\.){0,20}"', TINY)
    for token in TINY.encode('"x\\'):
        constraint.advance(token)
    mask = constraint.mask()
    for token, id in TINY.ranks.items():
        if token.isascii():
            assert mask[id] == bool(re.fullmatch(begun, '"x\\' + token.decode())), token


def test_tokens_may_end_inside_of_a_character():
    tokenizer = toy("\xe2", "\x82", "\xac", "\xe2\x82", "\x82\xac", "a")
    assert names(constrained("€", tokenizer)) == {"\xe2", "\xe2\x82"}
    assert names(constrained("€", tokenizer, "\xe2")) == {"\x82", "\x82\xac"}
    assert names(constrained("€", tokenizer, "\xe2\x82", "\xac")) == {"<end>"}


def test_no_mask_leads_to_where_the_vocabulary_cannot_go_on():
    tokenizer = toy("a", "ab", "bc", "d")  # no c and no b of their own: after "ab" nothing can follow
    assert names(constrained("abc|ad", tokenizer)) == {"a"}
    assert names(constrained("abc|ad", tokenizer, "a")) == {"bc", "d"}


def test_a_grammar_that_the_vocabulary_cannot_write_is_refused():
    with pytest.raises(ValueError, match="no sequence of this vocabulary's tokens"):
        constrained("abx", toy("a", "ab", "bc"))
    with pytest.raises(ValueError, match="bytes that are no tokens of their own"):
        Constraint(Grammar.from_ebnf('root ::= "x" root "y" | ""'), toy("x", "xy"))


def test_the_text_ends_exactly_where_it_may_and_other_control_tokens_never_come():
    constraint = constrained("a{1,2}", toy("a", "<", "control", ">"))
    assert names(constraint) == {"a"}
    constraint.advance(0)
    assert names(constraint) == {"a", "<end>"} and constraint.can_end
    constraint.advance(4)
    assert constraint.ended and not constraint.mask().any() and constraint.forced() == []
    with pytest.raises(ValueError, match="after the end of the text"):
        constraint.advance(0)


def test_the_name_of_a_control_token_is_ordinary_text():
    constraint = constrained("<control>", toy("a", "<", "control", ">"))
    assert names(constraint) == {"<"}
    with pytest.raises(ValueError, match="may not come next"):
        constraint.advance(5)


@pytest.mark.parametrize("token", [1, 2, 3, -1, 99])
def test_a_token_out_of_place_is_refused_and_changes_nothing(token):
    constraint = constrained("a+", toy("a", "b"))  # 2 is the end, which may not come first; 3 a control token
    with pytest.raises(ValueError, match=f"token {token} .*may not come next"):
        constraint.advance(token)
    assert names(constraint) == {"a"}


def test_texts_under_one_grammar_share_masks_and_nothing_else():
    grammar, tokenizer = Grammar.from_regex("[ab]c?"), toy("a", "b", "c")
    one, other = Constraint(grammar, tokenizer), Constraint(grammar, tokenizer)
    one.advance(0)
    one.mask()[:] = False  # a caller may write into what it gets
    assert names(other) == {"a", "b"} and names(one) == {"c", "<end>"}
    other.advance(1)
    assert other.packed_mask() is one.packed_mask()


def test_forced_bytes_end_where_there_is_a_choice():
    constraint = constrained('{"name": "[a-z]+", "x": 1}', TINY)
    assert constraint.forced_bytes() == b'{"name": "'
    for token in TINY.encode('{"name": "a'):
        constraint.advance(token)
    assert constraint.forced_bytes() == b"" and constraint.forced() == []
    assert constrained("ab?", TINY).forced_bytes() == b"a"  # it may end there


def test_forced_tokens_are_cut_as_the_tokenizer_cuts_and_leave_the_last_open():
    constraint = constrained('{"name": "[a-z]+"}', TINY)
    assert constraint.forced() == TINY.encode('{"name": "')[:-1]
    for token in constraint.forced():
        constraint.advance(token)
    assert names(constraint) > {' "'}  # its longer forms, such as a quote and a letter, stay open to the model


def test_the_only_token_is_forced_the_end_among_them():
    tokenizer = toy("a", "b")
    constraint = constrained("ab", tokenizer)
    taken = []
    while not constraint.ended:
        [token] = constraint.forced()
        constraint.advance(token)
        taken.append(token)
    assert taken == [0, 1, 2]


def test_half_a_character_is_forced_as_the_one_token_it_is():
    constraint = constrained("é|è", TINY)  # the same first byte
    assert constraint.forced_bytes() == b"\xc3"
    assert constraint.forced() == [TINY.ranks[b"\xc3"]]


def test_tokens_that_outlast_a_rule_are_followed_in_the_rules_around_it():
    tokenizer = toy("(", ")", "))", ")))", ")(", "()", "a", "a)", "a))a")
    grammar = Grammar.from_ebnf('root ::= "(" root ")" | "a"')
    constraint = Constraint(grammar, tokenizer)
    assert names(constraint) == {"(", "a"}
    for _ in range(2):
        constraint.advance(0)
    assert names(constraint) == {"(", "a", "a)"}
    constraint.advance(tokenizer.ranks[b"a"])
    assert names(constraint) == {")", "))"}
    constraint.advance(tokenizer.ranks[b"))"])
    assert names(constraint) == {"<end>"}


def test_a_token_may_outlast_two_rules_at_once():
    tokenizer = toy("(", ")", "))", ")x)", ")xx", "a", "x")
    constraint = Constraint(Grammar.from_ebnf('root ::= "(" item ")"\nitem ::= root "x"? | "a"'), tokenizer)
    for token in (b"(", b"(", b"a"):
        constraint.advance(tokenizer.ranks[token])
    assert names(constraint) == {")", "))", ")x)"}  # "))" ends the inner root, and then its item, which may have an x


def test_masks_of_a_stack_equal_those_of_the_same_texts_without_one():
    recursive = Grammar.from_ebnf('root ::= "[" (item (", " item)*)? "]"\nitem ::= "1" | "22" | root')
    level = "1|22"
    for _ in range(5):
        level = rf"1|22|\[(?:(?:{level})(?:, (?:{level}))*)?\]"
    flat = Grammar.from_regex(rf"\[(?:(?:{level})(?:, (?:{level}))*)?\]")  # as deep as six lists
    rng = np.random.default_rng(3)
    for _ in range(10):
        ours, other, opened = Constraint(recursive, TINY), Constraint(flat, TINY), 0
        while opened < 3 and not ours.ended:  # no token opens more than three
            np.testing.assert_array_equal(ours.mask(), other.mask())
            token = int(rng.choice(np.flatnonzero(ours.mask())))
            opened += TINY.decode([token]).count("[")
            ours.advance(token)
            other.advance(token)


def test_a_trie_has_a_node_for_every_prefix():
    tokens = [b"a", b"ab", b"abc", b"b", b"bcd"]
    trie = build_trie(tokens, [3, 1, 0, 2, 5], vocabulary=7)
    assert trie.nodes == 1 + len({token[:end] for token in tokens for end in range(1, len(token) + 1)})
    assert trie.node_of[[4, 6]].tolist() == [trie.nodes] * 2
    for token, id in zip(tokens, [3, 1, 0, 2, 5], strict=True):
        node, spelled = int(trie.node_of[id]), b""
        while node:
            spelled, node = bytes([trie.byte[node]]) + spelled, int(trie.parent[node])
        assert spelled == token


def test_the_two_walks_of_the_trie_agree():
    trie, automaton = vocabulary_trie(TINY), Grammar.from_regex("[a-z]+( [a-z]+){0,2}").automaton
    step = lambda states, nodes: automaton.table[states, automaton.class_of[trie.byte[nodes]]]  # noqa: E731
    whole = trie.states_from_root(automaton.starts[0], step)
    sparse = np.zeros_like(whole)
    sparse[0] = automaton.starts[0]
    for nodes, states in trie.states_below(np.array([0]), np.array([automaton.starts[0]]), step):
        sparse[nodes] = states
    np.testing.assert_array_equal(whole, sparse)


@pytest.mark.parametrize("vocabulary", [1, 31, 32, 33, 199])
def test_a_packed_mask_is_a_bit_per_token_lowest_first(vocabulary):
    allowed = np.random.default_rng(vocabulary).random(vocabulary) < 0.5
    words = pack_mask(allowed)
    assert words.shape == (-(-vocabulary // 32),) and words.dtype == np.int32
    assert [bool(int(words[t // 32]) >> t % 32 & 1) for t in range(vocabulary)] == allowed.tolist()
    np.testing.assert_array_equal(unpack_mask(words, vocabulary), allowed)
