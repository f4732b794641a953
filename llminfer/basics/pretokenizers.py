r"""How a text is cut into pieces before byte pairs are merged: one regular expression for each family of tokenizers.

Merges never cross a cut, so two tokenizers with the same vocabulary and another cut give other tokens. All of these put
the space in front of a word into the word's piece, and `\s+(?!\S)` leaves the last blank of a run to the word after it.
"""

import re
from collections.abc import Mapping
from typing import Any

import regex

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

# Digits are cut out one by one first, and GPT-2's pattern sees only what lies between them: no piece holds a blank and
# a digit, and a run of blanks before a digit ends there as it would at the end of the text.
SMOLLM = r"\p{N}|'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+"

# Numbers in groups of three, line ends kept with the blanks or the punctuation before them.
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

GGUF_PATTERNS = {"gpt-2": GPT2, "smollm": SMOLLM, "llama-bpe": LLAMA3, "qwen2": QWEN2}

LONGEST_PATTERN, MOST_GROUPS, MOST_REPEATS = 2000, 50, 100  # the families stay below 600, 10 and 4
PROBE_SECONDS = 1

_PROBE = "".join(map(chr, range(0x250))) + "\u0301\u0661\u2003\u2028\u200d\u3042\u4e2d\ue000\U0001f600\U000e0100"


def pattern_from_json(pre_tokenizer: Mapping[str, Any], where: str = "tokenizer.json") -> str:
    """The one pattern that cuts as the "pre_tokenizer" of a tokenizer.json does.

    Raises ValueError when the steps are none of the byte-level forms known here.
    """
    steps = pre_tokenizer.get("pretokenizers") if pre_tokenizer.get("type") == "Sequence" else [pre_tokenizer]
    match steps:
        case [{"type": "ByteLevel", "add_prefix_space": False, **rest}] if rest.get("use_regex", True):
            return GPT2
        case [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, **rest},
        ] if rest.get("use_regex", True):
            return SMOLLM
        case [
            {"type": "Split", "pattern": {"Regex": str(pattern)}, "behavior": "Isolated"},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
        ]:
            return pattern
    shown = repr(steps)
    raise ValueError(
        f"{where}: pre_tokenizer is {shown if len(shown) <= 200 else shown[:197] + '...'}; supported are ByteLevel, "
        "Digits (individual) + ByteLevel, and one Split by a Regex (Isolated) + ByteLevel, all without a prefix space"
    )


def compile_pattern(pattern: str) -> regex.Pattern:
    """The pattern, compiled.

    Raises ValueError when it is malformed or could take forever, and when it leaves characters out, which would be
    lost, or matches the empty text, on which tiktoken panics.
    """
    shown = f"the pattern {pattern if len(pattern) <= 200 else pattern[:197] + '...'!r} of the pre-tokenizer"
    _refuse_costly(pattern, shown)
    try:
        compiled = regex.compile(pattern)
        pieces = [found[0] for found in compiled.finditer(_PROBE, timeout=PROBE_SECONDS)]
        lost = compiled.sub("", _PROBE, timeout=PROBE_SECONDS)
    except (regex.error, RecursionError) as problem:
        raise ValueError(f"{shown} is no regular expression: {problem}") from None
    except TimeoutError:
        raise ValueError(f"{shown} needs more than {PROBE_SECONDS} s for {len(_PROBE)} characters") from None
    if not all(pieces) or compiled.match(""):
        raise ValueError(f"{shown} matches the empty text; every piece must have a character")
    if lost:
        raise ValueError(f"{shown} leaves {lost[0]!r} out; it must match everything")
    return compiled


def _refuse_costly(pattern: str, shown: str) -> None:
    """Raise ValueError for forms that no family uses and that backtrack without end or blow up when compiled.

    They are: groups that repeat (an optional one is fine), groups that are neither plain nor a look around, and more
    than MOST_REPEATS counted repeats in all.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"{shown} has {len(pattern)} characters; expected at most {LONGEST_PATTERN}")
    bare = re.sub(r"\\[pP]\{[^}]*\}|\\.", "x", pattern, flags=re.DOTALL)  # escapes, then sets: one letter each
    bare = re.sub(r"\[\^?\]?[^\]]*\]", "x", bare)
    if found := re.search(r"\)(?:[*+{]|\?[*{])|\(\*|\(\?(?!i?[:)]|<?[=!])|\{(?!\d+(?:,\d*)?\})", bare):
        raise ValueError(f"{shown} has {found[0]!r}; groups must not repeat, and be (), (?:), (?i:) or a look around")
    counts = [int(count) for braces in re.findall(r"\{[^}]*\}", bare) for count in re.findall(r"\d+", braces)]
    if sum(counts) > MOST_REPEATS or bare.count("(") > MOST_GROUPS:
        raise ValueError(f"{shown} is too large: expected {MOST_REPEATS} repeats and {MOST_GROUPS} groups at most")
