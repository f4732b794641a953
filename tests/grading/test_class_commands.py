"""What teachers and students type: every command answers in words and in JSON, and ends with the right code."""

import json

import pytest
from typer.testing import CliRunner

from llminfer import cli
from llminfer.grading import classroom, judge_pool, release
from llminfer.grading.gradescope_trial import Trial
from llminfer.grading.isolation import Isolation
from llminfer.grading.publishing import Run
from llminfer.grading.release import Check
from llminfer.grading.results import ExerciseResult, Status

WEAK = Isolation("rlimits", False, False, True, False)
HELD = Isolation("bwrap", True, True, True, True)


@pytest.fixture
def run(course, monkeypatch):
    """A command in the course's folder; judging is done by a stand-in that finds everything right."""

    class Pool:
        def __init__(self, exercises, *_, **__):
            self.exercises = {exercise.id: exercise for exercise in exercises}

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def results(self, jobs):
            for job in jobs:
                points = self.exercises[job["exercise"]].points
                yield job, ExerciseResult(job["exercise"], "t", 1, Status.OK, points, points)

    monkeypatch.setattr(classroom, "JudgePool", Pool)
    monkeypatch.setattr(classroom, "strongest", lambda: HELD)
    monkeypatch.chdir(course.folder)
    (course.folder / "in" / "ada").mkdir(parents=True)
    (course.folder / "in" / "ada" / "stable_softmax.py").write_text("x = 1\n")

    def invoke(*words: str):
        return CliRunner().invoke(cli.app, words)

    return invoke


def test_a_course_begins_with_a_file_that_loads_and_a_secret_of_its_own(tmp_path, run):
    said = run("class", "init", "new")
    assert (said.exit_code, "llminfer class release" in said.output) == (0, True)
    assert (tmp_path / "new" / "class-secret").stat().st_mode & 0o777 == 0o600
    assert json.loads(run("class", "init", "other", "--json").output) == {"course": "other/course.toml"}
    assert (tmp_path / "new" / "class-secret").read_bytes() != (tmp_path / "other" / "class-secret").read_bytes()
    assert run("class", "grade", "--course", "new", "--explain").exit_code == 0
    again = run("class", "init", "new")
    assert isinstance(again.exception, ValueError)
    assert "nothing was changed" in str(again.exception)


def test_grading_says_who_has_what_and_where_the_rest_is(run):
    said = run("class", "grade", "in")
    assert said.exit_code == 0
    assert "ada" in said.output
    assert HELD.sentence in said.output
    found = json.loads(run("class", "grade", "in", "--json").output)
    assert (found["published"], found["run"]["students"]["ada"]["total"]) == (True, 10)


def test_falling_points_end_with_1_and_a_grader_that_failed_with_2(run, monkeypatch, course):
    run("class", "grade", "in")
    (course.folder / "in" / "ada" / "stable_softmax.py").unlink()
    (course.folder / "in" / "ada" / "rope_both.py").write_text("")
    said = run("class", "grade", "in")
    assert (said.exit_code, "--accept-drops" in said.output) == (1, True)
    assert run("class", "grade", "in", "--accept-drops").exit_code == 0
    monkeypatch.setattr(Run, "failed_judging", True)
    said = run("class", "report")
    assert (said.exit_code, "nobody lost points" in said.output) == (2, True)


def test_what_is_too_weak_for_strangers_is_refused_without_a_word_that_allows_it(run, monkeypatch):
    monkeypatch.setattr(classroom, "strongest", lambda: WEAK)
    refused = run("class", "grade", "in").exception
    assert "files readable" in str(refused)
    assert "apt install bubblewrap" in str(refused)
    said = run("class", "grade", "in", "--allow-weak-isolation")
    assert (said.exit_code, "no security boundary" in said.output) == (0, True)


def test_two_runs_are_compared(run, course):
    run("class", "grade", "in", "--out", "one")
    (course.folder / "in" / "ada" / "rope_both.py").write_text("")
    run("class", "grade", "in", "--out", "two")
    assert run("class", "diff", "one", "two").exit_code == 0
    falls = run("class", "diff", "two", "one", "--json")
    assert (falls.exit_code, [each["exercise"] for each in json.loads(falls.output)]) == (1, ["3.1/rope_both", "total"])
    assert "holds no run.json" in str(run("class", "diff", "one", "in").exception)


@pytest.mark.parametrize(("holds", "code"), [(True, 0), (False, 1)])
def test_a_hand_out_is_shown_with_its_proof(run, monkeypatch, holds, code):
    monkeypatch.setattr(release, "check", lambda *_: [Check("holds nothing else", holds, "notes.txt")])
    said = run("class", "release")
    assert (said.exit_code, "holds nothing else" in said.output) == (code, True)
    assert json.loads(run("class", "release", "--json").output)["checks"][0]["holds"] is holds
    assert run("class", "release", "--check", "in", "--json").exit_code == code


def test_gradescopes_zip_is_built_and_tried(run, monkeypatch):
    said = run("class", "gradescope", "test", "in/ada")
    assert "`llminfer class gradescope build` writes it" in str(said.exception)
    said = run("class", "gradescope", "build")
    assert (said.exit_code, "must be 16 points" in said.output) == (0, True)
    assert json.loads(run("class", "gradescope", "build", "--json").output)["max_points"] == 16
    test = {"number": "1.1", "name": "3.1/a: b", "score": 1, "max_score": 2, "visibility": "visible"}
    trial = Trial({"tests": [test], "output": "hello"}, (), 3.0, 50.0, "")
    monkeypatch.setattr("llminfer.grading.gradescope_trial.try_out", lambda *_: trial)
    said = run("class", "gradescope", "test", "in/ada")
    assert (said.exit_code, "1/2" in said.output) == (0, True)
    assert json.loads(run("class", "gradescope", "test", "in/ada", "--json").output)["score"] == 1
    broken = Trial({}, ("results.json: nothing",), 3.0, 50.0, "Traceback")
    monkeypatch.setattr("llminfer.grading.gradescope_trial.try_out", lambda *_: broken)
    assert run("class", "gradescope", "test", "in/ada").exit_code == 1


@pytest.mark.parametrize(("status", "code"), [(Status.OK, 0), (Status.WRONG, 0), (Status.IMPORT_ERROR, 1)])
def test_packing_ends_with_1_where_something_does_not_run(run, monkeypatch, course, status, code):
    (course.folder / "stable_softmax.py").write_text("x = 1\n")
    (course.folder / "rope_both.py").write_text("x = 1\n")
    result = ExerciseResult("3.1/stable_softmax", "t", 1, status, 0, 5)
    monkeypatch.setattr("llminfer.grading.judge.grade_many", lambda jobs, **_: [result for _ in jobs])
    said = run("pack", "hw1")
    assert (said.exit_code, "holds 2 of 2 files" in said.output) == (code, True)
    assert len(json.loads(run("pack", "hw1", "--json").output)["sha256"]) == 64


def test_the_judges_are_the_real_ones_outside_of_tests():
    assert judge_pool.COMMAND[-1] == "llminfer.grading.judge_process"
