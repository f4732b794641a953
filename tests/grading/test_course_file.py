"""`course.toml`: what is in it arrives, and whatever cannot be meant is refused by name."""

from dataclasses import replace
from pathlib import Path

import pytest

from llminfer.grading.course_file import load_course
from llminfer.grading.handouts import course_for_students
from llminfer.grading.spec import all_exercises

SOFTMAX, ROPE = "3.1/stable_softmax", "3.1/rope_both"
TIMES = """
name = "Inference"
[late]
percent_per_day = 10
[[homework]]
name = "hw1"
exercises = ["3.1/stable_softmax", "3.1/rope_both"]
points = { "3.1/rope_both" = 7 }
opens = 2027-02-01T00:00:00+01:00
due = 2027-03-01T23:59:00+01:00
[[homework.extension]]
student = "ada"
due = 2027-03-05T23:59:00+01:00
reason = "ill"
[[homework.override]]
student = "bob"
exercise = "3.1/rope_both"
points = 3
reason = "appeal"
"""


def course(folder: Path, text: str):
    (folder / "course.toml").write_text(text, encoding="utf-8")
    return load_course(folder)


def test_a_homework_arrives_as_written(tmp_path):
    homework = course(tmp_path, TIMES).find("hw1")
    softmax, rope = homework.exercises
    assert (softmax.id, rope.id) == (SOFTMAX, ROPE)
    assert homework.worth(rope) == 7
    assert homework.worth(softmax) == softmax.points
    assert homework.max_points == softmax.points + 7
    assert homework.late.percent_per_day == 10
    assert homework.due_for("ada").day == 5
    assert homework.due_for("bob").day == 1
    assert (homework.overrides[0].points, homework.overrides[0].reason) == (3, "appeal")


def test_a_chapter_stands_for_all_of_its_exercises(tmp_path):
    homework = course(tmp_path, '[[homework]]\nname = "all"\nexercises = ["3.1"]').find(None)
    assert homework.exercises == all_exercises("3.1")


def test_ceilings_lower_the_limits_of_exercises_and_never_raise_them(tmp_path):
    own = {exercise.id: exercise.limits for exercise in all_exercises()}
    text = TIMES.replace("[late]", "[limits]\nseconds = 1\nmemory_mib = 1000000\n[late]")
    for exercise in course(tmp_path, text).find("hw1").exercises:
        assert own[exercise.id].seconds > 1  # else this would show nothing
        assert exercise.limits == replace(own[exercise.id], seconds=1)
    assert [exercise.limits for exercise in course(tmp_path, TIMES).find("hw1").exercises] == [own[SOFTMAX], own[ROPE]]


def test_students_are_held_by_the_same_ceilings_as_their_teacher(tmp_path):
    given = course(tmp_path, TIMES.replace("[late]", "[limits]\nseconds = 0.5\n[late]"))
    (tmp_path / "handed-out").mkdir()
    theirs = course(tmp_path / "handed-out", course_for_students(given, given.find("hw1")))
    assert theirs.ceilings == given.ceilings
    assert theirs.find("hw1").exercises == given.find("hw1").exercises


def test_a_late_policy_of_its_own_replaces_the_common_one(tmp_path):
    text = TIMES.replace("due = 2027-03-01T23:59:00+01:00", "late = { last_day = 2 }", 1)
    late = course(tmp_path, text).find("hw1").late
    assert (late.percent_per_day, late.last_day) == (0, 2)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('name = "Inference"', 'nam = "Inference"', "top of the file: unknown key 'nam'; did you mean name?"),
        ("percent_per_day", "percent_a_day", r"\[late\]: unknown key 'percent_a_day'; did you mean percent_per_day?"),
        ("percent_per_day = 10", 'percent_per_day = "10"', r"\[late\]: percent_per_day must be float, got '10'"),
        ("[late]", "[limits]\nsecond = 1\n[late]", r"\[limits\]: unknown key 'second'; did you mean seconds?"),
        ("[late]", "[limits]\nmemory_mib = 0\n[late]", r"\[limits\]: memory_mib must be above 0, got 0"),
        ("points = { ", "pionts = { ", "homework 'hw1': unknown key 'pionts'; did you mean points?"),
        ('"3.1/rope_both" = 7', '"3.1/rope_bot" = 7', "homework 'hw1', points: unknown key '3.1/rope_bot'; did you"),
        ('"3.1/rope_both" = 7', '"3.1/rope_both" = -7', "points of 3.1/rope_both must be at least 0, got -7"),
        ('"3.1/rope_both" = 7', '"3.1/rope_both" = true', "points of 3.1/rope_both must be float, got True"),
        (
            'softmax", "3.1/rope_both"',
            'softmax", "3.1/rope_bth"',
            "there is no exercise '3.1/rope_bth'; near",
        ),
        ('softmax", "3.1/rope_both"', 'softmax", "3.1/stable_softmax"', "must differ, stable_softmax comes twice"),
        ("due = 2027-03-01T23:59:00+01:00", "due = 2027-03-01T23:59:00", "due needs its offset"),
        ("due = 2027-03-01T23:59:00+01:00", "due = 2027-03-01", "due must be datetime.* got datetime.date"),
        ("due = 2027-03-01T23:59:00+01:00", "due = 2027-01-01T00:00:00+01:00", "must come before due"),
        ('reason = "ill"', "", "homework 'hw1', extension: .*reason"),
        ('reason = "ill"', 'reason = " "', "what was decided for ada needs a reason"),
        (
            'exercise = "3.1/rope_both"',
            'exercise = "3.1/top_p"',
            "override for bob: .* is not in this homework",
        ),
        ("points = 3", "points = -3", "override for bob: points must be at least 0"),
        ('name = "hw1"', 'name = "../hw1"', "needs a name of letters, digits"),
    ],
)
def test_what_cannot_be_meant_is_named(tmp_path, old, new, named):
    assert TIMES.count(old) == 1
    with pytest.raises(ValueError, match=named) as refused:
        course(tmp_path, TIMES.replace(old, new))
    assert str(refused.value).startswith(str(tmp_path / "course.toml"))


def test_an_unknown_homework_is_answered_with_those_there_are(tmp_path):
    with pytest.raises(ValueError, match="there is no homework 'hw2'.*has hw1"):
        course(tmp_path, TIMES).find("hw2")


def test_points_given_by_hand_come_from_a_table_whose_empty_lines_are_left_out(tmp_path):
    lines = "student,exercise,points,reason\nada,3.1/rope_both,4,well argued\nbob,3.1/rope_both,,\n"
    (tmp_path / "marks.csv").write_text(lines, encoding="utf-8")
    homework = course(tmp_path, TIMES.replace("[[homework.ext", 'marks = "marks.csv"\n[[homework.ext')).find("hw1")
    assert [(each.student, each.points) for each in homework.overrides] == [("bob", 3), ("ada", 4)]


def test_the_secret_is_refused_where_others_can_read_it(tmp_path):
    made = course(tmp_path, TIMES)
    with pytest.raises(ValueError, match="there is no class secret"):
        _ = made.secret
    made.secret_file.write_text("a" * 64)
    for mode in (0o604, 0o640):
        made.secret_file.chmod(mode)
        with pytest.raises(ValueError, match="chmod 600"):
            _ = made.secret
    made.secret_file.chmod(0o600)
    assert made.secret == b"a" * 64
    made.secret_file.write_text("short")
    with pytest.raises(ValueError, match="at least 32"):
        _ = made.secret
