"""Chapter 3.1, how a token is chosen: every number in the text is what the functions give.

CLAIMS, PARTS and GIVEN as in `test_3_1_basics`.
"""

import math
from pathlib import Path

import numpy as np
import pytest

from llminfer.basics import (
    Constraint,
    Grammar,
    SamplingParams,
    apply_frequency_penalty,
    apply_min_p,
    apply_presence_penalty,
    apply_repetition_penalty,
    apply_temperature,
    apply_top_k,
    apply_top_p,
    gumbel,
    load_tokenizer,
    log_softmax,
    occurrences,
    preset,
    process_logits,
    sample,
    softmax,
)
from llminfer.basics.automata import MAX_STATES
from llminfer.basics.token_masks import pack_mask
from llminfer.basics.tokenization import Tokenizer
from llminfer.basics.vocabulary_tries import vocabulary_trie
from llminfer.core.philox import token_uniform

CHAPTER = Path(__file__).parents[2] / "chapters" / "3.1-basics.md"
PARTS = ("3.1.6", "3.1.7")

WORDS = ("blue", "clear", "the", "grey", "falling", "a", "green", "limit", "sky", "Monday")
SKY = np.array([4.0, 3.4, 2.9, 2.6, 1.9, 1.3, 0.6, -0.2, -0.9, -2.0])
MODEL = softmax(SKY)
BLUE = occurrences([], [0, 0], len(SKY))  # the answer has said "blue" twice

TINY = load_tokenizer("tiny")
TRIE = vocabulary_trie(TINY)
NUMBER = Grammar.from_regex("-?(0|[1-9][0-9]*)").automaton
TWELVE = ("a", "ab", "an", "and", "ant", "1", "10", "103", "108", "1e", "1e1", "1e2")
SMOLLM2 = preset("smollm2-135m")

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "role": {"enum": ["reader", "teacher", "student"]},
    },
    "required": ["name", "role"],
}

# P(first letter), and P(x | first letter), of the model that knows a and b
FIRST = {"a": 0.9, "b": 0.1}
THEN_X = {"a": 0.01, "b": 0.9}


def kept(logits: np.ndarray) -> int:
    return int(np.isfinite(logits).sum())


def percent(logits: np.ndarray, token: int = 0) -> float:
    return 100 * softmax(logits)[token]


def remembering(letters: int) -> Grammar:
    return Grammar.from_regex(f"(a|b)*a(a|b){{{letters}}}")


def forced_of(text: str) -> tuple[int, int]:
    """(tokens that need no model, all tokens) of a text under SCHEMA, its end among them."""
    constraint = Constraint(Grammar.from_json_schema(SCHEMA), TINY)
    wanted = [*TINY.encode(text), TINY.eos_ids[0]]
    taken, forced = 0, 0
    while not constraint.ended:
        tokens = constraint.forced()
        forced += len(tokens)
        tokens = tokens or wanted[taken : taken + 1]
        assert tokens == wanted[taken : taken + len(tokens)]
        for token in tokens:
            constraint.advance(token)
        taken += len(tokens)
    return forced, taken


AX, BX = (FIRST[letter] * THEN_X[letter] for letter in "ab")

CLAIMS = [
    # 3.1.6
    ("{:,.0f} tokens of probability 10⁻⁶ each, and every tenth draw", 0.1 / 1e-6),
    ("their logits are {} (blue), {} (clear), {} (the), {} (grey), {} (falling), {} (a), {} (green), −{} (limit), "
     "−{} (sky) and −{} (Monday)", *np.abs(SKY)),
    ("Blue has {:.1f} % at τ = 1, {:.1f} % at 0.5 and {:.1f} % at 2", *(percent(SKY / tau) for tau in (1, 0.5, 2))),
    ("Ours add up to {:.1f}, {:.1f}, {:.1f}, {:.1f} and {:.1f} %", *100 * np.cumsum(MODEL)[:5]),
    ("is left with {:.1f} % of its odds", 100 * math.exp(-2)),
    ("θ = 1.3 takes blue from {:.1f} % to {:.1f} %, but to {:.1f} % if 1 is first added to all ten logits",
     percent(SKY), *(percent(apply_repetition_penalty(SKY + shift, BLUE, 1.3)) for shift in (0, 1))),
    ("−{:.2f} for blue", -log_softmax(SKY)[0]),
    # 3.1.7
    ("For `-?(0|[1-9][0-9]*)` {} states are left", NUMBER.states),
    ("share a column, here {} in place of 256", NUMBER.classes),
    ("{} for n = 3 and {:,} for n = 13; at n = 14 the library refuses, its bound being {:,}",
     remembering(3).automaton.states, 2**14, MAX_STATES),
    ("the {:,} tokens of the bundled tokenizer have {:,} bytes, their trie has {:,} edges",
     TINY.vocabulary_size, sum(map(len, TINY.ranks)), TRIE.nodes - 1),
    ("a bit a token: {:,} bytes for the {:,} tokens of SmolLM2",
     pack_mask(np.ones(SMOLLM2.vocabulary, bool)).nbytes, SMOLLM2.vocabulary),
    ('In `{{"name": "Ada", "role": "student"}}` {} of {} tokens are forced',
     *forced_of('{"name": "Ada", "role": "student"}')),
    ("a in {:.0f} % and with b in {:.0f} % of its texts. After a it goes on with x in {:.0f} %, after b in {:.0f} %",
     *(100 * p for p in (*FIRST.values(), *THEN_X.values()))),
    ("{} × {} = {:.3f} and {} × {} = {:.2f}", FIRST["a"], THEN_X["a"], AX, FIRST["b"], THEN_X["b"], BX),
    ("of all texts that follow the grammar {:.1f} % are ax. Masking draws a with {:.0f} %",
     100 * AX / (AX + BX), 100 * FIRST["a"]),
    ("as nothing else is: {:.0f} % of ax", 100 * FIRST["a"]),
    ("here {} for ax and {} for bx", THEN_X["a"], THEN_X["b"]),
]  # fmt: skip

