"""The tables of a run: for the teacher, for Canvas and Moodle, and one that says which tests the class failed."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from llminfer.grading.course import Course, Homework
from llminfer.grading.diff import Change
from llminfer.grading.grades import Grade
from llminfer.grading.intake import Intake
from llminfer.grading.results import ExerciseResult, Status
from llminfer.grading.rosters import CANVAS_COLUMNS, MOODLE_COLUMNS, Roster

Results = Mapping[str, Mapping[str, ExerciseResult]]
"""By student, then by exercise id."""
UNDECIDED = ("check", "to mark")


def grades_csv(homework: Homework, grades: Sequence[Grade]) -> str:
    """A line a student; the first says what there is to get."""
    ids = [exercise.id for exercise in homework.exercises]
    header = ["student", "name", *ids, "earned", "days_late", "total", "status", "notes"]
    most = [homework.worth(exercise) for exercise in homework.exercises]
    lines = [["maximum", "", *most, homework.max_points, "", homework.max_points, "", ""]]
    for grade in grades:
        points = [score.points for score in grade.scores]
        late = "" if grade.days_late is None else grade.days_late
        end = [grade.earned, late, grade.total, grade.status, "; ".join(grade.notes)]
        lines.append([grade.student.id, grade.student.name, *points, *end])
    return csv_text(header, lines)


def canvas_csv(homework: Homework, grades: Sequence[Grade], roster: Roster | None) -> str:
    """What Canvas's gradebook imports; the last column's heading is the assignment's, with its number, as exported."""
    lines = [["    Points Possible", "", "", "", "", homework.max_points]]
    for grade in grades:
        student = grade.student
        if roster and roster.form == "canvas":
            cells = [student.row.get(column, "") for column in CANVAS_COLUMNS]
        else:
            cells = [student.name, student.canvas_id, "", student.id, student.section]
        lines.append([*cells, _total(grade)])
    return csv_text([*CANVAS_COLUMNS, homework.canvas or homework.heading], lines)


def moodle_csv(homework: Homework, grades: Sequence[Grade], roster: Roster | None) -> str:
    """Moodle's own grading worksheet with the grades filled in; without one, its least columns."""
    if roster and roster.form == "moodle":
        header = [*roster.header, *(() if "Grade" in roster.header else ("Grade",))]
        filled = [{**grade.student.row, "Grade": _total(grade)} for grade in grades]
        return csv_text(header, [[cells.get(column, "") for column in header] for cells in filled])
    lines = [
        [f"Participant {grade.student.moodle_id}" if grade.student.moodle_id else ""]
        + [grade.student.name, grade.student.email, _total(grade), homework.max_points]
        for grade in grades
    ]
    return csv_text([*MOODLE_COLUMNS, "Grade", "Maximum Grade"], lines)


def _total(grade: Grade) -> float | str:
    """Nothing where a person must look first: an empty cell changes nothing on the platform."""
    return "" if grade.status in UNDECIDED else grade.total


def items_csv(homework: Homework, results: Results) -> str:
    """How many passed each group of tests, of those who handed it in, and how the others failed most often."""
    lines = []
    for exercise in homework.exercises:
        judged = [each[exercise.id] for each in results.values() if exercise.id in each]
        for group in exercise.groups:
            ends = [_end(result, group.name) for result in judged]
            passed = ends.count("ok")
            failures = Counter(end for end in ends if end != "ok")
            commonest, times = min(failures.items(), key=lambda each: (-each[1], each[0]), default=("", 0))
            rate = f"{passed / len(ends):.3f}" if ends else ""
            shown = "visible" if group.visible else "hidden"
            lines.append([exercise.id, group.name, shown, len(ends), passed, rate, commonest, times])
    header = ["exercise", "group", "shown", "handed_in", "passed", "pass_rate", "commonest_failure", "times"]
    return csv_text(header, lines)


def _end(result: ExerciseResult, group: str) -> str:
    """How a group ended: its status, and the cause where the judge knew one."""
    for found in result.groups:
        if found.name == group:
            failure = result.failure
            cause = failure.cause if failure and failure.group == group else ""
            return f"{found.status.value}: {cause}" if cause and found.status is not Status.OK else found.status.value
    return result.status.value


def intake_csv(intake: Intake, homework: Homework) -> str:
    """What was not plain about the files, and what is not there."""
    lines = [[note.student, note.found, note.note] for note in intake.notes]
    for student in intake.students:
        submission = intake.submission_of(student.id)
        if submission is None:
            lines.append([student.id, "", "nothing handed in"])
            continue
        absent = [each.file_name for each in homework.exercises if each.id not in submission.files]
        lines += [[student.id, "", f"{name} is missing"] for name in absent]
    return csv_text(["student", "found", "note"], lines)


def to_mark_csv(grades: Iterable[Grade]) -> str:
    """What a person reads: fill in points and reason, and name the file as `marks` of the homework."""
    lines = [
        [grade.student.id, score.exercise, score.points if score.reason else "", score.reason, score.max_points]
        for grade in grades
        for score in grade.scores
        if score.status in (Status.COLLECTED, Status.GRADER_ERROR)
    ]
    return csv_text(["student", "exercise", "points", "reason", "maximum"], lines)


def changes_csv(changes: Iterable[Change]) -> str:
    lines = [[each.student, each.exercise, each.before, each.after, each.why] for each in changes]
    return csv_text(["student", "exercise", "before", "after", "why"], lines)


def tables(
    course: Course, homework: Homework, grades: Sequence[Grade], results: Results, intake: Intake
) -> dict[str, str]:
    """All tables by file name."""
    return {
        "grades.csv": grades_csv(homework, grades),
        "canvas.csv": canvas_csv(homework, grades, course.roster),
        "moodle.csv": moodle_csv(homework, grades, course.roster),
        "items.csv": items_csv(homework, results),
        "intake.csv": intake_csv(intake, homework),
        "to-mark.csv": to_mark_csv(grades),
    }


def csv_text(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A table as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_cell(cell) for cell in line] for line in lines)
    return out.getvalue()


def _cell(cell: object) -> str:
    """Numbers without a needless .0, and no text that a spreadsheet would run as a formula."""
    if isinstance(cell, int | float):
        return f"{cell:.12g}"
    text = str(cell)
    return f"'{text}" if len(text) > 1 and text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
