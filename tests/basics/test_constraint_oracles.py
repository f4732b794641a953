"""Whole schemas under three oracles we did not write: a validator, a generator of valid documents, another engine."""

import json
import random
import re
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llminfer.basics.checkpoints import load_tokenizer
from llminfer.basics.constraints import Constraint
from llminfer.basics.grammars import Grammar
from llminfer.basics.vocabulary_tries import ROOT, vocabulary_trie

jsonschema = pytest.importorskip("jsonschema")
hypothesis_jsonschema = pytest.importorskip("hypothesis_jsonschema")
llguidance = pytest.importorskip("llguidance")

TOKENIZER = load_tokenizer("tiny")
TOKENS = {id: token for token, id in TOKENIZER.ranks.items()}


def closed(properties: dict, required: list[str]) -> dict:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


NODES = {"type": "array", "items": {"$ref": "#/$defs/node"}}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {"node": closed({"children": NODES, "value": {"type": "integer"}}, ["children"])},
}
SCHEMAS = {  # properties in alphabetical order, so that sorted documents keep to the policy
    "scalars": {"type": ["null", "boolean", "integer", "number"]},
    "string": {"type": "string"},
    "lengths": {"type": "string", "minLength": 2, "maxLength": 5},
    "pattern": {"type": "string", "pattern": r"^[A-Z]{2}-[0-9]{1,3}$"},
    "search": {"type": "string", "pattern": "[ab]c"},
    "pattern and lengths": {"type": "string", "pattern": "^[a-z]+( [a-z]+)*$", "minLength": 3, "maxLength": 9},
    "integers": {"type": "integer", "minimum": -12, "maximum": 130},
    "numbers": {"type": "number", "minimum": 0, "exclusiveMaximum": 2.5},
    "enum": {"enum": ["red", "green \n\"x\"", 7, None, True, [1, {"a": "é"}]]},
    "array": {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3},
    "tuple": {"type": "array", "prefixItems": [{"type": "null"}, {"type": "string"}], "items": {"type": "integer"}},
    "optional": closed({name: {"type": "integer"} for name in "abcd"}, []),
    "person": closed(
        {"age": {"type": "integer", "minimum": 0}, "name": {"type": "string", "minLength": 1}, "tags": {
            "type": "array", "items": {"enum": ["x", "y"]}, "maxItems": 2}}, ["name"]),
    "union": {"anyOf": [
        {"type": "null"}, closed({"x": {"type": "number"}}, ["x"]), {"type": "array", "items": {"const": 1}}]},
    "tree": TREE,
    "anything": {},
    "map": {"type": "object", "additionalProperties": {"type": "boolean"}},
}  # fmt: skip
GRAMMARS = {name: Grammar.from_json_schema(schema) for name, schema in SCHEMAS.items()}
named = pytest.mark.parametrize("name", SCHEMAS)


CLOSING = ([b'"', b"]", b"}", b'"}', b"]}"], [b",", b", ", b"0", b"null", b"a", b"c"])


def walk(constraint: Constraint, rng: random.Random, free_steps: int) -> str | None:
    """A text taken at random under the mask: anything for some steps, then what closes; None if it did not end."""
    tokens = []
    for step in range(free_steps + 400):
        allowed = np.flatnonzero(constraint.mask()).tolist()
        assert allowed, TOKENIZER.decode(tokens)
        choices = [allowed]
        if step >= free_steps:
            ends = [id for id in allowed if id in TOKENIZER.eos_ids]
            tiers = rng.sample(CLOSING, 2)
            choices = [ends, *([id for id in allowed if TOKENS.get(id) in tier] for tier in tiers), allowed]
        token = rng.choice(next(filter(None, choices)))
        constraint.advance(token)
        if constraint.ended:
            return TOKENIZER.decode(tokens)
        tokens.append(token)
    return None


