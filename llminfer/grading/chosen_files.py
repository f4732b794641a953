"""Which of a student's files is meant as which exercise: browsers, platforms and people rename them."""

import re
from collections.abc import Callable
from pathlib import Path

from llminfer.grading.archives import Member
from llminfer.grading.spec import Exercise, all_exercises

COPY = re.compile(r"(?:[ _-]*\((\d+)\)|-(\d+)| *- *copy|[ _-]copy)+$", re.IGNORECASE)

Say = Callable[[str, str], None]
"""(the file, what is to be said about it) -> nothing."""


def chosen_file(
    exercise: Exercise, found: list[Member], every: set[str] | None = None, say: Say = lambda *_: None
) -> Member | None:
    """The file that is meant: the exact name before a changed one, the last of several copies, the least nested.

    every: the names of all exercises, so that `online_softmax.py` is not taken for a renamed `softmax.py`.
    """
    every = every or {exercise.name for exercise in all_exercises()}
    ranked = sorted(
        ((rank, len(member.path), member.path, member) for member in found if (rank := _rank(exercise, member, every))),
        key=lambda each: each[:3],
    )
    if not ranked:
        return None
    chosen = ranked[0][3]
    if chosen.name != exercise.file_name:
        say(chosen.shown, f"taken as {exercise.file_name}")
    for *_, other in ranked[1:]:
        say(other.shown, f"not graded: {chosen.shown} was taken as {exercise.file_name}")
    return chosen


def _rank(exercise: Exercise, member: Member, every: set[str]) -> tuple[int, int] | None:
    """How far a file's name is from the exercise's; None if it means something else."""
    if member.name == exercise.file_name:
        return 0, 0
    ending = Path(exercise.file_name).suffix
    name = member.name.lower().removesuffix(".txt")  # some systems hide and add it
    if not name.endswith(ending):
        return None
    stem = name.removesuffix(ending)
    copy = COPY.search(stem)
    number = max((int(digits) for digits in re.findall(r"\d{1,6}", copy[0])), default=0) if copy else 0
    stem = re.sub(r"[ -]+", "_", stem[: copy.start()] if copy else stem)
    meant = max((each for each in every if stem == each or stem.endswith(f"_{each}")), key=len, default=None)
    if meant != exercise.name:  # online_softmax.py is not softmax.py with a name before it
        return None
    return (1 if stem == meant else 2), -number
