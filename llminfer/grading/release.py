"""What students get: starters and a reduced `course.toml`, with a proof that nothing else went along."""

import io
import re
import tempfile
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from llminfer.grading import judge
from llminfer.grading.archive_writing import zipped
from llminfer.grading.archives import Member, RefusedError, members
from llminfer.grading.atomic_files import write_atomically
from llminfer.grading.course import Course, Homework
from llminfer.grading.handouts import handed_out
from llminfer.grading.isolation import strongest
from llminfer.grading.results import Status
from llminfer.grading.spec import Exercise

GRAM = 12
"""So many tokens in a row, found in a solution and not in its starter, are no accident."""
MAX_BYTES = 4 << 20


@dataclass(frozen=True)
class Check:
    """One statement about a hand-out, and whether it holds."""

    statement: str
    holds: bool
    detail: str = ""


def release(course: Course, homework: Homework, out: Path) -> tuple[Path, list[Check]]:
    """Write `out`/NAME.zip if every check of it holds; returns where, and the checks."""
    path = out / f"{homework.name}.zip"
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / path.name
        made.write_bytes(zipped(handed_out(course, homework)))
        checks = check(course, homework, made)
        if all(each.holds for each in checks):
            write_atomically(path, made.read_bytes())
    return path, checks


def check(course: Course, homework: Homework, path: Path) -> list[Check]:
    """Prove a hand-out, a zip or a folder: nothing in it that should not be, starters worth 0, solutions worth all."""
    found = {each.name: each.read(MAX_BYTES) for each in members(path) if isinstance(each, Member)}
    refused = [str(each) for each in members(path) if isinstance(each, RefusedError)]
    allowed = {name.rsplit("/", 1)[1] for name in handed_out(course, homework)}
    strange = sorted(found.keys() - allowed)
    absent = sorted(allowed - found.keys())
    secret = course.secret
    leaks = [name for name, raw in found.items() if secret in raw]
    return [
        Check(
            "holds starters, README and course.toml, and nothing else",
            not strange and not refused,
            ", ".join(strange + refused),
        ),
        Check("lacks none of them", not absent, ", ".join(absent)),
        Check("does not hold the class secret", not leaks, ", ".join(leaks)),
        *_copied(homework, found),
        *_judged(homework, found, secret),
    ]


def _copied(homework: Homework, found: Mapping[str, bytes]) -> Iterator[Check]:
    """No run of tokens of a solution, or of a judge's side, that its starter does not have."""
    for exercise in homework.exercises:
        own = grams(exercise.starter.read_text(encoding="utf-8"))
        beside = (exercise.solution, exercise.solution.with_name(f"{exercise.name}_judge.py"))
        kept = set().union(*(grams(path.read_text(encoding="utf-8")) for path in beside if path.is_file())) - own
        where = sorted(name for name, raw in found.items() if grams(raw.decode("utf-8", "replace")) & kept)
        yield Check(f"{exercise.id}: no {GRAM} tokens in a row of its solution", not where, ", ".join(where))


def grams(text: str) -> set[tuple[str, ...]]:
    """Every run of GRAM tokens; of words where the text is not Python."""
    try:
        kinds = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        read = [each.string for each in tokenize.generate_tokens(io.StringIO(text).readline) if each.type not in kinds]
    except (tokenize.TokenError, SyntaxError):
        read = re.findall(r"\w+", text)
    return {tuple(read[start : start + GRAM]) for start in range(len(read) - GRAM + 1)}


def _judged(homework: Homework, found: Mapping[str, bytes], secret: bytes) -> Iterator[Check]:
    with tempfile.TemporaryDirectory() as folder:
        for exercise in homework.exercises:
            handed = Path(folder) / exercise.file_name
            handed.write_bytes(found.get(exercise.file_name, b""))
            yield _worthless(exercise, handed, secret)
            if exercise.kind != "short-answer":
                result = judge.grade(exercise, exercise.solution, student="proof", secret=secret, isolation=strongest())
                full = result.points == result.max_points
                yield Check(
                    f"{exercise.id}: the solution earns everything", full, f"{result.points:g} of {result.max_points:g}"
                )


def _worthless(exercise: Exercise, handed: Path, secret: bytes) -> Check:
    result = judge.grade(exercise, handed, student="proof", secret=secret, isolation=strongest())
    runs = result.status not in (Status.IMPORT_ERROR, Status.MISSING, Status.GRADER_ERROR, Status.FORBIDDEN_IMPORT)
    detail = f"{result.points:g} of {result.max_points:g}, {result.status.value}"
    return Check(f"{exercise.id}: what is handed out runs and earns nothing", runs and result.points == 0, detail)
