"""A failure as a student reads it: the smallest case that fails, what came and what should have, and why it may be."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from llminfer.grading.bounded_calls import STEPS
from llminfer.grading.causes import BY_STATUS, STATE, likely_cause
from llminfer.grading.comparison import Mismatch, plain_scalar
from llminfer.grading.literals import TooLongError, literal
from llminfer.grading.mismatch_maps import mismatch_map, pattern
from llminfer.grading.mutant_hints import matching_hint
from llminfer.grading.named_axes import named_axes
from llminfer.grading.questions import Question, question
from llminfer.grading.reproductions import in_turn, reproduction
from llminfer.grading.results import Failure, Status
from llminfer.grading.sessions import Reply
from llminfer.grading.shrinking import TRIES, shrink
from llminfer.grading.sittings import Answer, Sitting
from llminfer.grading.spec import Case, Exercise
from llminfer.grading.verdicts import ENDINGS

SHRUNK = (Status.WRONG, Status.SHAPE, Status.DTYPE, Status.NONFINITE, Status.MUTATED_INPUT, Status.EXCEPTION)
"""How a case must have ended to be made smaller. The others cost a worker each time."""
KERNEL_TRIES = 30
"""The interpreter takes a hundred times as long as NumPy."""


def not_loaded(exercise: Exercise, reply: Reply) -> Failure:
    """The failure of a submission that never came to answer."""
    if reply.status is Status.NOT_DONE:
        return Failure("", reply.status, f"not begun yet: {exercise.file_name} waits for you", section=exercise.section)
    begin = f"{exercise.file_name} cannot be imported" if reply.status is Status.IMPORT_ERROR else ""
    return Failure(
        group="",
        status=reply.status,
        message=": ".join(part for part in (begin, reply.error) if part) or ENDINGS.get(reply.status, ""),
        cause=BY_STATUS.get(reply.status, ""),
        section=exercise.section,
        limit=reply.limit,
        traceback=reply.traceback,
        printed=reply.printed,
    )


def failure(exercise: Exercise, answers: Sequence[Answer], shown: Answer, sitting: Sitting, seed: int = 0) -> Failure:
    """The failure behind `shown`, one of the visible `answers`; `sitting` is asked smaller cases."""
    hint = matching_hint(exercise, answers, shown)
    smallest = _smallest(exercise, shown, sitting)
    stateful = not hint and _depends_on_what_was_before(exercise, smallest, sitting)
    if stateful:
        smallest, hint = shown, STATE
    mismatch, reply, asked = smallest.mismatch, smallest.reply, smallest.question
    values_right = mismatch.status is Status.MUTATED_INPUT or bool(smallest.behaviour.overran)
    number = asked.drawn_for if exercise.kind == "number" else f"case {asked.number}"
    told = Failure(
        group=asked.group.name,
        status=mismatch.status,
        message=": ".join(part for part in (_place(exercise, mismatch), mismatch.message) if part),
        label=number if exercise.kind == "number" or not asked.case.label else f"{number}: {asked.case.label}",
        reproduction=_lines(exercise, answers, asked, stateful, seed),
        got="" if smallest.behaviour.status is not Status.OK or values_right else _shown(mismatch.got),
        cause=hint,
        section=exercise.section,
        shrunk=smallest is not shown,
        limit=reply.limit,
        traceback=reply.traceback if mismatch.status is Status.EXCEPTION else "",
        printed=reply.printed,
    )
    if mismatch.status is Status.BAD_REPLY and reply.error:
        told = replace(told, message=f"{told.message}: {reply.error}")
    if mismatch.status is Status.EXCEPTION and reply.error:
        told = replace(told, message=f"{mismatch.where}: {reply.error}" if mismatch.where else reply.error)
    if exercise.kind == "number":
        return told  # where the number itself is asked for, what is expected stays unsaid
    if not hint:
        told = replace(told, cause=_cause(shown) or _cause(smallest))  # a small case shows less of a relation
    return told if values_right else _with_values(told, mismatch)


def _place(exercise: Exercise, mismatch: Mismatch) -> str:
    """Where in the answer; an output of a kernel by its name."""
    if exercise.kind == "kernel" and mismatch.where:
        return next(name for name in exercise.judge_side.outputs if mismatch.where.startswith(f"[{name!r}]"))
    return mismatch.where


def _smallest(exercise: Exercise, shown: Answer, sitting: Sitting) -> Answer:
    """The answer to the smallest case found that fails in the same way; `shown` itself if there is none."""
    if exercise.kind == "number" or shown.mismatch.status not in SHRUNK or not sitting.alive:
        return shown
    smallest = shown

    def fails(case: Case) -> bool | None:
        nonlocal smallest
        if not sitting.alive:
            return False
        try:
            asked = question(exercise, shown.question.group, shown.question.number, case, STEPS)
        except Exception:  # the reference does not take this case, so it is none
            return None
        if asked.expected.status is not shown.question.expected.status or not _as_finite(asked, shown):
            return None
        found = sitting.ask(asked)
        if not _same_failure(found, shown):
            return False
        smallest = found
        return True

    axes = named_axes(exercise.starter, exercise.entry)
    shrink(shown.question.case, fails, axes, KERNEL_TRIES if exercise.kind == "kernel" else TRIES)
    return smallest


def _cause(answer: Answer) -> str:
    return likely_cause(answer.mismatch, answer.question.case.arguments, answer.behaviour.raised)


def _depends_on_what_was_before(exercise: Exercise, smallest: Answer, sitting: Sitting) -> bool:
    """Whether a fresh worker answers rightly, as a prompt will into which a student pastes the case."""
    if exercise.kind == "kernel" or smallest.mismatch.status not in SHRUNK:
        return False
    return sitting.load().status is Status.OK and sitting.ask(smallest.question).mismatch is None


def _lines(exercise: Exercise, answers: Sequence[Answer], asked: Question, stateful: bool, seed: int) -> str:
    if stateful and exercise.kind == "function":
        return in_turn(
            exercise, asked, max(a.question.number for a in answers if a.question.group == asked.group), seed
        )
    return reproduction(exercise, asked, seed)


def _as_finite(asked: Question, shown: Answer) -> bool:
    """A case that makes the reference itself give NaN is another case, unless the first one did too."""
    return not _has_nan(asked.expected.value) or _has_nan(shown.question.expected.value)


def _has_nan(value: Any) -> bool:
    if isinstance(value, Mapping | list | tuple):
        return any(map(_has_nan, value.values() if isinstance(value, Mapping) else value))
    value = plain_scalar(value)
    return bool(np.isnan(value.astype(np.float64)).any()) if isinstance(value, np.ndarray) else value != value


def _same_failure(found: Answer, shown: Answer) -> bool:
    if found.mismatch is None or found.mismatch.status is not shown.mismatch.status:
        return False
    steps = (_method(found.mismatch.where) == _method(shown.mismatch.where)) if found.question.case.calls else True
    return steps and found.behaviour.raised == shown.behaviour.raised


def _method(where: str) -> str:
    """Of "call 3, free(block=0)": free."""
    return where.partition(", ")[2].partition("(")[0]


def _with_values(told: Failure, mismatch: Mismatch) -> Failure:
    """Expected against got, whole where they are small, and at the worst index."""
    got, expected = mismatch.got, mismatch.expected
    told = replace(told, expected=_shown(expected))
    if mismatch.error is not None:
        finite = [value if np.isfinite(value) else None for value in (mismatch.error, mismatch.allowed)]
        told = replace(told, error=finite[0], allowed=finite[1])
    if mismatch.worst_index is None or mismatch.wrong is None:
        return told
    told = replace(
        told,
        worst_index=mismatch.worst_index,
        expected_at=f"{expected[mismatch.worst_index]:.8g}",
        got_at=f"{got[mismatch.worst_index]:.8g}",
    )
    if 1 < mismatch.wrong.size and not mismatch.wrong.all():
        lost = ~np.isfinite(got.astype(np.float64)) & np.isfinite(expected.astype(np.float64))
        words = pattern(mismatch.wrong)
        told = replace(
            told,
            mismatch_map=mismatch_map(mismatch.wrong, lost),
            message=f"{told.message}, {words}" if words else told.message,
        )
    return told


def _shown(value: Any) -> str:
    """A value for the eye: arrays in rows with their dtype and shape, the middle of large ones left out."""
    if isinstance(value, np.ndarray):
        with np.printoptions(precision=5, suppress=_moderate(value), threshold=80, edgeitems=3, linewidth=72):
            return f"{value}\n{value.dtype}, shape {value.shape}"
    if isinstance(value, Mapping) and any(isinstance(entry, np.ndarray) for entry in value.values()):
        return "\n".join(f"{key}: {_shown(entry)}" for key, entry in value.items())
    try:
        text = literal(value)
    except TooLongError:
        text = repr(value)
    return text if len(text) <= 600 else f"{text[:400]} ... {text[-150:]}"


def _moderate(value: np.ndarray) -> bool:
    """Whether digits behind the point read better than exponents."""
    with np.errstate(all="ignore"):
        size = np.abs(value.astype(np.float64))
    size = size[np.isfinite(size) & (size > 0)]
    return bool(size.size == 0 or (size.max() < 1e5 and size.min() > 1e-3))
