"""Two things to grade: a small course of two exercises, and an exercise small enough to be judged many times."""

import textwrap
from pathlib import Path

import pytest

from llminfer.grading.course import Course
from llminfer.grading.course_file import load_course
from llminfer.grading.spec import Exercise, load_exercise

COURSE = """
name = "Inference"
roster = "roster.csv"
[late]
percent_per_day = 10
last_day = 3
[[homework]]
name = "hw1"
title = "Homework \\"1\\""
exercises = ["3.1/stable_softmax", "3.1/rope_both"]
points = { "3.1/stable_softmax" = 10 }
due = 2027-03-01T23:59:00+01:00
[[homework.override]]
student = "bob"
points = 3
reason = "a family matter"
"""


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """Of the exercises stable_softmax and rope_both, in `tmp_path`."""
    people = "id,email,group\nada,ada@example.edu,\nbob,bob@example.edu,\n"
    for name, content in {"course.toml": COURSE, "roster.csv": people, "class-secret": "s3cret" * 10}.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "class-secret").chmod(0o600)
    return load_course(tmp_path)


SPEC = """
title = "Rows without their mean"
kind = "{kind}"
order = 1
section = "3.1.2"
minutes = 5
difficulty = 1
hints = ["What is the mean of a row?", "keepdims"]

[limits]
seconds = 1.0

[[groups]]
name = "small"
points = 2
visible = true
about = "two rows"

[[groups]]
name = "large"
points = 3
visible = true
about = "many rows"

[[groups]]
name = "any"
points = 5
visible = false
about = "random sizes"
hint = "Think of a row of one."
"""
STARTER = '''
"""Rows without their mean. Book section 3.1.2. About 5 minutes."""

import numpy as np
from jaxtyping import Float


def centred(x: Float[np.ndarray, "T D"], by: float) -> Float[np.ndarray, "T D"]:
    """Each row minus its mean, times `by`."""
    raise NotImplementedError("your turn")
'''
SOLUTION = STARTER.replace('raise NotImplementedError("your turn")', "return (x - x.mean(axis=1, keepdims=True)) * by")
JUDGE = """
import numpy as np

from llminfer.grading.spec import Case, Mutant, Tolerance

VERSION = 3
TOLERANCE = Tolerance(1e-5)


def reference(x, by):
    if x.ndim != 2 or not x.size:
        raise ValueError("rows are expected")
    return np.array([(row - row.sum() / len(row)) * by for row in x], x.dtype)


def cases(group, rng):
    sizes = {"small": [(2, 3), (1, 4)], "large": [(20, 7), (30, 9), (3, 3)], "any": [(int(rng.integers(1, 9)), 5)]}
    for rows, columns in sizes[group]:
        x = rng.normal(size=(rows, columns)).astype(np.float32)
        yield Case({"x": x, "by": 3.0}, label=f"{rows} rows of {columns}")


MUTANTS = (
    Mutant("one mean", (("x.mean(axis=1, keepdims=True)", "x.mean()"),), hint="Whose mean is it?"),
    Mutant("never ends", (("    return", "    while True:\\n        pass\\n    return"),), hint="It does not end."),
)
"""


def write_exercise(course: Path, name: str, spec: str, starter: str, solution: str, judge: str) -> Exercise:
    """The four files of an exercise of chapter 3.9, and the exercise."""
    public, secret = course / "exercises" / "3.9-tests", course / "solutions" / "3.9-tests"
    for folder in (public, secret):
        folder.mkdir(parents=True, exist_ok=True)
    (public / f"{name}.toml").write_text(textwrap.dedent(spec))
    (public / f"{name}.py").write_text(textwrap.dedent(starter))
    (secret / f"{name}.py").write_text(textwrap.dedent(solution))
    (secret / f"{name}_judge.py").write_text(textwrap.dedent(judge))
    return load_exercise(public / f"{name}.toml")


@pytest.fixture(scope="session")
def centred(tmp_path_factory) -> Exercise:
    """Each row of x minus its mean, times `by`."""
    course = tmp_path_factory.mktemp("course")
    return write_exercise(course, "centred", SPEC.format(kind="function"), STARTER, SOLUTION, JUDGE)


@pytest.fixture
def new_exercise(tmp_path: Path):
    """new_exercise(kind, name, starter, solution, judge) -> an exercise with the groups of `centred`."""

    def made(kind: str, name: str, starter: str, solution: str, judge: str) -> Exercise:
        return write_exercise(tmp_path, name, SPEC.format(kind=kind), starter, solution, judge)

    return made
