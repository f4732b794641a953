"""Right or wrong: a behaviour held against the reference's; and whether two programs make the same mistake."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llminfer.grading.behaviours import Behaviour
from llminfer.grading.comparison import Mismatch, compare, described
from llminfer.grading.literals import TooLongError, literal
from llminfer.grading.questions import Question
from llminfer.grading.results import Status
from llminfer.grading.spec import Call, Case, Exercise, Tolerance

ENDINGS = {
    Status.NOT_DONE: "this part still raises NotImplementedError",
    Status.TIMEOUT: "it did not come to an end",
    Status.MEMORY: "it asked for more memory than there is",
    Status.KILLED: "the process was killed",
    Status.EXIT: "the process ended itself",
    Status.BAD_REPLY: "what came back cannot be compared",
    Status.OUTPUT_LIMIT: "it printed or returned too much",
    Status.FORBIDDEN_IMPORT: "the answer was looked for in the library; it is to be yours",
    Status.MISSING: "this answer is missing",
}


def verdict(exercise: Exercise, asked: Question, found: Behaviour) -> Mismatch | None:
    """None if the behaviour is right, else what is wrong with it."""
    expected = asked.expected
    if found.status is Status.EXCEPTION or expected.status is Status.EXCEPTION:
        return _raising(found, expected)
    if found.status is not Status.OK:
        return Mismatch(found.status, ENDINGS.get(found.status, str(found.status)), found.value, expected.value)
    if found.overran:
        words = f"it wrote outside of {found.overran[0]}: look at the mask of each store"
        return Mismatch(Status.WRONG, words, found.value, expected.value)
    if exercise.judge_side.accept:
        differing = _accepted(exercise, asked.case, found.value, expected.value)
    elif exercise.kind == "class":
        differing = _record_mismatch(asked.case.calls, found.value, expected.value, exercise.judge_side.tolerance)
    else:
        differing = compare(found.value, expected.value, exercise.judge_side.tolerance, asked.wide)
    if differing is None and found.changed:
        words = f"the answer is right, but the caller's {found.changed[0]} was changed"
        return Mismatch(Status.MUTATED_INPUT, words, found.value, expected.value)
    return differing


def same_behaviour(exercise: Exercise, case: Case, found: Behaviour, other: Behaviour, is_law: bool = False) -> bool:
    """Whether two programs do the same with a case. is_law: `other` holds what samples follow, not samples."""
    if found.status is not other.status or found.raised != other.raised:
        return False
    if found.status is not Status.OK:
        return True
    if found.changed != other.changed or found.overran != other.overran:
        return False
    if exercise.judge_side.accept and is_law:
        return _accepted(exercise, case, found.value, other.value) is None
    return compare(found.value, other.value, exercise.judge_side.tolerance) is None


def call_text(call: Call) -> str:
    """A call as it is written in Python, cut where its arguments are large."""
    try:
        given = ", ".join(f"{name}={literal(value)}" for name, value in call.arguments.items())
    except TooLongError:
        given = "..."
    return f"{call.method}({given if len(given) < 100 else '...'})"


def _raising(found: Behaviour, expected: Behaviour) -> Mismatch | None:
    if found.status is expected.status and found.raised == expected.raised:
        return None
    if expected.status is Status.EXCEPTION:
        instead = f"it raises {found.raised}" if found.raised else "nothing is raised"
        status = found.status if found.status is not Status.OK else Status.WRONG
        return Mismatch(status, f"{expected.raised} is expected here, and {instead}", found.value, None)
    return Mismatch(Status.EXCEPTION, f"it raises {found.raised}", None, expected.value)


def _accepted(exercise: Exercise, case: Case, got: Any, expected: Any) -> Mismatch | None:
    """What the exercise's own rule says. It was written for answers of the right kind, and may stumble over others."""
    try:
        complaint = exercise.judge_side.accept(case, got, expected)
    except Exception as problem:
        complaint = f"{described(got)} cannot be judged ({type(problem).__name__})"
    return None if complaint is None else Mismatch(Status.WRONG, complaint, got, expected)


def _record_mismatch(calls: Sequence[Call], got: list, expected: list, tolerance: Tolerance) -> Mismatch | None:
    """The first call of an object's life that does something else."""
    for number, (call, did, should) in enumerate(zip(calls, got, expected, strict=True), start=1):
        where = f"call {number}, {call_text(call)}"
        if did[0] == should[0] == "returned":
            differing = compare(did[1], should[1], tolerance)
        else:
            differing = None if did == should else _raised_mismatch(did, should)
        if differing:
            return replace(differing, where=f"{where}{', ' if differing.where else ''}{differing.where}")
    return None


def _raised_mismatch(did: tuple[str, Any], should: tuple[str, Any]) -> Mismatch:
    instead = f"it raises {did[1]}" if did[0] == "raised" else "it returns something"
    if should[0] == "returned":
        return Mismatch(Status.EXCEPTION, instead, _step(did), _step(should))
    return Mismatch(Status.WRONG, f"it is to raise {should[1]}, and {instead}", _step(did), _step(should))


def _step(step: tuple[str, Any]) -> Any:
    return step[1] if step[0] == "returned" else f"raises {step[1]}"
