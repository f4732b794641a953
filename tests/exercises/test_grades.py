"""What starters, solutions and honest programs are worth: by the real judge, with a worker for each."""

import subprocess
import sys
from pathlib import Path

import pytest

from llminfer.grading.judge import grade
from llminfer.grading.results import ExerciseResult, Status
from llminfer.grading.spec import Exercise, all_exercises

EXERCISES = all_exercises()
PROGRAMS = [exercise for exercise in EXERCISES if exercise.kind != "short-answer"]
HONEST = [(exercise, variant) for exercise in PROGRAMS for variant in exercise.judge_side.honest]
SECRET = b"a class of tests"

pytestmark = pytest.mark.slow


def each(exercises):
    return pytest.mark.parametrize("exercise", exercises, ids=lambda exercise: exercise.id)


def graded(exercise: Exercise, file: Path) -> ExerciseResult:
    """Hidden groups too. Numbers are those of the student without a name, which solutions hold."""
    if exercise.kind == "kernel":
        pytest.importorskip("triton")
    return grade(exercise, file, secret=SECRET)


def written(exercise: Exercise, variant, folder: Path) -> Path:
    file = folder / exercise.file_name
    file.write_text(variant.applied_to(exercise.solution.read_text(encoding="utf-8")), encoding="utf-8")
    return file


@each(EXERCISES)
def test_starter_loads_and_is_worth_nothing(exercise):
    result = graded(exercise, exercise.starter)
    assert result.points == 0
    assert result.status not in (Status.OK, Status.IMPORT_ERROR, Status.MISSING, Status.GRADER_ERROR)


@each(PROGRAMS)
def test_solution_is_worth_all(exercise):
    result = graded(exercise, exercise.solution)
    assert result.failure is None and result.points == result.max_points == exercise.points


@each([exercise for exercise in EXERCISES if exercise.kind == "short-answer"])
def test_short_answer_is_collected(exercise):
    assert graded(exercise, exercise.solution).status is Status.COLLECTED


@pytest.mark.parametrize(
    ("exercise", "variant"), HONEST, ids=lambda it: it.id if isinstance(it, Exercise) else it.name.replace(" ", "-")
)
def test_honest_program_is_worth_all(exercise, variant, tmp_path):
    result = graded(exercise, written(exercise, variant, tmp_path))
    assert result.failure is None and result.points == exercise.points


@pytest.fixture
def both_cores_busy():
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for other in others:
        other.kill()
        other.wait()


@each(PROGRAMS)
@pytest.mark.usefixtures("both_cores_busy")
def test_honest_program_is_worth_all_on_a_busy_machine(exercise, tmp_path):
    slowest_written = exercise.judge_side.honest[0]
    result = graded(exercise, written(exercise, slowest_written, tmp_path))
    assert result.failure is None and result.points == exercise.points


FROM_THE_LIBRARY = {
    "stable_softmax": """
from llminfer.basics import softmax

def stable_softmax(x):
    return softmax(x)
""",
    "rope_both": """
from llminfer.basics import RopeSpec, rope, rope_frequencies

def rope_both(x, positions, theta, interleaved):
    return rope(x, positions, rope_frequencies(RopeSpec(theta=theta), x.shape[-1]), interleaved)
""",
    "generation_loop": """
from types import SimpleNamespace

import numpy as np

from llminfer.basics.generation import generate

def generation_loop(votes, prompt, max_tokens, context, eos_ids, min_tokens=0):
    model = SimpleNamespace(config=SimpleNamespace(eos_ids=eos_ids, context=context, vocabulary=len(votes)))
    model.hidden, model.head = lambda tokens, positions, view: votes[tokens], lambda hidden: hidden
    return generate(model, prompt, max_tokens)
""",
}


@pytest.mark.parametrize("name", FROM_THE_LIBRARY)
def test_the_librarys_answer_is_not_there(name, tmp_path):
    [exercise] = [exercise for exercise in EXERCISES if exercise.name == name]
    file = tmp_path / exercise.file_name
    file.write_text(FROM_THE_LIBRARY[name], encoding="utf-8")
    result = graded(exercise, file)
    assert result.points == 0 and result.status is Status.FORBIDDEN_IMPORT
