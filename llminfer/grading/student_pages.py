"""What each student gets: a page that needs nothing else, as HTML and as Markdown."""

from collections.abc import Sequence
from pathlib import Path

from llminfer.grading import report
from llminfer.grading.atomic_files import folder_name, write_atomically
from llminfer.grading.course import Course, Homework
from llminfer.grading.exports import Results
from llminfer.grading.grades import Grade
from llminfer.grading.results import ExerciseResult, Failure, GroupResult, Status
from llminfer.grading.spec import Exercise


def write_pages(folder: Path, course: Course, homework: Homework, grades: Sequence[Grade], results: Results) -> None:
    """One `ID.html` and one `ID.md` a student."""
    for grade in grades:
        own = results[grade.student.id]
        judged = [own.get(exercise.id) or _absent(exercise) for exercise in homework.exercises]
        heading = " · ".join(
            part for part in (course.name, homework.heading, grade.student.name or grade.student.id) if part
        )
        lines = summary(homework, grade)
        name = folder_name(grade.student.id)
        write_atomically(folder / f"{name}.html", report.html(judged, heading=heading, lines=lines))
        write_atomically(folder / f"{name}.md", report.markdown(judged, heading=heading, lines=lines))


def summary(homework: Homework, grade: Grade) -> list[str]:
    """The grade in lines: the sum, what changed it, and when things were due and handed in."""
    lines = [f"Total: {grade.total:g} of {grade.max_points:g} points"]
    if len(grade.members) > 1:
        lines.append(f"Handed in together by {', '.join(grade.members)}")
    if grade.due:
        handed_in = f", handed in {grade.submitted:%Y-%m-%d %H:%M %Z}" if grade.submitted else ""
        lines.append(f"Due {grade.due:%Y-%m-%d %H:%M %Z}{handed_in}")
        lines.append(f"Lateness: {homework.late}")
    lines += grade.notes
    for exercise, score in zip(homework.exercises, grade.scores, strict=True):
        if score.max_points != exercise.points:
            lines.append(f"{exercise.id}: {score.judged:g} of {score.max_points:g} points in this homework")
    return lines


def _absent(exercise: Exercise) -> ExerciseResult:
    groups = tuple(
        GroupResult(
            group.name, group.visible, 0.0, group.points, 0, 0, Status.MISSING, group.about if group.visible else ""
        )
        for group in exercise.groups
    )
    told = Failure("", Status.MISSING, f"there is no {exercise.file_name}", section=exercise.section)
    return ExerciseResult(exercise.id, exercise.title, 0, Status.MISSING, 0.0, exercise.points, groups, told)
