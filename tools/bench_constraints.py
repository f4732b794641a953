"""Time of a token mask, for states met for the first time and again, beside llguidance in the same run.

    python tools/bench_constraints.py [--model smollm2]

Both engines follow the same documents token by token. A seen state is one whose mask this run has computed before, by
another text under the same grammar; the peer keeps no masks, so it has one column. Medians and maxima, in microseconds.
"""

import argparse
import json
import statistics
from time import perf_counter

import llguidance
import numpy as np

from llminfer.basics.checkpoints import load_tokenizer
from llminfer.basics.constraints import Constraint
from llminfer.basics.grammars import Grammar
from llminfer.basics.tokenization import Tokenizer
from llminfer.basics.vocabulary_tries import vocabulary_trie

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 40},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 4},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
NODES = {"type": "array", "items": {"$ref": "#/$defs/node"}}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"label": {"type": "string"}, "children": NODES},
            "required": ["label", "children"],
            "additionalProperties": False,
        }
    },
}
LEAF = {"label": "a leaf, naïve and short", "children": []}
CASES = {  # name: (schema, a document)
    "free string": ({"type": "string"}, "The quick brown fox jumps over the lazy dog, twice."),
    "string of at most 500": ({"type": "string", "maxLength": 500}, "The quick brown fox jumps over the lazy dog."),
    "person": (PERSON, {"name": "Ada Lovelace", "age": 36, "tags": ["red", "blue"]}),
    "tree": (TREE, {"label": "root", "children": [LEAF, {"label": "branch", "children": [LEAF, LEAF]}]}),
    "any value": ({}, {"a": [1, 2.5e-3, {"b": None}], "c": "text"}),
}
SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


class PeerTokenizer:
    """A tokenizer of ours as llguidance asks for one."""

    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer) -> None:
        special = {id: name.encode() for name, id in tokenizer.special.items()}
        ordinary = {id: token for token, id in tokenizer.ranks.items()}
        self.tokens = [(ordinary | special).get(id, b"") for id in range(tokenizer.vocabulary_size)]
        self.special_token_ids = sorted(special)
        self.eos_token_id = tokenizer.eos_ids[0]
        self._encode = tokenizer.encode

    def __call__(self, text: str | bytes) -> list[int]:
        return self._encode(text if isinstance(text, str) else text.decode(errors="ignore"))


def microseconds(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1e6:8.0f} {max(seconds) * 1e6:8.0f}"


def our_masks(grammar: Grammar, tokenizer: Tokenizer, tokens: list[int]) -> list[float]:
    """How long each mask took along a text."""
    constraint, times = Constraint(grammar, tokenizer), []
    for token in tokens:
        begin = perf_counter()
        mask = constraint.mask()
        times.append(perf_counter() - begin)
        if not mask[token]:
            raise ValueError(f"token {token} of the document is not allowed under {grammar}")
        constraint.advance(token)
    return times


def peer_masks(theirs: str, peer: llguidance.LLTokenizer, tokens: list[int]) -> list[float]:
    matcher, times = llguidance.LLMatcher(peer, theirs), []
    for token in tokens:
        begin = perf_counter()
        np.frombuffer(matcher.compute_bitmask(), np.uint8)
        times.append(perf_counter() - begin)
        matcher.consume_token(token)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="tiny", help="whose tokenizer: tiny, smollm2, or a path")
    tokenizer = load_tokenizer(parser.parse_args().model)
    begin = perf_counter()
    trie = vocabulary_trie(tokenizer)
    print(f"{tokenizer}: a trie of {trie.nodes} nodes, built in {(perf_counter() - begin) * 1e3:.0f} ms")
    peer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(PeerTokenizer(tokenizer)))
    columns = "".join(f" |{column:>9}{'max':>9}" for column in ("new", "seen", "peer"))
    print(f"{'mask, us':24}{'states':>8}{'build, ms':>10}{columns}")
    for name, (schema, document) in CASES.items():
        tokens = tokenizer.encode(json.dumps(document, ensure_ascii=False))
        begin = perf_counter()
        grammar = Grammar.from_json_schema(schema)
        Constraint(grammar, tokenizer)
        built = (perf_counter() - begin) * 1e3
        new, seen = (our_masks(grammar, tokenizer, tokens) for _ in range(2))
        theirs = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=SPACING)
        columns = [microseconds(times) for times in (new, seen, peer_masks(theirs, peer, tokens))]
        print(f"{name:24}{grammar.automaton.states:8}{built:10.0f} | {' | '.join(columns)}")


if __name__ == "__main__":
    main()