GIVEN = {*("0.5", "0.9", "0.05", "0.85")}  # settings we chose


def test_the_text_says_what_the_functions_give(text, claim):
    template, *values = claim
    assert template.format(*values) in text


def test_no_number_in_the_text_is_without_a_source(text, unproved_numbers):
    assert unproved_numbers(text, [template.format(*values) for template, *values in CLAIMS], GIVEN) == []


# 3.1.6


def test_how_many_tokens_each_cut_leaves():
    assert kept(apply_top_p(SKY, 0.9)) == 5  # "the fifth, falling, crosses p and stays"
    assert kept(apply_min_p(SKY, 0.05)) == 6
    assert kept(apply_top_p(apply_temperature(SKY, 2), 0.9)) == 7
    assert kept(apply_temperature(apply_top_p(SKY, 0.9), 2)) == 5
    assert kept(apply_top_p(apply_top_k(SKY, 4), 0.85)) == 3
    assert kept(apply_top_k(apply_top_p(SKY, 0.85), 4)) == 4


def test_min_p_is_a_difference_of_the_models_own_logits():
    for tau in (0.5, 1, 2):
        stays = np.isfinite(apply_min_p(apply_temperature(SKY, tau), 0.05))
        np.testing.assert_array_equal(stays, SKY >= SKY.max() + tau * math.log(0.05))
        np.testing.assert_array_equal(stays, softmax(SKY / tau) >= 0.05 * softmax(SKY / tau).max())


def test_temperature_is_a_power_of_the_ratio():
    p, q = softmax(SKY), softmax(SKY / 0.5)
    assert q[0] / q[3] == pytest.approx((p[0] / p[3]) ** 2)


