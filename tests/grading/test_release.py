"""What students get holds what they need, and a leak of any kind is found."""

import zipfile
from pathlib import Path

import pytest

from llminfer.grading import release as releasing
from llminfer.grading.archive_writing import zipped
from llminfer.grading.course_file import load_course
from llminfer.grading.handouts import course_for_students, handed_out
from llminfer.grading.release import check, grams, release
from llminfer.grading.results import ExerciseResult, Status
from llminfer.grading.spec import all_exercises

EXERCISES = {exercise.name: exercise for exercise in all_exercises("3.1")}
SOFTMAX, ROPE = EXERCISES["stable_softmax"], EXERCISES["rope_both"]
SECRET = "s3cret" * 10


@pytest.fixture
def judged(monkeypatch):
    """The judge's word without judging: solutions are right, anything else is not begun."""

    def grade(exercise, file, **_):
        right = file == exercise.solution
        points = exercise.points if right else 0.0
        status = Status.OK if right else Status.NOT_DONE
        return ExerciseResult(exercise.id, "", 1, status, points, exercise.points)

    monkeypatch.setattr(releasing.judge, "grade", grade)


def failing(checks) -> list[str]:
    return [each.statement for each in checks if not each.holds]


def test_a_homework_is_handed_out_with_starters_and_without_secrets(course, tmp_path, judged):
    path, checks = release(course, course.find("hw1"), tmp_path / "out")
    assert failing(checks) == []
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == [
            f"hw1/{name}" for name in ("README.md", "course.toml", ROPE.file_name, SOFTMAX.file_name)
        ]
        assert archive.read("hw1/stable_softmax.py") == SOFTMAX.starter.read_bytes()
    assert SECRET.encode() not in path.read_bytes()


def test_students_read_the_same_homework_without_what_was_decided_for_others(course, tmp_path):
    text = course_for_students(course, course.find("hw1"))
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "course.toml").write_text(text, encoding="utf-8")
    theirs = load_course(tmp_path / "theirs").find("hw1")
    ours = course.find("hw1")
    assert (theirs.exercises, theirs.title, theirs.points) == (ours.exercises, 'Homework "1"', ours.points)
    assert (theirs.due, theirs.late) == (ours.due, ours.late)
    assert theirs.overrides == ()
    assert "family" not in text


def test_two_releases_are_the_same_bytes(course, tmp_path, judged):
    first, _ = release(course, course.find("hw1"), tmp_path / "one")
    second, _ = release(course, course.find("hw1"), tmp_path / "two")
    assert first.read_bytes() == second.read_bytes()


SOLVED = SOFTMAX.solution.read_text(encoding="utf-8")
JUDGE_SIDE = SOFTMAX.solution.with_name("stable_softmax_judge.py")


@pytest.mark.parametrize(
    ("name", "content", "statement"),
    [
        ("stable_softmax.py", SOLVED, "no 12 tokens in a row"),
        ("README.md", SOLVED[SOLVED.index("    peak") :], "no 12 tokens in a row"),
        ("README.md", JUDGE_SIDE.read_text(encoding="utf-8"), "no 12 tokens in a row"),
        ("stable_softmax_judge.py", "", "nothing else"),
        ("notes.txt", "", "nothing else"),
        ("README.md", f"by the way: {SECRET}", "class secret"),
        ("rope_both.py", None, "lacks none"),
    ],
)
def test_every_leak_is_found(course, tmp_path, judged, name, content, statement):
    homework = course.find("hw1")
    files = handed_out(course, homework) | {f"hw1/{name}": content}
    path = tmp_path / "hw1.zip"
    path.write_bytes(zipped({key: value for key, value in files.items() if value is not None}))
    assert any(statement in each for each in failing(check(course, homework, path)))


def test_a_hand_out_that_fails_a_check_is_not_written(course, tmp_path, judged, monkeypatch):
    monkeypatch.setattr(releasing, "handed_out", lambda *_: {"hw1/secret.txt": course.secret})
    path, checks = release(course, course.find("hw1"), tmp_path / "out")
    assert failing(checks)
    assert not path.exists()


@pytest.mark.parametrize(
    ("points", "status"), [(1.0, Status.WRONG), (0.0, Status.IMPORT_ERROR), (0.0, Status.GRADER_ERROR)]
)
def test_a_starter_that_earns_something_or_does_not_run_is_found(course, tmp_path, monkeypatch, points, status):
    def grade(exercise, file, **_):
        right = file == exercise.solution
        return ExerciseResult(exercise.id, "", 1, status, exercise.points if right else points, exercise.points)

    monkeypatch.setattr(releasing.judge, "grade", grade)
    _, checks = release(course, course.find("hw1"), tmp_path)
    assert failing(checks) == [f"{each.id}: what is handed out runs and earns nothing" for each in (SOFTMAX, ROPE)]


def test_runs_of_tokens_do_not_depend_on_spaces_and_comments():
    tokens = "a = [1, 2, 3, 4, 5, 6, 7]"
    assert grams(tokens) == grams("a=[1,2,\n   3, 4,5,6,7] # seven")
    assert grams("a = 1") == set()
    assert grams("no python at all: " + "word " * 20)


@pytest.mark.slow
def test_the_judge_itself_agrees(course, tmp_path):
    _, checks = release(course, course.find("hw1"), Path(tmp_path))
    assert failing(checks) == []
