"""Byte-level BPE for `tiny`: trained with the `tokenizers` package, readable by tiktoken.

Ids 0-255 are the single bytes, the merged tokens follow in merge order, and the special token comes last.
So an id is also a merge rank, which is all tiktoken needs to know.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import tiktoken
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

END_OF_TEXT = "<|endoftext|>"

# The split of OpenAI's cl100k_base, a good one for source code: a run of spaces gives its last space to the word
# after it, line ends stay with the blanks before them, numbers break after three digits.
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """A tokenizer of exactly `vocab_size` ids, `<|endoftext|>` being the last of them."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([END_OF_TEXT])
    tokenizer.post_processor = _starts_every_text(tokenizer.token_to_id(END_OF_TEXT))
    if tokenizer.get_vocab_size() != vocab_size:
        raise ValueError(
            f"the text gives only {tokenizer.get_vocab_size()} tokens, asked for {vocab_size}; use a smaller vocabulary"
        )
    return tokenizer


def _starts_every_text(token: int) -> processors.TemplateProcessing:
    """What `tiny` expects in front of a text, as in training every document followed the end of another."""
    return processors.TemplateProcessing(single=f"{END_OF_TEXT} $A", special_tokens=[(END_OF_TEXT, token)])


def as_tiktoken(tokenizer_json: Path) -> tiktoken.Encoding:
    """The same tokenizer as a `tiktoken.Encoding`, built from nothing but the file.

    Raises ValueError if ids are not merge ranks, because tiktoken would then encode differently without a word.
    """
    content = json.loads(tokenizer_json.read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = content["model"]["vocab"]
    for rank, pair in enumerate(content["model"]["merges"], start=256):
        merged = "".join(pair if isinstance(pair, list) else pair.split(" "))
        if vocabulary[merged] != rank:
            raise ValueError(f"merge {rank - 256} makes token {vocabulary[merged]}, expected {rank}: ids are not ranks")
    byte_of = _bytes_of_stand_ins()
    return tiktoken.Encoding(
        name="tiny",
        pat_str=content["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"],
        mergeable_ranks={bytes(byte_of[c] for c in token): rank for token, rank in vocabulary.items()},
        special_tokens={token["content"]: token["id"] for token in content["added_tokens"]},
    )


def _bytes_of_stand_ins() -> dict[str, int]:
    """GPT-2's table: tokenizer.json writes a printable byte as itself and the n-th of the others as chr(256 + n)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}
