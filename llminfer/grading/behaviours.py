"""What a program does with a case, in one form for a student's reply, for the reference and for a mutant.

Programs of ours run here, in the judge. A student's has run elsewhere, and only its reply is read.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from llminfer.grading.bounded_calls import TooManyStepsError, bounded
from llminfer.grading.guarded_buffers import Guarded
from llminfer.grading.results import Status
from llminfer.grading.sessions import Reply
from llminfer.grading.spec import Case, Exercise
from llminfer.grading.wire import encode


@dataclass(frozen=True)
class Behaviour:
    """status OK: `value` came back, for a class ("returned", value) or ("raised", name) for each call, for a kernel
    what its outputs hold, by name. raised: the exception's type. changed: arguments that were written into.
    overran: buffers of a kernel that were written outside.
    """

    status: Status = Status.OK
    value: Any = None
    raised: str = ""
    changed: tuple[str, ...] = ()
    overran: tuple[str, ...] = ()


def behaviour_of(exercise: Exercise, program: Callable[..., Any], case: Case, steps: int | None = None) -> Behaviour:
    """Run a program of ours on a copy of the case; after `steps` instructions it counts as one that does not end.

    For kind "number" it takes the drawn numbers as one argument; for "kernel" it returns its outputs by name.
    """
    arguments = copy.deepcopy(dict(case.arguments))
    try:
        with np.errstate(all="ignore"):
            if exercise.kind == "number":
                value = bounded(steps, program, arguments)
            elif exercise.kind == "class":
                value = bounded(steps, _driven, program, arguments, case)
            else:
                value = bounded(steps, program, **arguments)
    except NotImplementedError:
        return Behaviour(Status.NOT_DONE)
    except TooManyStepsError:
        return Behaviour(Status.TIMEOUT)
    except Exception as problem:
        return Behaviour(Status.EXCEPTION, raised=type(problem).__name__)
    return Behaviour(value=value, changed=_changed(case.arguments, arguments, exercise.judge_side.outputs))


def behaviour_in(exercise: Exercise, group: str, sent: Case, reply: Reply) -> Behaviour:
    """What a worker's reply says that the student's program did with the case that was sent."""
    if reply.status is not Status.OK:
        raised = reply.error.split(":")[0] if reply.status is Status.EXCEPTION else ""
        return Behaviour(reply.status, raised=raised)
    if exercise.kind == "kernel":
        written = reply.value if isinstance(reply.value, dict) else {}
        return _kernel_behaviour(exercise.judge_side.outputs, sent.arguments, (reply.arguments_after or {}) | written)
    if exercise.kind == "number":
        if not isinstance(reply.value, dict) or group not in reply.value:
            return Behaviour(Status.MISSING, reply.value)
        return Behaviour(value=reply.value[group])
    if exercise.kind == "class" and not _is_record(reply.value, len(sent.calls)):
        return Behaviour(Status.BAD_REPLY)
    return Behaviour(value=reply.value, changed=_changed(sent.arguments, reply.arguments_after or {}))


def guarded(case: Case, outputs: tuple[str, ...], rng: np.random.Generator) -> Case:
    """The case for a kernel: every array between borders that only the judge knows, outputs filled with NaN."""
    arguments = {}
    for name, value in case.arguments.items():
        if isinstance(value, np.ndarray):
            value = Guarded.around(_poisoned(value) if name in outputs else value, rng)
        arguments[name] = value
    return Case(arguments, case.calls, case.label)


def _driven(program: Callable[..., Any], arguments: dict[str, Any], case: Case) -> list[tuple[str, Any]]:
    made, steps = program(**arguments), []
    for call in copy.deepcopy(case.calls):
        try:
            returned = getattr(made, call.method)(**call.arguments)
        except NotImplementedError:
            raise
        except Exception as problem:
            steps.append(("raised", type(problem).__name__))
        else:
            kept = copy.deepcopy(returned)  # it may be the object's own list, which later calls change
            steps.append(("returned", kept))
    return steps


def _changed(before: Mapping[str, Any], after: Mapping[str, Any], outputs: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Arguments that no longer hold the same bits; one that cannot be written any more has changed too."""
    names = [name for name in before if name not in outputs]
    return tuple(name for name in names if name not in after or _bits(before[name]) != _bits(after[name]))


def _bits(value: Any) -> bytes | None:
    try:
        return encode(value)
    except (TypeError, ValueError):
        return None


def _kernel_behaviour(outputs: tuple[str, ...], sent: Mapping[str, Any], after: Mapping[str, Any]) -> Behaviour:
    buffers = {name: value for name, value in sent.items() if isinstance(value, Guarded)}
    if not all(isinstance(after.get(name), Guarded) for name in buffers):
        return Behaviour(Status.BAD_REPLY)
    overran = tuple(name for name, buffer in buffers.items() if not buffer.same_borders(after[name]))
    changed = tuple(
        name
        for name, buffer in buffers.items()
        if name not in outputs and buffer.array.tobytes() != after[name].array.tobytes()
    )
    return Behaviour(value={name: after[name].array for name in outputs}, changed=changed, overran=overran)


def _is_record(value: Any, calls: int) -> bool:
    """Whether this is one ("returned", ...) or ("raised", ...) for each call."""
    return (
        isinstance(value, list)
        and len(value) == calls
        and all(isinstance(step, tuple) and len(step) == 2 and step[0] in ("returned", "raised") for step in value)
    )


def _poisoned(array: np.ndarray) -> np.ndarray:
    """An output before the kernel: NaN, or for integers the least there is, so that what was not written shows."""
    if array.dtype.kind in "iu":
        return np.full(array.shape, np.iinfo(array.dtype).min, array.dtype)
    return np.full(array.shape, np.nan, array.dtype) if array.dtype.kind != "b" else np.zeros_like(array)
