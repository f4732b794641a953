"""From judged exercises to a grade: what each is worth in the homework, lateness, and what a person decided."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from llminfer.grading.course import Homework, Override
from llminfer.grading.intake import Submission
from llminfer.grading.results import ExerciseResult, Status
from llminfer.grading.rosters import Student
from llminfer.grading.spec import Exercise


@dataclass(frozen=True)
class Score:
    """One exercise of one student. judged: points as judged; points: what counts; reason: of an override, or empty."""

    exercise: str
    status: Status
    version: int
    judged: float
    points: float
    max_points: float
    reason: str = ""


@dataclass(frozen=True)
class Grade:
    """One student's homework. days_late: None where nobody knows when it was handed in. total: after everything."""

    student: Student
    members: tuple[str, ...]
    scores: tuple[Score, ...]
    earned: float
    max_points: float
    total: float
    status: str
    submitted: datetime | None = None
    due: datetime | None = None
    days_late: int | None = None
    kept: float = 1.0
    decided: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What lowered or changed the sum, in words for the student."""
        days = f"{self.days_late} day{'' if self.days_late == 1 else 's'}"
        late = f"{days} late: {self.kept:.0%} of {self.earned:g} points kept"
        return (*((late,) if self.days_late else ()), *self.decided)


def grade_of(
    student: Student,
    homework: Homework,
    submission: Submission | None,
    results: Mapping[str, ExerciseResult],
    submitted: datetime | None,
) -> Grade:
    """results: by exercise id. submitted: when, if that is known."""
    scores = tuple(_score(student, homework, each, results.get(each.id)) for each in homework.exercises)
    earned = round(sum(score.points for score in scores), 2)
    due = homework.due_for(student.id)
    days = homework.late.days_late(submitted, due) if submitted and due else None
    kept = homework.late.kept(days or 0)
    total = round(earned * kept, 2)
    decided = [
        f"{score.exercise} set from {score.judged:g} to {score.points:g}: {score.reason}"
        for score in scores
        if score.reason
    ]
    decided += [
        f"due {each.due:%Y-%m-%d %H:%M}: {each.reason}" for each in homework.extensions if each.student == student.id
    ]
    if (override := _override(student, homework, None)) is not None:
        total, decided = override.points, [*decided, f"total set to {override.points:g}: {override.reason}"]
    late_unknown = submission is not None and submission.marked_late and days is None
    return Grade(
        student=student,
        members=submission.members if submission else (student.id,),
        scores=scores,
        earned=earned,
        max_points=homework.max_points,
        total=total,
        status=_status(scores, submission, days, late_unknown),
        submitted=submitted,
        due=due,
        days_late=days,
        kept=kept,
        decided=tuple(decided),
    )


def _score(student: Student, homework: Homework, exercise: Exercise, result: ExerciseResult | None) -> Score:
    worth = homework.worth(exercise)
    status = result.status if result else Status.MISSING
    version = result.version if result else 0
    share = result.points / result.max_points if result and result.max_points else 0.0
    judged = round(worth * share, 2)
    override = _override(student, homework, exercise.id)
    if override is None:
        return Score(exercise.id, status, version, judged, judged, worth)
    return Score(exercise.id, status, version, judged, override.points, worth, override.reason)


def _override(student: Student, homework: Homework, exercise: str | None) -> Override | None:
    """The last one that was written."""
    fitting = [each for each in homework.overrides if (each.student, each.exercise) == (student.id, exercise)]
    return fitting[-1] if fitting else None


def _status(scores: tuple[Score, ...], submission: Submission | None, days: int | None, late_unknown: bool) -> str:
    """The one word that a teacher looks for first."""
    if submission is None or not submission.files:
        return "missing"
    statuses = {score.status for score in scores if not score.reason}
    if Status.GRADER_ERROR in statuses:
        return "check"
    if Status.COLLECTED in statuses:
        return "to mark"
    if late_unknown:
        return "late, unknown by how much"
    return "late" if days else "graded"
