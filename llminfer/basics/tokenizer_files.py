"""Tokenizers out of files: the metadata of a GGUF file, or the tokenizer.json of a Hugging Face folder.

Byte-level BPE only (GPT-2, Llama 3, SmolLM2, Qwen); SentencePiece models are refused. Both formats spell a byte as a
character, GPT-2's way, because neither JSON nor a vocabulary file can hold bytes that are no text.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from llminfer.basics.model_fields import Fields
from llminfer.basics.pretokenizers import GGUF_PATTERNS, pattern_from_json
from llminfer.basics.safetensors_files import read_json
from llminfer.basics.tokenization import Tokenizer


def byte_alphabet() -> dict[int, str]:
    """A `str.translate` table from a token as it is spelled in files to the token as Latin-1, one character a byte.

    Printable Latin-1 stands for itself, the n-th of the other bytes is spelled chr(256 + n); no byte is spelled by a
    blank or a control character, so those go to U+FFFF, which Latin-1 cannot encode.
    """
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: "\uffff" for byte in others} | {256 + n: chr(byte) for n, byte in enumerate(others)}


ALPHABET = byte_alphabet()

GREEDY_FLAGS = ("lstrip", "rstrip", "single_word")  # of added tokens: what lies beside them decides the match
MOST_IDS = 2**31

# tokenizer.ggml.token_type
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 1, 2, 3, 4, 5


def tokenizer_from_gguf(metadata: Mapping[str, Any], name: str = "gguf") -> Tokenizer:
    """The tokenizer that the metadata of a GGUF file describes.

    Raises ValueError naming the key that is missing, malformed, or asks for something unsupported.
    """
    prefix = "tokenizer.ggml."
    fields = Fields({key.removeprefix(prefix): value for key, value in metadata.items()}, f"{name}: {prefix[:-1]}")
    fields.demand("model", None, "gpt2")
    cut = fields.demand("pre", "gpt-2", *GGUF_PATTERNS)
    tokens, merges, types = _list(fields, "tokens"), _list(fields, "merges"), _list(fields, "token_type")
    if len(types) != len(tokens):
        raise ValueError(f"{fields.where}: token_type has {len(types)} entries for {len(tokens)} tokens")
    ids_of_type = {kind: {} for kind in (NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED)}
    for i, (token, kind) in enumerate(zip(tokens, types, strict=True)):
        if not isinstance(token, str) or not isinstance(kind, int) or kind not in ids_of_type:
            raise ValueError(
                f"{fields.where}: token {i} is {token!r} of type {kind}; expected a text and a type in 1..5"
            )
        if token in ids_of_type[kind]:
            raise ValueError(f"{fields.where}: tokens {ids_of_type[kind][token]} and {i} are both {token!r}")
        ids_of_type[kind][token] = i
    bos = fields.token_ids("bos_token_id") if fields.flag("add_bos_token", cut == "llama-bpe") else ()
    return Tokenizer(
        name=name,
        ranks=_ranks(ids_of_type[NORMAL], merges, fields.where),
        pattern=GGUF_PATTERNS[cut],
        special=ids_of_type[UNKNOWN] | ids_of_type[CONTROL] | ids_of_type[UNUSED],
        added=ids_of_type[USER_DEFINED],
        normal_form="NFC" if cut == "qwen2" else None,
        bos_id=bos[0] if bos else None,
        eos_ids=fields.token_ids("eos_token_id"),
        chat_template=fields.text("tokenizer.chat_template", ""),
    )


def tokenizer_from_folder(folder: Path) -> Tokenizer:
    """The tokenizer of a Hugging Face folder: tokenizer.json, and what stands beside it about ends and chat.

    Raises FileNotFoundError without a tokenizer.json, and ValueError naming the field that is missing, malformed, or
    asks for something unsupported.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} has no tokenizer.json; a SentencePiece tokenizer.model is not supported")
    fields = Fields(read_json(path), str(path))
    special, added = _added_tokens(fields)
    model = fields.section("model")
    model.demand("type", None, "BPE")
    model.demand("byte_fallback", False, False)
    model.demand("continuing_subword_prefix", "", "")
    model.demand("end_of_word_suffix", "", "")
    not_merged = special | added
    vocabulary = {token: i for token, i in _object(model, "vocab").items() if token not in not_merged}
    return Tokenizer(
        name=folder.name,
        ranks=_ranks(vocabulary, _list(model, "merges"), model.where),
        pattern=pattern_from_json(_object(fields, "pre_tokenizer"), fields.where),
        special=special,
        added=added,
        normal_form=_normal_form(fields),
        bos_id=_bos_id(fields, special),
        eos_ids=_eos_ids(folder),
        chat_template=_chat_template(folder),
    )


