"""What runs in Gradescope's container: judges one submission, and writes `results.json` anew after every exercise.

Runs as root, with the secret; students' programs run in workers as another user, and never see this folder.
"""

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from llminfer.grading import judge
from llminfer.grading.archives import Member, members
from llminfer.grading.atomic_files import write_atomically
from llminfer.grading.course import Course, Homework
from llminfer.grading.course_file import load_course
from llminfer.grading.gradescope_results import results_json, scored
from llminfer.grading.intake import lay_out
from llminfer.grading.isolation import Isolation, strongest, tried
from llminfer.grading.overlay import overlay
from llminfer.grading.results import ExerciseResult, Status
from llminfer.grading.seeds import team
from llminfer.grading.spec import Exercise

JUDGE_MB = 200
"""Of the container's memory: for the judge, the shell, and a worker with NumPy before it runs anything."""
TORCH_MB = 400
"""What a worker with torch and Triton holds more, before it runs anything."""
LAST_WORDS_S = 15


def run(root: Path, trial: bool) -> None:
    """Judge `root`/submission into `root`/results/results.json. trial: on a teacher's machine, at any isolation."""
    began = monotonic()
    course = load_course(root / "source")
    homework = course.find(None)
    out = root / "results" / "results.json"
    lines: list[str] = []
    results: dict[str, ExerciseResult] = {}

    def write() -> None:
        text = json.dumps(results_json(homework, results, lines, monotonic() - began))
        write_atomically(out, text, mode=0o600)

    lines.append(
        "This homework was not judged to its end. This is not your fault: tell your teacher, who can run it again."
    )
    write()
    isolation = _isolation(trial)
    with tempfile.TemporaryDirectory() as folder:
        ids, files = _submission(course, homework, root, Path(folder), lines)
        for exercise in scored(homework):
            if monotonic() - began > 60 * homework.gradescope.minutes - LAST_WORDS_S - 2 * exercise.limits.seconds:
                return write()
            limits = replace(
                exercise.limits, memory_mib=min(exercise.limits.memory_mib, memory_mib(homework, exercise))
            )
            asked = replace(exercise, limits=limits)
            file = files.get(exercise.id)
            found = judge.grade(asked, file, student=team(ids), secret=course.secret, isolation=isolation)
            results[exercise.id] = found
            write()
    failed = [name for name, each in results.items() if each.status is Status.GRADER_ERROR]
    lines[0] = "Hidden groups are judged too; when you see their points is up to your teacher."
    if failed:
        lines[0] = f"The grader itself failed at {', '.join(failed)}: tell your teacher, who can run it again."
    lines.append(isolation.sentence)
    write()


def memory_mib(homework: Homework, exercise: Exercise) -> int:
    """What a student's program may use, of the container's megabytes."""
    taken = JUDGE_MB + (TORCH_MB if exercise.kind == "kernel" else 0)
    return int((homework.gradescope.memory_mb - taken) * 1e6 / (1 << 20))


def _isolation(trial: bool) -> Isolation:
    """The best that the container offers, but not without another user for the students' programs.

    On trial the level that every container has, which this machine may surpass.
    """
    found = (tried("gradescope") if trial else None) or strongest()
    if not trial and not (found.files_hidden and found.not_root):
        raise RuntimeError(f"students' programs cannot be held here: {found.sentence}")
    return found


def _submission(
    course: Course, homework: Homework, root: Path, into: Path, lines: list[str]
) -> tuple[tuple[str, ...], dict[str, Path]]:
    """Who handed in, as the class list knows them, and their files."""
    ids = _members(course, _metadata(root / "submission_metadata.json"))
    found = []
    for each in members(root / "submission"):
        if isinstance(each, Member):
            found.append(each)
        else:
            lines.append(str(each))
    files = lay_out(found, homework, ids, into, lambda name, text: lines.append(f"{name}: {text}"))
    absent = [exercise.file_name for exercise in homework.exercises if exercise.id not in files]
    if absent:
        lines.append(f"Not in your submission: {', '.join(absent)}")
    return ids, files


def _metadata(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def _members(course: Course, metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The ids that the seeds depend on: the class list's, so that a class run draws the same; else the addresses."""
    emails = [str(user.get("email", "")) for user in metadata.get("users", []) if isinstance(user, dict)]
    found: set[str] = set()
    for email in filter(None, emails):
        student = course.roster.find(email) if course.roster else None
        found.update(course.roster.members(student.id) if student else (email,))
    return tuple(sorted(found))


def prepare(source: Path) -> None:
    """Make the overlays while the image is built, not while a student waits."""
    for exercise in load_course(source).find(None).exercises:
        overlay(exercise.stubs)


if __name__ == "__main__":
    top = Path(os.environ.get("AUTOGRADER_ROOT", "/autograder"))
    if "--prepare" in sys.argv:
        prepare(Path.cwd())
    else:
        run(top, trial="--trial" in sys.argv)
