"""Two runs compared: every number that differs, and each of the things that can be the reason."""

import copy

import pytest

from llminfer.grading.diff import differences

SCORE = {"status": "ok", "version": 1, "judged": 5.0, "points": 5.0, "max_points": 5.0, "reason": ""}
RUN = {
    **{"secret": "s", "library": "l", "isolation": "bwrap"},
    "exercises": {"3.1/a": {"version": 1, "tests": "t", "worth": 5.0}},
    "students": {
        "ada": {
            **{"members": ["ada"], "files": {"3.1/a": "f"}, "scores": {"3.1/a": SCORE}, "earned": 5.0, "days_late": 0},
            **{"kept": 1.0, "notes": [], "total": 5.0, "status": "graded"},
        }
    },
}


def changed(path: str, value, points: float = 2.0):
    run = copy.deepcopy(RUN)
    student = run["students"]["ada"]
    student["scores"]["3.1/a"]["points"] = student["earned"] = student["total"] = points
    *way, last = path.split(".")
    place = run
    for name in way:
        place = place[name.replace("|", ".")]
    place[last] = value
    return run


def test_nothing_differs_from_itself():
    assert differences(RUN, copy.deepcopy(RUN)) == []


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("students.ada.files", {"3.1/a": "g"}, "another submission"),
        ("exercises.3|1/a.version", 2, "tests of version 1 -> 2"),
        ("exercises.3|1/a.tests", "u", "tests changed, still called version 1"),
        ("exercises.3|1/a.worth", 4.0, "worth 5 -> 4"),
        ("students.ada.scores.3|1/a.reason", "appeal", "appeal"),
        ("secret", "z", "another secret"),
        ("library", "m", "another library"),
        ("isolation", "landlock", "another isolation"),
        ("students.ada.members", ["ada", "bob"], "another group"),
        ("library", "l", "judged again with the same inputs: it is not the same every time"),
    ],
)
def test_every_reason_is_named(path, value, why):
    score, total = differences(RUN, changed(path, value))
    assert (score.student, score.exercise, score.before, score.after, score.why) == ("ada", "3.1/a", 5.0, 2.0, why)
    assert score.falls
    assert (total.exercise, total.why) == ("total", "scores")


def test_rising_is_no_fall():
    assert not any(change.falls for change in differences(changed("library", "m"), RUN))


def test_lateness_and_decisions_change_the_total_alone():
    late = copy.deepcopy(RUN)
    late["students"]["ada"] |= {"days_late": 1, "kept": 0.9, "total": 4.5}
    [change] = differences(RUN, late)
    assert (change.exercise, change.why, change.falls) == ("total", "lateness", True)


def test_who_is_gone_has_lost_everything():
    gone = copy.deepcopy(RUN)
    gone["students"] = {}
    assert [(change.after, change.why) for change in differences(RUN, gone)] == [(0, "no longer in the run")] * 2
    assert [change.falls for change in differences(gone, RUN)] == [False, False]


def test_an_exercise_that_left_the_homework_is_named():
    left = copy.deepcopy(RUN)
    left["exercises"], left["students"]["ada"]["scores"] = {}, {}
    assert differences(RUN, left)[0].why == "no longer in the homework"
