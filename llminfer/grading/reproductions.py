"""The lines that show a failure again, at a Python prompt beside the student's file."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from llminfer.grading.literals import TooLongError, imports, literal
from llminfer.grading.questions import Question
from llminfer.grading.spec import Exercise

WIDTH = 100
"""A call longer than this is written with an argument a line."""
INTERPRETED = 'os.environ.setdefault("TRITON_INTERPRET", "01"[not torch.cuda.is_available()])'


def reproduction(exercise: Exercise, asked: Question, seed: int = 0) -> str:
    """Source that asks the student's program the question. A case too large to be written is named instead."""
    first = f"from {exercise.name} import {exercise.entry}"
    if exercise.kind == "number":
        return f"{first}\nanswer()[{asked.group.name!r}]"
    try:
        body = _written(exercise, asked)
    except TooLongError:
        body = _named(exercise, asked, seed)
    needed = imports(body)
    if exercise.kind == "kernel":  # read when a kernel is decorated, so before the student's file
        needed = "\n".join([needed.replace("import torch", "import os, torch"), INTERPRETED])
    return "\n".join(line for line in (needed, first, body) if line)


def in_turn(exercise: Exercise, asked: Question, cases: int, seed: int = 0) -> str:
    """Source for a program that keeps state: all cases of the group one after another, and the first once more."""
    seeded = f", seed={seed}" if seed else ""
    return "\n".join(
        [
            f"from {exercise.name} import {exercise.entry}",
            "from llminfer.grading.judge import visible_case",
            f"for number in [*range(1, {cases + 1}), 1]:",
            f"    case = visible_case({exercise.id!r}, {asked.group.name!r}, number{seeded})",
            f"    print({exercise.entry}(**case.arguments))",
            "",
        ]
    )


def _written(exercise: Exercise, asked: Question) -> str:
    if exercise.kind == "kernel":
        return _kernel_lines(exercise, asked.case.arguments)
    if exercise.kind != "class":
        return _call(exercise.entry, asked.case.arguments)
    made = _call(f"it = {exercise.entry}", asked.case.arguments)
    return "\n".join([made, *(f"it.{_call(call.method, call.arguments)}" for call in asked.case.calls)])


def _named(exercise: Exercise, asked: Question, seed: int) -> str:
    """The same case, drawn again from its public seed."""
    named = f"visible_case({exercise.id!r}, {asked.group.name!r}, {asked.number}{f', seed={seed}' if seed else ''})"
    lines = ["from llminfer.grading.judge import visible_case", f"case = {named}"]
    if exercise.kind == "class":
        lines.append(f"it = {exercise.entry}(**case.arguments)")
        lines.append("[getattr(it, call.method)(**call.arguments) for call in case.calls]")
    elif exercise.kind == "kernel":
        lines.append(
            "tensors = {name: torch.tensor(value) if hasattr(value, 'shape') else value "
            "for name, value in case.arguments.items()}"
        )
        lines.append(f"{exercise.entry}(**tensors)")
        lines += [f"tensors[{name!r}]" for name in exercise.judge_side.outputs]
    else:
        lines.append(f"{exercise.entry}(**case.arguments)")
    return "\n".join(lines)


def _call(name: str, arguments: Mapping[str, Any]) -> str:
    written = {key: literal(value) for key, value in arguments.items()}
    line = f"{name}({', '.join(f'{key}={source}' for key, source in written.items())})"
    if len(line) <= WIDTH or len(written) < 2:
        return line
    for key, value in arguments.items():
        if isinstance(value, Mapping) and len(written[key]) > WIDTH:
            entries = "".join(f"        {literal(name)}: {literal(entry)},\n" for name, entry in value.items())
            written[key] = f"{{\n{entries}    }}"
    return f"{name}(\n" + "".join(f"    {key}={source},\n" for key, source in written.items()) + ")"


def _kernel_lines(exercise: Exercise, arguments: Mapping[str, Any]) -> str:
    outputs = exercise.judge_side.outputs
    lines, given = [], {}
    for name, value in arguments.items():
        if not isinstance(value, np.ndarray):
            given[name] = literal(value)
            continue
        given[name] = name
        if name in outputs:
            fill = 'float("nan")' if value.dtype.kind not in "iub" else "0"
            lines.append(f"{name} = torch.full({literal(value.shape)}, {fill}, dtype=torch.{value.dtype.name})")
        else:
            lines.append(f"{name} = {_tensor(value)}")
    lines.append(f"{exercise.entry}({', '.join(f'{name}={source}' for name, source in given.items())})")
    return "\n".join([*lines, *outputs])


def _tensor(array: np.ndarray) -> str:
    if array.dtype.name == "bfloat16":  # which torch does not take from NumPy
        return f"torch.tensor({literal(array.astype(np.float32))}).to(torch.bfloat16)"
    return f"torch.tensor({literal(array)})"