def _ranks(vocabulary: Mapping[str, int], merges: Iterable[Any], where: str) -> dict[bytes, int]:
    """Tokens as the bytes they spell, once it is certain that their ids can serve as ranks."""
    ranks = {}
    for token, i in vocabulary.items():
        if isinstance(i, bool) or not isinstance(i, int) or not 0 <= i < MOST_IDS:
            raise ValueError(f"{where}: the id of token {token!r} is {i!r}; expected an integer in 0..{MOST_IDS - 1}")
        try:
            ranks[token.translate(ALPHABET).encode("latin-1")] = i
        except UnicodeEncodeError:
            raise ValueError(f"{where}: token {token!r} does not spell bytes; only byte-level BPE is read") from None
    if not ranks:
        raise ValueError(f"{where}: the vocabulary has no tokens that a text can become; expected at least one")
    if b"" in ranks:
        raise ValueError(f"{where}: token {ranks[b'']} is empty; expected at least one byte")
    _check_merges(vocabulary, merges, where)
    return ranks


def _check_merges(vocabulary: Mapping[str, int], merges: Iterable[Any], where: str) -> None:
    """Refuse merges that tiktoken would not apply as they are written.

    A merge list applies its earliest line first; tiktoken, which sees only ids, whichever merge makes the token of the
    lowest id. The two agree when ids follow the order of the lines and every token of two bytes or more has a line.
    """
    latest, made = -1, set()
    for line, merge in enumerate(merges):
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
            raise ValueError(f"{where}: merge {line} is {merge!r}; expected two tokens")
        token = vocabulary.get("".join(pair))
        if token is None or not set(pair) <= vocabulary.keys():
            raise ValueError(f"{where}: merge {line} is {merge!r}; its parts and what they make must be tokens")
        if token < latest:
            raise ValueError(
                f"{where}: merge {line} makes token {token} after token {latest}; tiktoken merges in the order of ids, "
                "so it would encode differently. Number the tokens in merge order"
            )
        latest = token
        made.add(token)
    orphan = next((token for token, i in vocabulary.items() if len(token) > 1 and i not in made), None)
    if orphan is not None:
        raise ValueError(f"{where}: no merge makes the token {orphan!r}")


def _added_tokens(fields: Fields) -> tuple[dict[str, int], dict[str, int]]:
    """Names of control tokens, and of the others that are matched before a text is cut."""
    special, added = {}, {}
    for token in _list(fields, "added_tokens") if "added_tokens" in fields else []:
        match token:
            case {"content": str(content)} if any("\ud800" <= letter <= "\udfff" for letter in content):
                raise fields.error("added_tokens", f"{content[:80]!r} holds a lone surrogate, which is no character")
            case {"content": content, **flags} if any(flags.get(greedy) for greedy in GREEDY_FLAGS):
                raise fields.error("added_tokens", f"{content!r} takes blanks or borders with it, which is unsupported")
            case {"id": int(i), "content": str(content), **flags} if content and 0 <= i < MOST_IDS:
                (special if flags.get("special", False) else added)[content] = i
            case _:
                raise fields.error("added_tokens", f"expected an id and a content, got {str(token)[:80]}")
    return special, added


def _normal_form(fields: Fields) -> str | None:
    match fields.values.get("normalizer"):
        case None:
            return None
        case {"type": "NFC"}:
            return "NFC"
    raise fields.error("normalizer", "supported: none, or NFC")


def _bos_id(fields: Fields, special: Mapping[str, int]) -> int | None:
    """The token that the post-processor puts in front of a text, where it does (Llama 3)."""
    processor = fields.values.get("post_processor")
    steps = processor.get("processors", [processor]) if isinstance(processor, Mapping) else []
    for step in steps if isinstance(steps, Sequence) else []:
        match step:
            case {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": str(token)}}, *_]}:
                return special.get(token)
    return None


def _eos_ids(folder: Path) -> tuple[int, ...]:
    """Where a model's texts end: generation_config.json knows best, config.json is older."""
    for name in ("generation_config.json", "config.json"):
        if (folder / name).is_file():
            ids = Fields(read_json(folder / name), str(folder / name)).token_ids("eos_token_id")
            if ids:
                return ids
    return ()


def _chat_template(folder: Path) -> str:
    path = folder / "chat_template.jinja"
    if path.is_file():
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as problem:
            raise ValueError(f"{path} is not UTF-8: {problem}") from None
    if (folder / "tokenizer_config.json").is_file():
        template = read_json(folder / "tokenizer_config.json").get("chat_template")
        return template if isinstance(template, str) else ""
    return ""


def _list(fields: Fields, name: str) -> list[Any]:
    value = fields.values.get(name)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list):
        raise fields.error(name, "expected a list")
    return value


def _object(fields: Fields, name: str) -> Mapping[str, Any]:
    value = fields.values.get(name)
    if not isinstance(value, Mapping):
        raise fields.error(name, "expected an object")
    return value
