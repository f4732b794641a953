"""Two file formats, one tokenizer; and whatever is wrong with a file is said, not computed with."""

import copy
import json
import random

import numpy as np
import pytest
import tokenizers
from tokenizers import models, pre_tokenizers, processors, trainers

from llminfer.basics.pretokenizers import GGUF_PATTERNS, GPT2, compile_pattern, pattern_from_json
from llminfer.basics.tokenization import Tokenizer
from llminfer.basics.tokenizer_files import tokenizer_from_folder, tokenizer_from_gguf

TEXT = "the theme of these three is there: 12 breathe, then bathe   in the ether\n\n"


@pytest.fixture(scope="module")
def oracle() -> tokenizers.Tokenizer:
    oracle = tokenizers.Tokenizer(models.BPE())
    oracle.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    oracle.train_from_iterator(
        [TEXT * 5],
        trainers.BpeTrainer(
            vocab_size=280,
            special_tokens=["<end>", "<begin>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    oracle.post_processor = processors.TemplateProcessing(single="<begin> $A", special_tokens=[("<begin>", 1)])
    oracle.add_tokens(["breathe", "  "])  # matched in every text, though they are no control tokens
    return oracle


@pytest.fixture
def described(oracle) -> dict:
    """A tokenizer.json, to be spoiled."""
    return json.loads(oracle.to_str())


@pytest.fixture
def metadata(described) -> dict:
    """The same tokenizer as GGUF metadata has it."""
    size = max(token["id"] for token in described["added_tokens"]) + 1
    tokens, types = [""] * size, np.ones(size, np.int32)
    for token, i in described["model"]["vocab"].items():
        tokens[i] = token
    for token in described["added_tokens"]:
        tokens[token["id"]] = token["content"]
        types[token["id"]] = 3 if token["special"] else 4
    return {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": [" ".join(merge) for merge in described["model"]["merges"]],
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 0,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.chat_template": "a template",
    }


@pytest.fixture
def load(tmp_path):
    """Reads a tokenizer.json and its neighbours as a folder."""

    def load(described: dict, **neighbours: dict) -> Tokenizer:
        for name, content in {"tokenizer": described, **neighbours}.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        return tokenizer_from_folder(tmp_path)

    return load


def test_both_formats_give_the_same_tokenizer(described, metadata, load):
    ours = load(described, config={"eos_token_id": 0}, tokenizer_config={"chat_template": "a template"})
    other = tokenizer_from_gguf(metadata)
    for field in ("ranks", "pattern", "special", "added", "bos_id", "eos_ids", "chat_template", "vocabulary_size"):
        assert getattr(ours, field) == getattr(other, field), field
    assert ours.special == {"<end>": 0, "<begin>": 1}
    assert ours.added == {"breathe": 280, "  ": 281}


def test_added_tokens_are_matched_in_every_text_as_in_tokenizers(oracle, described, load):
    ours = load(described)
    text = "breathe   in the    ether, outbreathed"
    assert ours.encode(text) == oracle.encode(text, add_special_tokens=False).ids
    assert {280, 281} <= set(ours.encode(text))


def test_what_stands_in_front_of_every_text_is_known_but_not_added(oracle, described, load):
    ours = load(described)
    assert [ours.bos_id, *ours.encode(TEXT)] == oracle.encode(TEXT).ids
    del described["post_processor"]
    assert load(described).bos_id is None


def test_a_gguf_file_says_whether_a_text_has_a_beginning(metadata):
    assert tokenizer_from_gguf(metadata).bos_id == 1
    assert tokenizer_from_gguf(metadata | {"tokenizer.ggml.add_bos_token": False}).bos_id is None
    del metadata["tokenizer.ggml.add_bos_token"]
    assert tokenizer_from_gguf(metadata).bos_id is None
    assert tokenizer_from_gguf(metadata | {"tokenizer.ggml.pre": "llama-bpe"}).bos_id == 1


def test_texts_for_qwen_are_composed_first(metadata, described, load):
    assert tokenizer_from_gguf(metadata).normal_form is None
    assert tokenizer_from_gguf(metadata | {"tokenizer.ggml.pre": "qwen2"}).normal_form == "NFC"
    assert load(described | {"normalizer": {"type": "NFC"}}).encode("e\u0301") == load(described).encode("\u00e9")


def test_generation_config_knows_best_where_texts_end(described, load):
    assert load(described).eos_ids == ()
    assert load(described, config={"eos_token_id": 0}).eos_ids == (0,)
    assert load(described, config={"eos_token_id": 0}, generation_config={"eos_token_id": [7, 0]}).eos_ids == (7, 0)


def test_a_chat_template_may_be_a_file_of_its_own(described, load, tmp_path):
    (tmp_path / "chat_template.jinja").write_text("its own", encoding="utf-8")
    assert load(described, tokenizer_config={"chat_template": "another"}).chat_template == "its own"


def test_old_files_write_merges_as_one_string(described, load):
    before = load(described).encode(TEXT)
    described["model"]["merges"] = [" ".join(merge) for merge in described["model"]["merges"]]
    assert load(described).encode(TEXT) == before


def test_ids_need_not_be_dense_to_serve_as_ranks(described, load):
    before = load(described).encode("the theme")
    for token in described["added_tokens"]:
        described["model"]["vocab"].pop(token["content"], None)
    described["model"]["vocab"] = {token: 3 * i + 1000 for token, i in described["model"]["vocab"].items()}
    assert load(described).encode("the theme") == [3 * i + 1000 for i in before]


def swapped(vocabulary: dict, one: int, other: int) -> dict:
    names = {i: token for token, i in vocabulary.items()}
    return vocabulary | {names[one]: other, names[other]: one}


def spoil(described: dict, *path, **change) -> dict:
    place = described
    for step in path:
        place = place[step]
    place.update(change)
    return described


@pytest.mark.parametrize(
    ("path", "change", "complaint"),
    [
        ([], {"model": None}, "type is missing"),
        (["model"], {"type": "Unigram"}, "type is 'Unigram'; supported: 'BPE'"),
        (["model"], {"byte_fallback": True}, "byte_fallback is True"),
        (["model"], {"end_of_word_suffix": "</w>"}, "end_of_word_suffix is '</w>'"),
        (["model"], {"vocab": []}, "vocab is .*expected an object"),
        (["model"], {"merges": {}}, "merges is .*expected a list"),
        (["model"], {"merges": [["t"]]}, r"merge 0 is \['t'\]; expected two tokens"),
        (["model"], {"merges": [["t", 1]]}, "merge 0 is"),
        (["model"], {"merges": [["t", "☃"]]}, "merge 0 is .* must be tokens"),
        (["model"], {"merges": []}, "no merge makes the token"),
        (["model", "vocab"], {"the end": 5}, "token 'the end' does not spell bytes"),
        (["model", "vocab"], {"☃": 5}, "token '☃' does not spell bytes"),
        (["model", "vocab"], {"": 999}, "token 999 is empty"),
        (["model", "vocab"], {"t": -1}, "id of token 't' is -1"),
        (["model", "vocab"], {"t": "1"}, "id of token 't' is '1'"),
        (["model", "vocab"], {"t": 2}, "two tokens have the same id"),
        ([], {"added_tokens": [{"id": -1, "content": "x"}]}, "added_tokens is .*expected an id and a content"),
        ([], {"added_tokens": [{"id": 2**31, "content": "x"}]}, "expected an id and a content"),
        ([], {"added_tokens": ["x"]}, "expected an id and a content"),
        ([], {"normalizer": {"type": "Lowercase"}}, "normalizer is .*supported: none, or NFC"),
        ([], {"pre_tokenizer": None}, "pre_tokenizer is None"),
        ([], {"pre_tokenizer": {"type": "Whitespace"}}, "pre_tokenizer is .*supported are ByteLevel"),
    ],
)
def test_a_spoiled_tokenizer_json_is_refused_by_name(described, load, path, change, complaint):
    with pytest.raises(ValueError, match=complaint):
        load(spoil(described, *path, **change))


def test_ids_out_of_merge_order_are_refused(described, load):
    described["model"]["vocab"] = swapped(described["model"]["vocab"], 270, 271)
    with pytest.raises(ValueError, match="token 270 after token 271; tiktoken merges in the order of ids"):
        load(described)


def test_a_folder_without_a_tokenizer_says_what_it_looked_for(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no tokenizer\.json"):
        tokenizer_from_folder(tmp_path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"model": "llama"}, "model is 'llama'; supported: 'gpt2'"),
        ({"pre": "default"}, "pre is 'default'; supported: 'gpt-2'"),
        ({"tokens": None}, "tokens is None; expected a list"),
        ({"tokens": ["a"]}, "token_type has 282 entries for 1 tokens"),
        ({"token_type": [6] * 282}, "token 0 is '<end>' of type 6"),
        ({"token_type": [[1]] * 282}, "of type"),
        ({"tokens": ["a"] * 282}, "tokens 0 and 1 are both 'a'"),
        ({"tokens": [1] * 282}, "token 0 is 1 of type"),
        ({"merges": ["t h e"]}, "merge 0 is 't h e'; expected two tokens"),
        ({"eos_token_id": -1}, "eos_token_id is -1"),
        ({"add_bos_token": 1}, "add_bos_token is 1"),
    ],
)
def test_spoiled_metadata_is_refused_by_name(metadata, change, complaint):
    with pytest.raises(ValueError, match=complaint):
        tokenizer_from_gguf(metadata | {f"tokenizer.ggml.{key}": value for key, value in change.items()})


JUNK = [None, True, -1, 2**70, 1.5, float("nan"), "", "x", "\ud800", [], [[]], {}, {"type": "BPE"}, [None] * 3]


def with_junk(value: dict | list, rng: random.Random):
    """A copy of nested JSON in which one value, anywhere below, is another."""
    copied = copy.copy(value)
    key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
    deeper = isinstance(value[key], dict | list) and value[key] and rng.random() < 0.9
    copied[key] = with_junk(value[key], rng) if deeper else rng.choice(JUNK)
    return copied


def test_no_junk_in_a_file_gets_past_as_another_error(described, metadata, load):
    rng = random.Random(0)
    metadata = {key: list(value) if isinstance(value, np.ndarray) else value for key, value in metadata.items()}
    refused = 0
    for _ in range(80):
        for read, good in ((load, described), (tokenizer_from_gguf, metadata)):
            try:
                read(with_junk(good, rng)).encode(TEXT)
            except ValueError:
                refused += 1
    assert refused > 60


def test_an_added_token_that_is_no_text_is_refused_by_name(described, load):
    described["added_tokens"][0]["content"] = "\ud800"
    with pytest.raises(ValueError, match=r"tokenizer.json: added_tokens is .*lone surrogate"):
        load(described)


@pytest.mark.parametrize("flag", ["lstrip", "rstrip", "single_word"])
def test_an_added_token_that_looks_beside_itself_is_refused(described, load, flag):
    described["added_tokens"][0][flag] = True
    with pytest.raises(ValueError, match="takes blanks or borders with it"):
        load(described)


def test_a_chat_template_that_is_not_utf_8_is_refused_by_name(described, load, tmp_path):
    (tmp_path / "chat_template.jinja").write_bytes("é".encode("latin-1"))
    with pytest.raises(ValueError, match="chat_template.jinja is not UTF-8"):
        load(described)


def test_a_vocabulary_without_tokens_is_refused(described, load):
    described["model"] |= {"vocab": {}, "merges": []}
    with pytest.raises(ValueError, match="tokenizer.json: model: the vocabulary has no tokens"):
        load(described)


class TestPatterns:
    def test_the_forms_of_a_pre_tokenizer(self):
        level = {"type": "ByteLevel", "add_prefix_space": False}
        assert pattern_from_json(level) == GPT2
        assert pattern_from_json({"type": "Sequence", "pretokenizers": [level | {"use_regex": True}]}) == GPT2
        split = {"type": "Split", "pattern": {"Regex": r"\S|\s"}, "behavior": "Isolated", "invert": False}
        both = {"type": "Sequence", "pretokenizers": [split, level | {"use_regex": False}]}
        assert pattern_from_json(both) == r"\S|\s"

    @pytest.mark.parametrize(
        "steps",
        [
            [{"type": "ByteLevel", "add_prefix_space": True}],
            [{"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}],
            [{"type": "Digits", "individual_digits": False}, {"type": "ByteLevel", "add_prefix_space": False}],
            [
                {"type": "Split", "pattern": {"String": " "}, "behavior": "Isolated"},
                {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
            ],
            [
                {"type": "Split", "pattern": {"Regex": r"\S|\s"}, "behavior": "MergedWithNext"},
                {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
            ],
            [],
            None,
        ],
    )
    def test_other_forms_are_refused(self, steps):
        with pytest.raises(ValueError, match="pre_tokenizer is"):
            pattern_from_json({"type": "Sequence", "pretokenizers": steps})

    def test_a_pattern_that_loses_characters_is_refused(self):
        with pytest.raises(ValueError, match=r"leaves '\\x1c' out|leaves '.*' out"):
            compile_pattern(r"\p{L}+|\s+")

    def test_a_malformed_pattern_is_refused(self):
        with pytest.raises(ValueError, match="no regular expression"):
            compile_pattern("(")

    @pytest.mark.parametrize(
        "pattern",
        [
            r"(?:.|.)+\x00\x00|[\s\S]",
            r"(?:[\s\S]?){200}(?:[\s\S]{0,200}){3}Q|[\s\S]",
            r"((((a{100}){100}){100}){100})|[\s\S]",
            "(?x) # [\n (?:.|.)+\x00 | #]\n [\\s\\S]",
            r"[\s\S]*[\s\S]*[\s\S]*[\s\S]*[\s\S]*\x00\x00|[\s\S]",
            r"a{999}|[\s\S]",
            "(" * 60 + "a" + ")" * 60 + r"|[\s\S]",
            "a" * 3000 + r"|[\s\S]",
        ],
    )
    def test_a_pattern_that_could_take_forever_is_refused(self, pattern):
        with pytest.raises(ValueError, match="of the pre-tokenizer (has|is too large|needs more than)"):
            compile_pattern(pattern)

    @pytest.mark.parametrize("pattern", [r"x*|[\s\S]", r"[\s\S]|", r"(?=a)|[\s\S]"])
    def test_a_pattern_that_matches_nothing_is_refused(self, pattern):
        with pytest.raises(ValueError, match="matches the empty text"):
            compile_pattern(pattern)

    @pytest.mark.parametrize(
        "pattern",
        [
            *GGUF_PATTERNS.values(),
            # Known tokenizers of others: possessive repeats, and endings as an optional group.
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{M}]*[\p{Ll}\p{M}]+(?i:'s|'t|'re)?|\p{N}{1,3}|\s+(?!\S)|[\s\S]",
        ],
    )
    def test_the_patterns_of_the_families_are_taken(self, pattern):
        assert compile_pattern(pattern).pattern == pattern
