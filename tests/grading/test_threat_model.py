"""The page that says what is held and what is not, against what the levels do and say."""

import sys
from pathlib import Path

import pytest

from llminfer.grading import ladder, launches
from llminfer.grading.isolation import Isolation, tried

PAGE = (Path(__file__).parents[2] / "docs" / "threat-model.md").read_text(encoding="utf-8")
COLUMNS = ("files_hidden", "network_closed", "processes_contained", "not_root")


def promised() -> dict[str, dict[str, bool]]:
    """The table of levels."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("|")]
    return {row[0]: dict(zip(COLUMNS, [word == "yes" for word in row[1:5]], strict=True)) for row in rows[2:]}


def test_every_level_has_a_row_and_a_paragraph_of_what_it_does_not_stop():
    assert tuple(promised()) == ladder.LEVELS
    for level in ladder.LEVELS:
        assert f"\n**{level}.**" in PAGE


@pytest.mark.slow
@pytest.mark.parametrize("level", ladder.LEVELS)
def test_a_level_does_what_the_page_says_and_says_what_it_does_not(level):
    found = tried(level)
    if found is None:
        pytest.skip(f"{level} does not work on this machine")
    said = promised()[level]
    if level == "rlimits":  # what it has without doing anything for it depends on who runs it, and where
        said |= {"not_root": found.not_root, "processes_contained": sys.platform == "linux"}
    assert found == Isolation(level, **said)
    assert ("no security boundary" in found.sentence) == (not found.boundary)


def test_the_page_quotes_the_sentences_of_reports_as_they_are():
    assert Isolation("bwrap", True, True, True, True).sentence in PAGE
    assert Isolation("rlimits", False, False, True, False).sentence in PAGE


def test_what_teachers_are_refused_is_what_the_page_says():
    for level, said in promised().items():
        assert Isolation(level, **said).boundary == (level in ("bwrap", "unshare", "landlock"))


def test_the_numbers_of_the_page_are_those_of_the_program():
    assert f"{launches.FILE_LIMIT_BYTES >> 20} MiB for a file" in PAGE
    assert f"{launches.OPEN_FILES} open files" in PAGE
    assert f"{ladder.PROCESSES} processes and threads" in PAGE
