"""Text to token ids and back: byte-level byte-pair encoding, run by tiktoken on the vocabulary in hand.

A text is cut into pieces (`pretokenizers`), each piece starts as its UTF-8 bytes, and the two neighbours whose union is
the token of the lowest rank are merged until none is left. Ids serve as ranks here: `tokenizer_files` refuses a
vocabulary where they do not. Nothing is fetched, and no text becomes a control token unless that is asked for.
"""

import codecs
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import regex
import tiktoken

from llminfer.basics.chat_templates import SMOLLM2_SYSTEM, smollm2_turns
from llminfer.basics.pretokenizers import compile_pattern

# tiktoken's regular expressions keep a stack entry per blank and give up somewhere between 500,000 and 1,000,000.
LONG_BLANK = re.compile(r"\s{100000}")


@dataclass(frozen=True, eq=False, repr=False)
class Tokenizer:
    """A vocabulary and the rules around it.

    ranks:   bytes of every mergeable token -> its id, which is also its rank.
    pattern: cuts a text into pieces that merges do not cross.
    special: control tokens by name; text becomes one only in `encode(text, special=True)`.
    added:   tokens by name that are not control tokens and are matched in every text before it is cut.
    bos_id:  what the model expects in front of every text; None when it expects nothing. `encode` does not add it.
    eos_ids: any of these ends a generated text.
    encoding: the same vocabulary as tiktoken sees it.

    Raises ValueError when the pattern is malformed, or two tokens have the same id.
    Source: Sennrich, Haddow and Birch 2016, section 3.2; on bytes: Radford et al. 2019 (GPT-2), section 2.2.
    Book section 3.1.1.
    """

    name: str
    ranks: Mapping[bytes, int]
    pattern: str
    special: Mapping[str, int]
    added: Mapping[str, int]
    normal_form: Literal["NFC"] | None = None
    bos_id: int | None = None
    eos_ids: tuple[int, ...] = ()
    chat_template: str = ""
    encoding: tiktoken.Encoding = field(init=False)

    def __post_init__(self) -> None:
        compile_pattern(self.pattern)
        named = {**self.added, **self.special}
        if len({*self.ranks.values(), *named.values()}) < len(self.ranks) + len(named):
            raise ValueError(f"{self.name!r}: two tokens have the same id")
        encoding = tiktoken.Encoding(
            self.name, pat_str=self.pattern, mergeable_ranks=dict(self.ranks), special_tokens=named
        )
        object.__setattr__(self, "encoding", encoding)

    def __repr__(self) -> str:
        return f"<Tokenizer {self.name!r}, {self.vocabulary_size} ids>"

    def encode(self, text: str, special: bool = False) -> list[int]:
        """Token ids of a text. With `special`, names of control tokens become those tokens: only for text of your own.

        Bytes that the vocabulary lacks (SmolLM2 has none for 21 of them, mostly control characters) are left out.
        Raises ValueError for lone surrogates, which are no characters.
        """
        _refuse_surrogates(text)
        ids: list[int] = []
        for index, part in enumerate((self._all_names if special else self._added_names).split(text)):
            if index % 2:  # between two parts of ordinary text stands what separated them: a name
                ids.append(self.special[part] if part in self.special else self.added[part])
            else:
                ids += self._encode_ordinary(part)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of some tokens, special ones by name; bytes that are no UTF-8 come out as U+FFFD.

        Raises ValueError for ids that are not in the vocabulary.
        """
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes of some tokens, which may begin or end in the middle of a character."""
        ids = list(ids)
        try:
            return self.encoding.decode_bytes(ids)
        except (KeyError, OverflowError):
            known = set(self.ranks.values()) | set(self.special.values()) | set(self.added.values())
            stranger = next(i for i in ids if i not in known)
            raise ValueError(
                f"token id {stranger} is not in the vocabulary of {self.name!r} (0..{self.vocabulary_size - 1})"
            ) from None

    def stream(self) -> "StreamDecoder":
        """A decoder for tokens that arrive one by one."""
        return StreamDecoder(self)

    def chat(self, messages: Sequence[Mapping[str, str]], add_generation_prompt: bool = True) -> list[int]:
        """Token ids of a conversation, [{"role": "user", "content": "..."}, ...], in SmolLM2's (ChatML) template.

        A turn is <|im_start|>role, a line end, the content, <|im_end|> and a line end; the generation prompt opens the
        assistant's. Raises ValueError when another template came with the model, and for messages that do not fit it.
        """
        if SMOLLM2_SYSTEM not in self.chat_template or not {"<|im_start|>", "<|im_end|>"} <= self.special.keys():
            raise ValueError(
                f"{self.name!r} does not come with SmolLM2's chat template, the one known here; give a plain prompt, "
                "or write the model's own form and encode it with special=True"
            )
        start, end = self.special["<|im_start|>"], self.special["<|im_end|>"]
        ids: list[int] = []
        for role, content in smollm2_turns(messages):
            ids += [start, *self.encode(f"{role}\n{content}"), end, *self.encode("\n")]
        return ids + [start, *self.encode("assistant\n")] if add_generation_prompt else ids

    @property
    def vocabulary_size(self) -> int:
        """V: one more than the highest id. A model may have more rows than that, as padding."""
        return self.encoding.n_vocab

    @cached_property
    def _added_names(self) -> re.Pattern:
        return _any_of(self.added)

    @cached_property
    def _all_names(self) -> re.Pattern:
        return _any_of([*self.added, *self.special])

    @cached_property
    def _absent(self) -> bytes:
        """The bytes that no token stands for."""
        return bytes(byte for byte in range(256) if bytes([byte]) not in self.ranks)

    def _encode_ordinary(self, text: str) -> list[int]:
        if self.normal_form:
            text = unicodedata.normalize(self.normal_form, text)
        content = text.encode()
        if content != content.translate(None, self._absent) or LONG_BLANK.search(text):
            return self._encode_by_piece(text)
        return self.encoding.encode_ordinary(text)

    def _encode_by_piece(self, text: str) -> list[int]:
        """What tiktoken does in one call, piece by piece, for texts on which that call would panic."""
        ids: list[int] = []
        for piece in regex.finditer(self.pattern, text):
            known = piece[0].encode().translate(None, self._absent)
            if known:
                ids += self.encoding._encode_single_piece(known)
        return ids


class StreamDecoder:
    """Turns tokens into text as they arrive, and never shows half a character.

    All that `push` and `flush` return, joined, is `decode` of all tokens. Book section 3.1.1.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")  # keeps bytes of an unfinished character

    def push(self, token: int) -> str:
        """The characters that this token completes; may be empty."""
        return self._utf8.decode(self._tokenizer.decode_bytes([token]))

    def flush(self) -> str:
        """What is left when no token follows: U+FFFD for a character that was never finished, or nothing."""
        return self._utf8.decode(b"", final=True)


def _any_of(names: Iterable[str]) -> re.Pattern:
    """Splits a text at the names, the longest first where one begins another, and keeps them."""
    ordered = sorted(names, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, ordered))})" if ordered else "(?!)")


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise ValueError(
            f"the text has a lone surrogate, {text[problem.start]!r}, at index {problem.start}: half of a UTF-16 pair "
            "and no character; read its source with errors='replace'"
        ) from None
