"""Lines that are pasted into a prompt beside the student's file show what the judge saw."""

import code
import contextlib
import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from llminfer.grading.questions import questions
from llminfer.grading.reproductions import in_turn, reproduction
from llminfer.grading.spec import Case, all_exercises

EXERCISES = [exercise for exercise in all_exercises() if exercise.kind != "short-answer"]
PROMPT = "import code, sys; sys.path.insert(0, ''); code.interact(banner='', exitmsg='')"


def pasted(lines: str, folder: Path) -> str:
    """What a Python prompt in this folder prints."""
    done = subprocess.run(
        [sys.executable, "-c", PROMPT], input=lines + "\n\n", capture_output=True, text=True, cwd=folder, timeout=300
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "Error" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_every_kind_of_exercise_can_be_pasted(exercise):
    if exercise.kind == "kernel":
        pytest.importorskip("triton")
    asked = questions(exercise, exercise.groups[0])[0]
    assert pasted(reproduction(exercise, asked), exercise.solution.parent).strip()


def test_what_is_printed_is_what_the_program_gives(centred):
    asked = questions(centred, centred.groups[0])[0]
    with np.printoptions(precision=4):
        expected = centred.judge_side.reference(**asked.case.arguments)
    shown = pasted(reproduction(centred, asked), centred.solution.parent)
    found = eval(shown.replace(">>> ", "").replace("... ", ""), {"array": np.array, "float32": np.float32})
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_case_too_large_to_be_written_is_named(centred):
    x = np.random.default_rng(1).normal(size=(60, 60)).astype(np.float32)
    asked = questions(centred, centred.groups[1])[1]
    large = replace(asked, case=Case({"x": x, "by": 2.0}))
    lines = reproduction(centred, large, seed=4)
    assert "case = visible_case('3.9/centred', 'large', 2, seed=4)\ncentred(**case.arguments)" in lines


def test_the_judges_own_name_for_a_case_runs_too():
    exercise = next(each for each in EXERCISES if each.name == "stable_softmax")
    asked = questions(exercise, exercise.groups[1])[1]
    lines = in_turn(exercise, asked, cases=3)
    console, out = code.InteractiveConsole(), io.StringIO()
    sys.path.insert(0, str(exercise.solution.parent))
    try:
        with contextlib.redirect_stdout(out):
            for line in [*lines.splitlines(), ""]:
                console.push(line)
    finally:
        sys.path.remove(str(exercise.solution.parent))
        sys.modules.pop(exercise.name, None)
    assert out.getvalue().count("[[") == 4


def test_long_calls_have_an_argument_a_line_and_long_mappings_an_entry(centred):
    weights = {name: np.arange(3) for name in ("query", "key", "value")}
    asked = questions(centred, centred.groups[0])[0]
    lines = reproduction(centred, replace(asked, case=Case({"x": np.eye(2), "weights": weights})))
    assert lines.splitlines()[2:] == [
        "centred(",
        "    x=np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float64),",
        "    weights={",
        "        'query': np.array([0, 1, 2], dtype=np.int64),",
        "        'key': np.array([0, 1, 2], dtype=np.int64),",
        "        'value': np.array([0, 1, 2], dtype=np.int64),",
        "    },",
        ")",
    ]
