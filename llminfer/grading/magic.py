"""`%llminfer grade NAME` in a notebook: grades what a cell defines, through the same worker as everywhere.

Load it once with `%load_ext llminfer.grading.magic`.
"""

import io
import shlex
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from llminfer.grading import judge, workplace
from llminfer.grading.notebooks import gather
from llminfer.grading.results import ExerciseResult
from llminfer.grading.spec import Exercise
from llminfer.grading.terminal import show

WIDTH = 100
USAGE = "%llminfer grade NAME [--student ID]"


def load_ipython_extension(shell: Any) -> None:
    """What %load_ext calls."""
    shell.register_magic_function(lambda line: _run(shell, line), "line", "llminfer")


def _run(shell: Any, line: str) -> None:
    words = shlex.split(line)
    if len(words) not in (2, 4) or words[0] != "grade" or (len(words) == 4 and words[2] != "--student"):
        return print(f"usage: {USAGE}")
    try:
        [exercise] = workplace.meant(words[1], Path.cwd())
        result = grade_cells(exercise, list(shell.user_ns["In"]), words[3] if len(words) == 4 else "")
    except ValueError as mistake:
        return print(f"error: {mistake}")
    out = io.StringIO()
    show(Console(file=out, width=WIDTH, highlight=False), [result])
    print(out.getvalue(), end="")


def grade_cells(exercise: Exercise, cells: list[str], student: str = "") -> ExerciseResult:
    """Grade the last definition in the cells that were run. Raises ValueError if no cell defines the entry."""
    source = gather(cells, exercise.entry)
    if source is None:
        raise ValueError(f"no cell that was run defines {exercise.entry}")
    with TemporaryDirectory() as folder:
        file = Path(folder) / exercise.file_name
        file.write_text(source, encoding="utf-8")
        result = judge.grade(exercise, file, student=student)
    if not result.failure:
        return result
    first = f"from {exercise.name} import {exercise.entry}\n"  # it is defined in the notebook, and in no file
    lines = result.failure.reproduction.replace(first, "")
    return replace(result, failure=replace(result.failure, reproduction=lines))