def exactly(number: str) -> Decimal | float:
    """Decimals as they are written, so that 2.4999999999999999999 is below 2.5; only exponents as floats."""
    return float(number) if "e" in number.lower() else Decimal(number)


def documents(schema: dict, root: dict) -> st.SearchStrategy:
    """Valid documents: objects and arrays put together here, as the generator for the rest knows neither well."""
    match schema:
        case {"$ref": str(pointer)}:
            return st.deferred(lambda: documents(root["$defs"][pointer.removeprefix("#/$defs/")], root))
        case {"anyOf": branches}:
            return st.one_of(*(documents(branch, root) for branch in branches))
        case {"properties": properties}:
            members = {name: documents(value, root) for name, value in properties.items()}
            required = {name: members.pop(name) for name in schema["required"]}
            return st.fixed_dictionaries(required, optional=members)
        case {"type": "object", "additionalProperties": values}:
            return st.dictionaries(st.text(max_size=4), documents(values, root), max_size=4)
        case {"prefixItems": items}:
            rest = st.lists(documents(schema["items"], root), max_size=3)
            whole = st.tuples(*(documents(item, root) for item in items), rest).map(lambda t: [*t[:-1], *t[-1]])
            return st.builds(lambda array, length: array[:length], whole, st.integers(0, 5))
        case {"type": "array"}:
            least, most = schema.get("minItems", 0), schema.get("maxItems", 3)
            return st.lists(documents(schema["items"], root), min_size=least, max_size=most)
    return hypothesis_jsonschema.from_schema(schema) if schema else ANYTHING


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner)
)


@named
def test_every_walk_under_the_mask_is_a_valid_document(name):
    validator = jsonschema.Draft202012Validator(SCHEMAS[name])
    rng = random.Random(name)
    texts = [walk(Constraint(GRAMMARS[name], TOKENIZER), rng, rng.randrange(40)) for _ in range(25)]
    ended = [text for text in texts if text is not None]
    assert len(ended) > 20
    for text in ended:
        validator.validate(json.loads(text, parse_float=exactly))


@named
def test_every_valid_document_is_accepted_under_any_split_into_tokens(name):
    schema, grammar = SCHEMAS[name], GRAMMARS[name]
    validator = jsonschema.Draft202012Validator(schema)

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(documents(schema, schema), st.randoms(use_true_random=False), st.booleans())
    def accepted(document, rng, ascii_only):
        assert validator.is_valid(document)
        spelled_freely = ascii_only and name in ("string", "lengths", "pattern", "search", "pattern and lengths")
        text = json.dumps(document, sort_keys=True, ensure_ascii=spelled_freely)
        if name == "numbers" and re.search("[eE]", text):  # policy: numbers with bounds have no exponent
            return
        if name == "integers" and "." in text:  # policy: integers have no fraction
            return
        assert grammar.accepts(text), text
        for tokens in (TOKENIZER.encode(text), random_split(text.encode(), rng)):
            constraint = Constraint(grammar, TOKENIZER)
            for token in tokens:
                assert constraint.mask()[token], (text, tokens)
                constraint.advance(token)
            assert constraint.can_end and constraint.mask()[list(TOKENIZER.eos_ids)].all(), text

    accepted()


def random_split(text: bytes, rng: random.Random) -> list[int]:
    """The text in tokens, each chosen among all that begin what is left."""
    tokens, place = [], 0
    while place < len(text):
        fitting = [text[place:end] for end in range(place + 1, len(text) + 1) if text[place:end] in TOKENIZER.ranks]
        tokens.append(TOKENIZER.ranks[rng.choice(fitting)])
        place += len(TOKENS[tokens[-1]])
    return tokens


