"""What goes back to Canvas and Moodle: their own columns, so that they take it."""

import csv
import io

from llminfer.grading.course import Homework, Override
from llminfer.grading.exports import canvas_csv, csv_text, grades_csv, items_csv, moodle_csv, to_mark_csv
from llminfer.grading.grades import grade_of
from llminfer.grading.intake import Submission
from llminfer.grading.results import ExerciseResult, Failure, GroupResult, Status
from llminfer.grading.rosters import load_roster
from llminfer.grading.spec import all_exercises

EXERCISES = {exercise.name: exercise for exercise in all_exercises("3.1")}
SOFTMAX = EXERCISES["stable_softmax"]
HOMEWORK = Homework("hw1", (SOFTMAX,), "Homework 1", {SOFTMAX.id: 10}, canvas="Homework 1 (4711)")

# As Canvas exports it: see the line of possible points, its leading spaces, and the test student.
CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Homework 1 (4711),Current Score
    Points Possible,,,,,10,(read only)
"Doe, Jane",101,9001,jdoe,Sec 1,,
"Roe, Bob",102,9002,broe,Sec 1,,
"Student, Test",103,,,Sec 1,,
"""
# As Moodle's grading worksheet: Moodle compares "Last modified (grade)" with its own and refuses older ones.
MOODLE = """Identifier,Full name,Email address,Status,Grade,Maximum Grade,Last modified (grade),Feedback comments
Participant 7,Jane Doe,jane@example.edu,Submitted for grading,,10.00,-,
Participant 8,Bob Roe,bob@example.edu,No submission,,10.00,-,
"""


def result(points: float, status: Status = Status.OK, cause: str = "") -> ExerciseResult:
    groups = (GroupResult("small scores", True, points, 5, 1, 1, status),)
    failure = Failure("small scores", status, "it is wrong", cause=cause) if cause else None
    return ExerciseResult(SOFTMAX.id, "t", 3, status, points, 5, groups, failure)


def graded(folder, text: str, **found: ExerciseResult):
    (folder / "list.csv").write_text(text, encoding="utf-8")
    roster = load_roster(folder / "list.csv")
    grades = []
    for student in roster.students:
        own = found.get(student.id.split("@")[0])
        submission = Submission((student.id,), folder, {SOFTMAX.id: folder / "x.py"}) if own else None
        grades.append(grade_of(student, HOMEWORK, submission, {SOFTMAX.id: own} if own else {}, None))
    return grades, roster


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_canvas_gets_its_own_columns_and_the_assignments_heading(tmp_path):
    grades, roster = graded(tmp_path, CANVAS, jdoe=result(2.5))
    assert rows(canvas_csv(HOMEWORK, grades, roster)) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Homework 1 (4711)"],
        ["    Points Possible", "", "", "", "", "10"],
        ["Roe, Bob", "102", "9002", "broe", "Sec 1", "0"],
        ["Doe, Jane", "101", "9001", "jdoe", "Sec 1", "5"],
    ]


def test_moodle_gets_its_own_worksheet_with_the_grades_filled_in(tmp_path):
    grades, roster = graded(tmp_path, MOODLE, jane=result(5))
    header, bob, jane = rows(moodle_csv(HOMEWORK, grades, roster))
    assert header == rows(MOODLE)[0]
    assert jane == ["Participant 7", "Jane Doe", "jane@example.edu", "Submitted for grading", "10", "10.00", "-", ""]
    assert bob[4] == "0"


def test_what_nobody_has_decided_yet_is_left_empty(tmp_path):
    grades, roster = graded(tmp_path, CANVAS, jdoe=result(0, Status.GRADER_ERROR), broe=result(0, Status.COLLECTED))
    assert [line[-1] for line in rows(canvas_csv(HOMEWORK, grades, roster))[2:]] == ["", ""]
    assert [line[:3] for line in rows(to_mark_csv(grades))[1:]] == [["broe", SOFTMAX.id, ""], ["jdoe", SOFTMAX.id, ""]]


def test_what_a_person_has_marked_is_decided_and_stays_in_the_table_of_marks(tmp_path, monkeypatch):
    marked = Homework(**{**vars(HOMEWORK), "overrides": (Override("jdoe", 7, "well argued", SOFTMAX.id),)})
    monkeypatch.setitem(globals(), "HOMEWORK", marked)
    grades, roster = graded(tmp_path, CANVAS, jdoe=result(0, Status.COLLECTED))
    assert rows(canvas_csv(marked, grades, roster))[-1][-1] == "7"
    assert rows(to_mark_csv(grades))[1] == ["jdoe", SOFTMAX.id, "7", "well argued", "10"]
    assert "well argued" in grades_csv(marked, grades)


def test_items_count_who_passed_and_how_the_others_failed(tmp_path):
    failed = {"a": result(0, Status.WRONG, "one maximum"), "b": result(0, Status.WRONG, "one maximum")}
    results = {
        name: {SOFTMAX.id: each} for name, each in {**failed, "c": result(5), "d": result(0, Status.SHAPE)}.items()
    }
    [line] = [line for line in rows(items_csv(HOMEWORK, results)) if line[1] == "small scores"]
    assert line[2:] == ["visible", "4", "1", "0.250", "wrong: one maximum", "2"]


def test_no_cell_is_a_formula_and_a_lone_dash_stays():
    text = csv_text(["a"], [["=1+1"], ["+1"], ["@x"], ["-2+3"], ["-"], [-2.5], [0.1 + 0.2]])
    assert text.splitlines()[1:] == ["'=1+1", "'+1", "'@x", "'-2+3", "-", "-2.5", "0.3"]
