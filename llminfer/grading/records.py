"""`run.json`: what a run found, and all that it depended on. Two runs over the same things write the same bytes."""

import hashlib
import hmac
import json
from collections.abc import Iterable
from typing import Any

from llminfer.grading.course import Course, Homework
from llminfer.grading.grades import Grade
from llminfer.grading.intake import Intake
from llminfer.grading.run_folders import package_hash, tests_hash, versions
from llminfer.grading.spec import Exercise


def record_of(
    course: Course, homework: Homework, grades: Iterable[Grade], intake: Intake, isolation: str, secret: bytes
) -> dict[str, Any]:
    """The record, as plain data. The secret is in it only as a hash that tells two secrets apart."""
    return {
        "course": course.name,
        "homework": homework.name,
        "versions": versions(),
        "library": package_hash(),
        "secret": hmac.new(secret, b"which secret", "sha256").hexdigest()[:16],
        "isolation": isolation,
        "due": str(homework.due or ""),
        "late": str(homework.late),
        "exercises": {exercise.id: _exercise(homework, exercise) for exercise in homework.exercises},
        "max_points": homework.max_points,
        "students": {grade.student.id: _grade(grade, intake) for grade in grades},
    }


def as_text(record: dict[str, Any]) -> str:
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def _exercise(homework: Homework, exercise: Exercise) -> dict[str, Any]:
    version = 0 if exercise.kind == "short-answer" else exercise.judge_side.version
    return {"version": version, "tests": tests_hash(exercise)[:16], "worth": homework.worth(exercise)}


def _grade(grade: Grade, intake: Intake) -> dict[str, Any]:
    submission = intake.submission_of(grade.student.id)
    files = submission.files if submission else {}
    return {
        "members": list(grade.members),
        "files": {exercise: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for exercise, path in files.items()},
        "scores": {
            score.exercise: {
                "status": score.status.value,
                "version": score.version,
                "judged": score.judged,
                "points": score.points,
                "max_points": score.max_points,
                "reason": score.reason,
            }
            for score in grade.scores
        },
        "earned": grade.earned,
        "days_late": grade.days_late,
        "kept": grade.kept,
        "notes": list(grade.notes),
        "total": grade.total,
        "status": grade.status,
    }
