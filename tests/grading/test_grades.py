"""From points to a grade: weights, lateness and decisions, in this order."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from llminfer.grading.course import Extension, Homework, Override
from llminfer.grading.grades import grade_of
from llminfer.grading.intake import Submission
from llminfer.grading.late import LatePolicy
from llminfer.grading.results import ExerciseResult, Status
from llminfer.grading.rosters import Student
from llminfer.grading.spec import all_exercises

SOFTMAX, ROPE = (each for each in all_exercises("3.1") if each.name in ("stable_softmax", "rope_both"))
DUE = datetime.fromisoformat("2027-03-01T12:00:00+00:00")
LATE = LatePolicy(percent_per_day=10, last_day=3)
HOMEWORK = Homework("hw1", (SOFTMAX, ROPE), "", {SOFTMAX.id: 10, ROPE.id: 20}, due=DUE, late=LATE)
ADA = Student("ada")
HANDED_IN = Submission(("ada",), Path("ada"), {SOFTMAX.id: Path("s"), ROPE.id: Path("r")})


def result(exercise, share: float, status: Status = Status.WRONG) -> ExerciseResult:
    return ExerciseResult(exercise.id, "", 1, status, share * exercise.points, exercise.points)


def grade(homework: Homework = HOMEWORK, hours_late: float = 0, **changed):
    results = {SOFTMAX.id: result(SOFTMAX, 0.5), ROPE.id: result(ROPE, 1, Status.OK)} | changed
    return grade_of(ADA, homework, HANDED_IN, results, DUE + timedelta(hours=hours_late))


def test_points_of_the_homework_weigh_the_share_that_was_earned():
    found = grade()
    assert [score.points for score in found.scores] == [5, 20]
    assert (found.earned, found.total, found.max_points, found.status) == (25, 25, 30, "graded")


@pytest.mark.parametrize(("hours", "total", "days"), [(0, 25, 0), (1, 22.5, 1), (25, 20, 2), (73, 0, 4)])
def test_each_begun_day_takes_its_part_of_what_was_earned(hours, total, days):
    found = grade(hours_late=hours)
    assert (found.total, found.days_late) == (total, days)


def test_an_extension_moves_the_due_date_of_one_student():
    extended = replace(HOMEWORK, extensions=(Extension("ada", DUE + timedelta(days=2), "ill"),))
    assert grade(extended, hours_late=25).total == 25
    assert "ill" in " ".join(grade(extended, hours_late=25).notes)
    other = replace(HOMEWORK, extensions=(Extension("bob", DUE + timedelta(days=2), "ill"),))
    assert grade(other, hours_late=25).total == 20


def test_an_exercises_override_counts_before_lateness_and_the_totals_after():
    one = replace(HOMEWORK, overrides=(Override("ada", 9, "appeal", SOFTMAX.id),))
    assert grade(one, hours_late=1).total == pytest.approx(29 * 0.9)
    whole = replace(HOMEWORK, overrides=(Override("ada", 28, "appeal"),))
    assert grade(whole, hours_late=73).total == 28
    assert grade(whole).scores[0].judged == 5  # what was judged stays on record


def test_the_last_override_counts():
    twice = replace(HOMEWORK, overrides=(Override("ada", 1, "a", SOFTMAX.id), Override("ada", 2, "b", SOFTMAX.id)))
    assert grade(twice).scores[0].points == 2


def test_a_platform_that_says_only_late_leaves_it_to_a_person():
    late = replace(HANDED_IN, marked_late=True)
    found = grade_of(ADA, HOMEWORK, late, {SOFTMAX.id: result(SOFTMAX, 1)}, None)
    assert (found.status, found.days_late) == ("late, unknown by how much", None)


@pytest.mark.parametrize(
    ("status", "word"), [(Status.GRADER_ERROR, "check"), (Status.COLLECTED, "to mark"), (Status.TIMEOUT, "graded")]
)
def test_the_status_says_what_a_person_must_do(status, word):
    assert grade(**{ROPE.id: result(ROPE, 0, status)}).status == word


def test_nothing_handed_in_is_missing():
    assert grade_of(ADA, HOMEWORK, None, {}, None).status == "missing"
    nothing_useful = Submission(("ada",), Path("ada"))
    assert grade_of(ADA, HOMEWORK, nothing_useful, {}, None).status == "missing"
