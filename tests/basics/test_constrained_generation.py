"""The loop under a grammar, on models whose wishes are known."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from llminfer.basics.checkpoints import load_tokenizer
from llminfer.basics.config import ModelConfig
from llminfer.basics.continuations import Completion, collect
from llminfer.basics.generation import stream, stream_many
from llminfer.basics.grammars import Grammar
from llminfer.basics.sampling_params import SamplingParams

TINY = load_tokenizer("tiny")
CONFIG = ModelConfig(
    name="wishes", layers=1, width=8, heads=1, kv_heads=1, head_width=8, feed_forward=8,
    vocabulary=TINY.vocabulary_size + 5, context=200, eos_ids=TINY.eos_ids,
)  # fmt: skip
PERSON = Grammar.from_json_schema({
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["name", "age"],
})  # fmt: skip


class Wishes:
    """Wants its tokens in the order of a list, whatever the text says, and counts how often it is asked."""

    def __init__(self, favourites: list[int]) -> None:
        self.config = CONFIG
        self.scores = np.zeros(CONFIG.vocabulary)
        self.scores[favourites] = np.arange(len(favourites), 0, -1)
        self.asked, self.read = 0, 0

    def hidden(self, tokens: np.ndarray, positions: np.ndarray, view: object) -> np.ndarray:
        self.read = len(tokens)
        return positions[:, None].astype(np.float64)

    def head(self, hidden: np.ndarray) -> np.ndarray:
        self.asked += 1
        return np.tile(self.scores, (len(hidden), 1))


def answer(model: Wishes, grammar: Grammar, **params) -> Completion:
    return collect(stream(model, TINY, TINY.encode("a"), SamplingParams(**params), grammar=grammar))


def test_a_model_that_wants_something_else_still_says_a_text_of_the_grammar():
    favourites = [*TINY.encode(" the"), *TINY.encode(' "'), *TINY.encode('"'), *TINY.encode("7")]
    completion = answer(Wishes(favourites), PERSON)
    assert completion.finish_reason == "stop"
    assert json.loads(completion.text) == {"name": " the the", "age": 7}


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_drawn_texts_are_texts_of_the_grammar(temperature):
    grammar = Grammar.from_regex("(yes|no|maybe)( [a-z]{1,3}){0,2}")
    model, params = Wishes([]), SamplingParams(temperature=temperature, n=6, top_k=20, max_tokens=60)
    texts: dict[int, list] = {}
    for i, token in stream_many(model, TINY, TINY.encode("a"), params, grammar=grammar):
        texts.setdefault(i, []).append(token)
    said = [Completion(tuple(tokens)) for tokens in texts.values()]
    assert all(grammar.accepts(c.text) and c.finish_reason == "stop" for c in said)
    assert len({c.text for c in said}) > 1


def test_forced_tokens_ask_no_model_and_have_no_probability():
    model = Wishes([])
    completion = answer(model, Grammar.from_regex('{"answer": (true|false)}'))
    unasked = [token for token in completion.tokens if math.isnan(token.logprob)]
    assert len(completion.tokens) - len(unasked) == model.asked
    assert model.asked <= 2  # the choice, and perhaps how what is in front of it is cut
    assert completion.ids[-1] in TINY.eos_ids and completion.tokens[-1] in unasked


def test_the_pass_after_forced_tokens_computes_them_all():
    model = Wishes([])
    tokens = stream(model, TINY, TINY.encode("a"), SamplingParams(), grammar=Grammar.from_regex('{"answer": [0-9]+}'))
    ahead = 0
    while math.isnan(next(tokens).logprob):
        ahead += 1
    assert ahead > 1 and model.read == 1 + ahead


def test_max_tokens_cuts_a_text_off_among_forced_tokens_too():
    completion = answer(Wishes([]), Grammar.from_regex('{"a long name": 1}'), max_tokens=2)
    assert len(completion.ids) == 2 and completion.finish_reason == "length"


def test_the_end_of_the_grammar_ends_the_text_whatever_ids_were_to_stop_it():
    completion = answer(Wishes([]), Grammar.from_regex("ab"), stop_ids=frozenset())
    assert completion.text == "ab" and completion.finish_reason == "stop"


def test_top_k_chooses_among_what_the_grammar_allows():
    [favourite, allowed] = TINY.encode("a")[0], TINY.encode("7")[0]
    completion = answer(Wishes([favourite, allowed]), Grammar.from_regex("[0-9]{2}"), temperature=1.0, top_k=1)
    assert completion.text == "77"


def test_a_tokenizer_without_an_end_is_refused():
    with pytest.raises(ValueError, match="no end-of-text token"):
        stream(Wishes([]), replace(TINY, eos_ids=()), [1], grammar=PERSON)