class PeerTokenizer:
    """Our vocabulary, as the other engine asks for it."""

    eos_token_id = TOKENIZER.eos_ids[0]
    bos_token_id = None
    tokens = [TOKENS.get(id, b"<|endoftext|>") for id in range(TOKENIZER.vocabulary_size)]
    special_token_ids = sorted(TOKENIZER.special.values())

    def __call__(self, text: str | bytes) -> list[int]:
        return TOKENIZER.encode(text if isinstance(text, str) else text.decode(errors="ignore"))


PEER = llguidance.LLTokenizer(llguidance.TokenizerWrapper(PeerTokenizer()))
SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
# It takes no DEL in strings, which RFC 8259 allows, and no escapes where pattern or length bind; we take both.
DELETE = np.array([b"\x7f" in token for token in PeerTokenizer.tokens])
BACKSLASH = np.array([b"\\" in token for token in PeerTokenizer.tokens])
EXPRESSIONS = ["-?(0|[1-9][0-9]*)", r"[a-z]+@[a-z]+\.(com|org)", "(foo|bar){2,5}", "[^x]{0,5}", "(a|b)*abb", ".*",
               "[0-9]{3}-[0-9]{4}", "[а-я]+ ?", "(ab|a)(bc|c)?", "([a-c]|é){1,4}x"]  # fmt: skip
COMMON = {  # where ours differs by policy: "-0" and 2.50 at the edge of a bound, constants with spaces in them
    name: schema for name, schema in SCHEMAS.items() if name not in ("integers", "numbers", "enum", "search", "person")
} | {
    "bounded": {"type": "integer", "minimum": 3, "maximum": 130},
    "from": {"type": "number", "exclusiveMinimum": 1.5},
    "words": {"enum": ["red", "green", 7, None]},
    "strings": closed({"a": {"type": "string", "maxLength": 3}, "b": {"enum": ["x", "y"]}}, ["b"]),
}


def compare(grammar: Grammar, theirs: str, left_out: np.ndarray) -> int:
    """Both masks step by step along random walks; returns how many were compared.

    Where bytes are forced the peer allows only the token that its tokenizer would choose, ours every split of them.
    """
    compared = 0
    for seed in range(4):
        rng, ours, peer = random.Random(seed), Constraint(grammar, TOKENIZER), llguidance.LLMatcher(PEER, theirs)
        assert not peer.is_error(), peer.get_error()
        for _ in range(30):
            bits = np.frombuffer(peer.compute_bitmask(), np.uint8)
            expected = np.unpackbits(bits, count=TOKENIZER.vocabulary_size, bitorder="little").astype(bool) & ~left_out
            got = ours.mask() & ~left_out
            if ours.forced_bytes():
                assert (got & expected).any() and not (expected & ~got).any()
            else:
                differ = np.flatnonzero(got != expected)
                assert not len(differ), [(TOKENS.get(id), bool(got[id])) for id in differ[:9]]
            compared += 1
            token = int(rng.choice(np.flatnonzero(got)))
            ours.advance(token)
            if ours.ended:
                break
            assert peer.consume_token(token)
    return compared


@pytest.mark.parametrize("pattern", EXPRESSIONS)
def test_masks_of_expressions_equal_those_of_another_engine(pattern):
    theirs = llguidance.LLMatcher.grammar_from_regex(pattern)
    assert compare(Grammar.from_regex(pattern), theirs, np.zeros_like(DELETE)) >= 8


@pytest.mark.parametrize("name", COMMON)
def test_masks_of_schemas_equal_those_of_another_engine(name):
    theirs = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(COMMON[name]), overrides=SPACING)
    binds = re.search("pattern|Length", json.dumps(COMMON[name]))
    left_out = DELETE | BACKSLASH if binds else DELETE
    assert compare(Grammar.from_json_schema(COMMON[name]), theirs, left_out) >= 4


def test_the_split_oracle_really_splits():
    tokens = random_split(b'{"name": "abc"}', random.Random(1))
    assert tokens != TOKENIZER.encode('{"name": "abc"}')
    assert vocabulary_trie(TOKENIZER).children[ROOT] == 256
