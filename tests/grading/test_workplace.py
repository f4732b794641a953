"""Which exercises are meant, where a student's files are looked for, and starters that overwrite nothing."""

import json
from pathlib import Path

import pytest

from llminfer.grading import attempts, hints, workplace
from llminfer.grading.results import ExerciseResult, Status
from llminfer.grading.spec import all_exercises

EVERY = all_exercises()
TOP_P = next(exercise for exercise in EVERY if exercise.name == "top_p")


@pytest.mark.parametrize("asked", ["3.1/top_p", "top_p"])
def test_an_exercise_is_meant_by_its_id_or_its_name(asked, tmp_path):
    assert workplace.meant(asked, tmp_path) == (TOP_P,)


def test_a_chapter_means_its_exercises_in_their_order(tmp_path):
    assert workplace.meant("3.1", tmp_path) == tuple(each for each in EVERY if each.chapter == "3.1")


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ("3.1/topp", "did you mean 3.1/top_p?"),
        ("9.9", "there are chapters 3.1"),
        (None, "there are no exercises here; `llminfer exercises copy 3.1`"),
        ("hw1", "course.toml"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(asked, complaint, tmp_path):
    with pytest.raises(ValueError, match=complaint):
        workplace.meant(asked, tmp_path)


def test_a_homework_is_looked_up_in_the_course_here(course, tmp_path):
    assert [exercise.id for exercise in workplace.meant("hw1", tmp_path)] == ["3.1/stable_softmax", "3.1/rope_both"]
    with pytest.raises(ValueError, match="there is no homework 'hw9'"):
        workplace.meant("hw9", tmp_path)


@pytest.mark.parametrize("place", ["", "3.1-basics", "exercises/3.1-basics", "exercises"])
def test_a_file_is_found_here_and_in_the_folders_of_exercises(place, tmp_path):
    assert workplace.source_file(TOP_P, tmp_path) is None
    file = tmp_path / place / "top_p.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    assert workplace.source_file(TOP_P, tmp_path) == file
    assert workplace.meant(None, tmp_path) == (TOP_P,)


def test_without_a_file_a_notebook_here_will_do(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    cells = [{"cell_type": "code", "source": ["def top_p(probabilities):\n", "    return 1"]}]
    (tmp_path / "work.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "another.ipynb").write_text("not a notebook")
    found = workplace.submission(TOP_P, tmp_path, scratch)
    assert found.read_text() == "def top_p(probabilities):\n    return 1\n"
    (tmp_path / "top_p.py").write_text("")
    assert workplace.submission(TOP_P, tmp_path, scratch) == tmp_path / "top_p.py"


def test_starters_come_with_their_pictures_and_overwrite_nothing(tmp_path):
    chapter = workplace.meant("3.1", tmp_path)
    done = workplace.copy_starters(chapter, tmp_path)
    assert all(copied.written for copied in done)
    assert {exercise.file_name for exercise in chapter} <= {path.name for path in (tmp_path / "3.1-basics").iterdir()}
    assert (tmp_path / "3.1-basics" / "diagnose_roofline.png").is_file()
    assert not list(tmp_path.rglob("*.toml"))
    (tmp_path / "3.1-basics" / "top_p.py").write_text("my work")
    (tmp_path / "3.1-basics" / "token_mask.py").unlink()
    again = workplace.copy_starters(chapter, tmp_path)
    assert [copied.path.name for copied in again if copied.written] == ["token_mask.py"]
    assert (tmp_path / "3.1-basics" / "top_p.py").read_text() == "my work"


def test_onto_themselves_starters_are_not_copied():
    assert workplace.copy_starters((TOP_P,), TOP_P.folder.parent) == []


def test_hints_come_one_more_each_time(tmp_path):
    shown = [hints.next_hint(TOP_P, tmp_path).count("hint ") for _ in range(len(TOP_P.hints) + 2)]
    assert shown == [*range(1, len(TOP_P.hints) + 1), len(TOP_P.hints), len(TOP_P.hints)]
    (tmp_path / hints.FILE_NAME).write_text("[broken")
    assert hints.next_hint(TOP_P, tmp_path).startswith("hint 1 of")


def test_attempts_are_logged_once_somebody_wants_it(tmp_path):
    results = [ExerciseResult("3.1/top_p", "Top-p", 1, Status.WRONG, 2.0, 8.0)]
    log = tmp_path / attempts.FILE_NAME
    attempts.keep(results, tmp_path)
    assert not log.exists()
    attempts.keep(results, tmp_path, begin=True)
    attempts.keep(results, tmp_path)
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(each["exercise"], each["status"], each["points"]) for each in told] == [("3.1/top_p", "wrong", 2.0)] * 2


def test_no_file_of_an_exercise_is_named_by_a_path_of_this_machine():
    assert all(Path(exercise.file_name).name == exercise.file_name for exercise in EVERY)
