"""What tests of all chapters need: the text as a reader sees it, and the numbers in it that nobody recomputed.

A file that tests some parts of a chapter names them: CHAPTER, its path; PARTS, as in `parts`; CLAIMS, sentences with
places for numbers, each with the values that the library gives for them. It gets `text` and one `claim` at a time.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


# The tables below pictures have a test of their own.
DATA = re.compile(r"<details>\n<summary>Data.*?</details>", re.DOTALL)


def parts(path: Path) -> dict[str, str]:
    """A chapter cut at its headings: "3.1" (what comes before the first section), "3.1.1" ..., "Pitfalls" ..."""
    cut = re.split(r"^(?=## )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {part.lstrip("# ").split()[0]: part for part in cut}


def prose(path: Path, *names: str) -> str:
    """Sentences and tables of parts of a chapter on one line, without code, links, tags, numbers of headings, lists."""
    text = "\n".join(parts(path)[name] for name in names)
    text = re.sub(r"^```.*?^```", "", DATA.sub("", text), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(#+ [\d.]*|\d+\. |\*\*\d+\.\*\* )", "", text, flags=re.MULTILINE)
    text = re.sub(r"(!?\[[^\]]*\])\([^)]*\)", r"\1", text)
    return " ".join(re.sub(r"</?\w+>", "", text).split())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "claim" in metafunc.fixturenames:
        claims = metafunc.module.CLAIMS
        metafunc.parametrize("claim", claims, ids=[template[:50] for template, *_ in claims])


@pytest.fixture(scope="module")
def text(request: pytest.FixtureRequest) -> str:
    return prose(request.module.CHAPTER, *request.module.PARTS)


@pytest.fixture(scope="session")
def read_parts() -> Callable[[Path], dict[str, str]]:
    return parts


@pytest.fixture(scope="session")
def unproved_numbers() -> Callable[[str, list[str], set[str]], list[str]]:
    """(text, sentences whose numbers are recomputed, numbers that are given) -> the other numbers, where they stand.

    A number is anything of two digits or more, or with a point or a comma in it; those in names (Llama-3-8B, bfloat16,
    10⁹) are none.
    """

    def find(text: str, proved: list[str], given: set[str]) -> list[str]:
        for sentence in sorted(proved, key=len, reverse=True):
            text = text.replace(sentence, " … ")
        text = re.sub(r"\b(chapters? )?3\.\d(\.\d)?\b", "", text)  # references to chapters and sections
        numbers = re.finditer(r"(?<!\w)\d[\d,]*\.?\d*(?!\w)", text)
        found = [(number.group().strip(",."), number.start()) for number in numbers]
        return [
            f"{number} in: {text[max(at - 40, 0) : at + 40]}"
            for number, at in found
            if number not in given and (len(number) > 1)
        ]

    return find
