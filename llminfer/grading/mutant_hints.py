"""Hints by likeness: a student whose program does what a known mistake does is told what its author wrote for that."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from llminfer.grading.behaviours import Behaviour, behaviour_of
from llminfer.grading.bounded_calls import STEPS
from llminfer.grading.results import Status
from llminfer.grading.sittings import Answer
from llminfer.grading.spec import Exercise, Mutant
from llminfer.grading.verdicts import same_behaviour


def matching_hint(exercise: Exercise, answers: Sequence[Answer], shown: Answer) -> str:
    """The hint of the first mutant that does the same on all `answers`; empty if there is none.

    A second mistake in the same program hides the first. So a mutant counts next that does the same wherever the group
    of the shown answer went wrong.
    """
    wrong = [answer for answer in answers if answer.mismatch and answer.question.group == shown.question.group]
    others = [answer for answer in answers if answer not in wrong]
    alike = [mutant for mutant in exercise.judge_side.mutants if mutant.hint and _alike(exercise, mutant, wrong)]
    for mutant in alike:
        if _alike(exercise, mutant, others):
            return mutant.hint
    return alike[0].hint if alike else ""


def _alike(exercise: Exercise, mutant: Mutant, answers: Sequence[Answer]) -> bool:
    """Whether the mutant does the same on each, as far as the first where it does not."""
    program = mutant.like or _program(exercise, mutant)
    if program is None:
        return False
    is_law = mutant.like is not None
    return all(
        same_behaviour(exercise, answer.question.case, answer.behaviour, _does(exercise, program, answer), is_law)
        for answer in answers
    )


def _does(exercise: Exercise, program: Callable[..., Any], answer: Answer) -> Behaviour:
    found = behaviour_of(exercise, program, answer.question.case, STEPS)
    if exercise.kind != "number" or found.status is not Status.OK:
        return found
    group = answer.question.group.name
    return Behaviour(value=found.value[group]) if group in found.value else Behaviour(Status.MISSING)


@cache
def _program(exercise: Exercise, mutant: Mutant) -> Callable[..., Any] | None:
    """The mutated solution's entry. None for kernels, which need torch: the judge has none, and asks for `like`."""
    if exercise.kind == "kernel":
        return None
    source = mutant.applied_to(exercise.solution.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": f"mutant of {exercise.name}"}
    exec(compile(source, f"{exercise.name} ({mutant.name})", "exec"), names)
    entry = names[exercise.entry]
    return (lambda drawn: entry()) if exercise.kind == "number" else entry
