"""The questions of a group: its cases and what the reference does with them, worked out before the student is asked."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from llminfer.core.tolerances import is_floating
from llminfer.grading.behaviours import Behaviour, behaviour_of
from llminfer.grading.results import Status
from llminfer.grading.seeds import draw_rng, hidden_rng, visible_rng
from llminfer.grading.spec import Case, Exercise, Group

REFUSALS = ("ValueError", "TypeError")
"""What a reference may raise where the task asks for that. Anything else is a mistake of ours."""


@dataclass(frozen=True, eq=False)
class Question:
    """number: place in its group, from 1. wide: what the reference gives in float64. seconds: what it took.

    drawn_for: in words, whose numbers an exercise of kind "number" is about.
    """

    group: Group
    number: int
    case: Case
    expected: Behaviour
    wide: Any = None
    seconds: float = 0.0
    drawn_for: str = ""


def questions(
    exercise: Exercise, group: Group, student: str = "", secret: bytes | None = None, seed: int = 0
) -> tuple[Question, ...]:
    """All questions of a group, a hidden one's under the secret. Raises RuntimeError if the reference fails."""
    if exercise.kind == "number":
        return (_number_question(exercise, group, student),)
    if group.visible:
        rng = visible_rng(exercise, group.name, seed)
    else:
        rng = hidden_rng(secret, student, exercise, group.name)
    cases = exercise.judge_side.cases(group.name, rng)
    asked = tuple(question(exercise, group, number, case) for number, case in enumerate(cases, start=1))
    if not asked:
        raise RuntimeError(f"{exercise.id}: the group {group.name!r} has no cases")
    return asked


def question(exercise: Exercise, group: Group, number: int, case: Case, steps: int | None = None) -> Question:
    """One question. Raises RuntimeError if the reference does something that no task asks for."""
    began = perf_counter()
    expected = behaviour_of(exercise, exercise.judge_side.reference, case, steps)
    seconds = perf_counter() - began
    refused = expected.status is Status.EXCEPTION and expected.raised in REFUSALS
    if expected.changed or (expected.status is not Status.OK and not refused):
        what = expected.raised or ("changed its input" if expected.changed else expected.status)
        raise RuntimeError(f"{exercise.id}, group {group.name!r}, case {number}: the reference ends with {what}")
    return Question(group, number, case, expected, _widened(exercise, case, expected, steps), seconds)


def drawn_numbers(exercise: Exercise, student: str) -> dict[str, Any]:
    """The numbers that a student works with in an exercise of kind "number"."""
    draw = exercise.judge_side.draw
    return dict(draw(draw_rng(student, exercise))) if draw else {}


def _number_question(exercise: Exercise, group: Group, student: str) -> Question:
    """answer() is called without arguments; what it was to be given is kept in the case."""
    drawn = drawn_numbers(exercise, student)
    answers = exercise.judge_side.reference(drawn)
    whose = f"with the numbers of student {student}" if student else "with nobody's numbers: give --student YOUR-ID"
    return Question(group, 1, Case(drawn, label=group.name), Behaviour(value=answers[group.name]), drawn_for=whose)


def _widened(exercise: Exercise, case: Case, expected: Behaviour, steps: int | None) -> Any:
    """The reference's value on the same arguments in float64: how far that is away is its own rounding error."""
    side = exercise.judge_side
    narrow = [value for value in _arrays(case.arguments) if is_floating(value.dtype) and value.dtype != np.float64]
    if not narrow or side.accept or side.tolerance.relative == 0 or exercise.kind == "class":
        return None
    wide = behaviour_of(exercise, side.reference, replace(case, arguments=_in_float64(case.arguments)), steps)
    return wide.value if wide.status is Status.OK else None


def _arrays(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict | list | tuple):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _arrays(entry)


def _in_float64(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.astype(np.float64) if is_floating(value.dtype) else value
    if isinstance(value, dict):
        return {key: _in_float64(entry) for key, entry in value.items()}
    return type(value)(map(_in_float64, value)) if isinstance(value, list | tuple) else value
