"""From what was judged to what is handed on: tables, pages and the record, unless points fall that nobody agreed to."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from llminfer.grading.atomic_files import write_atomically
from llminfer.grading.course import Course, Homework
from llminfer.grading.diff import Change, Record, differences
from llminfer.grading.exports import UNDECIDED, Results, changes_csv, tables
from llminfer.grading.grades import Grade, grade_of
from llminfer.grading.intake import Intake
from llminfer.grading.records import as_text, record_of
from llminfer.grading.results import ExerciseResult, Status
from llminfer.grading.run_folders import RunFolder
from llminfer.grading.student_pages import write_pages


@dataclass(frozen=True)
class Run:
    """A graded homework. changes: against the run before. published: False where points fall and nobody agreed.

    record: what `run.json` holds, or would hold.
    """

    folder: Path
    grades: tuple[Grade, ...]
    results: Results
    intake: Intake
    changes: tuple[Change, ...]
    published: bool
    record: Record

    @property
    def drops(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.falls)

    @property
    def undecided(self) -> tuple[Grade, ...]:
        """Those that a person must look at before their points mean anything."""
        return tuple(grade for grade in self.grades if grade.status in UNDECIDED)

    @property
    def failed_judging(self) -> bool:
        """The grader itself failed somewhere: never the student's loss, and never silent."""
        return any(score.status is Status.GRADER_ERROR for grade in self.grades for score in grade.scores)


def publish(
    course: Course,
    homework: Homework,
    folder: RunFolder,
    intake: Intake,
    results: Mapping[tuple[str, ...], Mapping[str, ExerciseResult]],
    isolation: str,
    accept_drops: bool,
) -> Run:
    """Write the run. results: by the members of a submission, then by exercise id.

    Where points fall against the run before, only `changes.csv` is written, unless `accept_drops`.
    """
    grades, by_student = [], {}
    for student in intake.students:
        submission = intake.submission_of(student.id)
        own = results[submission.members] if submission else {}
        by_student[student.id] = {each.id: own[each.id] for each in homework.exercises if each.id in own}
        submitted = submission.submitted if submission else None
        grades.append(grade_of(student, homework, submission, by_student[student.id], submitted))
    record = record_of(course, homework, grades, intake, isolation, course.secret)
    last = folder.last_run()
    changes = tuple(differences(last, record)) if last else ()
    published = accept_drops or not any(change.falls for change in changes)
    write_atomically(folder.path / "changes.csv", changes_csv(changes))
    if published:
        for name, text in tables(course, homework, grades, by_student, intake).items():
            write_atomically(folder.path / name, text)
        write_pages(folder.students, course, homework, grades, by_student)
        write_atomically(folder.path / "run.json", as_text(record))  # last: whoever reads it finds the rest
    return Run(folder.path, tuple(grades), by_student, intake, changes, published, record)