def test_frequency_and_presence_penalty_are_the_formula_of_the_text():
    counts = np.array([2, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    occurred = occurrences([1, 2], [0, 3, 0], len(SKY))
    got = apply_presence_penalty(apply_frequency_penalty(SKY, occurred, 0.7), occurred, 0.4)
    assert got == pytest.approx(SKY - 0.7 * counts - 0.4 * np.minimum(counts, 1))


def test_a_token_said_twice_keeps_e_to_minus_two_of_its_odds():
    p, q = softmax(SKY), softmax(apply_frequency_penalty(SKY, BLUE, 1.0))
    assert (q[0] / q[1]) / (p[0] / p[1]) == pytest.approx(math.exp(-2))


def test_a_penalty_after_the_temperature_weighs_double_at_two():
    before = apply_temperature(apply_frequency_penalty(SKY, BLUE, 2.0), 2)
    after = apply_frequency_penalty(apply_temperature(SKY, 2), BLUE, 1.0)
    assert softmax(before) == pytest.approx(softmax(after))


def test_a_ban_after_a_cut_may_leave_nothing():
    params = SamplingParams(temperature=1, top_k=1)
    assert np.argmax(process_logits(SKY, params, [], banned=[0])) == 1
    cut_first = apply_top_k(SKY, 1)
    cut_first[0] = -np.inf
    assert kept(cut_first) == 0


def test_the_largest_of_noisy_logits_is_a_draw_from_the_softmax():
    """20,000 draws of position 0 ...: each share within four standard errors."""
    n = 20_000
    noise = gumbel(token_uniform(3, 0, 0, n * len(SKY))).reshape(n, len(SKY))
    shares = np.bincount((SKY + noise).argmax(axis=1), minlength=len(SKY)) / n
    assert (np.abs(shares - MODEL) < 4 * np.sqrt(MODEL * (1 - MODEL) / n)).all()


def test_the_winner_of_shards_is_the_winner_of_all():
    for position in range(50):
        u = token_uniform(3, 0, position, len(SKY))
        scores = SKY + gumbel(u)
        shards = [(scores[i:j].max(), i + scores[i:j].argmax()) for i, j in ((0, 3), (3, 7), (7, 10))]
        assert max(shards)[1] == sample(SKY, 1, u)


def test_a_generator_with_a_state_depends_on_who_else_asks():
    alone, together = np.random.default_rng(0), np.random.default_rng(0)
    together.random(10)  # another request asks first
    assert (alone.random(10) != together.random(10)).all()
    first = token_uniform(0, 1, 5, 10)
    token_uniform(0, 2, 5, 10)
    np.testing.assert_array_equal(token_uniform(0, 1, 5, 10), first)


# 3.1.7


@pytest.mark.slow
def test_fourteen_letters_take_a_state_for_each_way_they_can_be():
    assert remembering(13).automaton.states == 2**14


@pytest.mark.slow
def test_fifteen_letters_to_remember_are_refused():
    with pytest.raises(ValueError, match="more than 20000 states"):
        remembering(14)


def toy(*tokens: str) -> Tokenizer:
    ranks = {token.encode(): id for id, token in enumerate(tokens)}
    return Tokenizer("toy", ranks, r"[a-z]+|[^a-z]+", {"<end>": len(tokens)}, {}, eos_ids=(len(tokens),))


def test_three_of_seven_tokens_with_a_digit_first_are_no_way_on():
    mask = Constraint(Grammar.from_regex("-?(0|[1-9][0-9]*)"), toy(*TWELVE)).mask()
    first = [token for token in TWELVE if token[0].isdigit()]
    refused = [token for token, yes in zip(TWELVE, mask, strict=False) if token in first and not yes]
    assert (len(first), refused) == (7, ["1e", "1e1", "1e2"])


def test_a_level_of_the_trie_is_one_lookup():
    """`state[node] = table[state[parent], class[byte]]`, as the text has it."""
    state = np.zeros(TRIE.nodes, int)
    state[0] = NUMBER.starts[0]
    for first, end in TRIE.levels:
        nodes = slice(first, end)
        state[nodes] = NUMBER.table[state[TRIE.parent[nodes]], NUMBER.class_of[TRIE.byte[nodes]]]
    mask = Constraint(Grammar.from_regex("-?(0|[1-9][0-9]*)"), TINY).mask()
    np.testing.assert_array_equal(TRIE.tokens_at(state != 0), mask)


def test_brackets_are_counted_by_a_stack():
    grammar = Grammar.from_ebnf('root ::= "(" root ")" | "x"')
    assert grammar.recursive
    assert all(grammar.accepts("(" * n + "x" + ")" * n) for n in range(30))
    assert not any(grammar.accepts("(" * n + "x" + ")" * (n + 1)) for n in range(30))


def masked_law() -> tuple[dict[str, float], dict[str, float]]:
    """(probability under masking, product of the allowed shares Z) of each text of [ab]x, by the library's masks."""
    tokenizer = toy("a", "b", "x", "y")
    law, allowed_shares = {}, {}
    for letter, id in (("a", 0), ("b", 1)):
        constraint = Constraint(Grammar.from_regex("[ab]x"), tokenizer)
        drawn, shares = 1.0, 1.0
        for token, p in ((id, [*FIRST.values(), 0, 0, 0]), (2, [0, 0, THEN_X[letter], 1 - THEN_X[letter], 0])):
            mask = constraint.mask()
            masked = softmax(np.where(mask, np.log(np.maximum(p, 1e-300)), -np.inf))
            drawn *= masked[token]
            shares *= np.sum(np.array(p)[mask])
            constraint.advance(token)
        law[letter + "x"], allowed_shares[letter + "x"] = drawn, shares
    return law, allowed_shares


def test_masking_draws_ax_in_nine_of_ten_where_conditioning_has_it_in_one_of_eleven():
    law, allowed_shares = masked_law()
    assert law == pytest.approx({"ax": 0.9, "bx": 0.1})
    assert allowed_shares == pytest.approx({"ax": 0.01, "bx": 0.9})


def test_weights_of_allowed_shares_turn_masking_into_conditioning():
    law, allowed_shares = masked_law()
    weighted = {text: law[text] * allowed_shares[text] for text in law}
    total = sum(weighted.values())
    conditioned = {"ax": AX / (AX + BX), "bx": BX / (AX + BX)}
    assert {text: weight / total for text, weight in weighted.items()} == pytest.approx(conditioned)
