"""Starter, solution, spec and judge's side of every exercise say the same; what they are worth is in test_grades.py."""

import ast
import importlib
import re

import numpy as np
import pytest

from llminfer.grading.comparison import compare
from llminfer.grading.seeds import hidden_rng, visible_rng
from llminfer.grading.spec import Case, Tolerance, all_exercises

EXERCISES = all_exercises()
PROGRAMS = [exercise for exercise in EXERCISES if exercise.kind != "short-answer"]
JUDGED_BY_CASES = [exercise for exercise in PROGRAMS if exercise.kind != "number"]
SECRET = b"a class of tests"
EXACT = Tolerance(relative=0)


def each(exercises):
    return pytest.mark.parametrize("exercise", exercises, ids=lambda exercise: exercise.id)


def definitions(source: str) -> dict[str, tuple]:
    """Every function and method of a file: what it is called with, what it gives, and its docstring."""
    found = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                found[prefix + node.name] = ("class", ast.get_docstring(node))
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                returns = node.returns and ast.unparse(node.returns)
                decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
                signature = (ast.unparse(node.args), returns, decorators)
                found[prefix + node.name] = (*signature, ast.get_docstring(node))

    tree = ast.parse(source)
    visit(tree.body, "")
    found["module"] = (ast.get_docstring(tree),)
    return found


@each(PROGRAMS)
def test_starter_and_solution_are_twins(exercise):
    starter, solution = (
        definitions(path.read_text(encoding="utf-8")) for path in (exercise.starter, exercise.solution)
    )
    own = {name for name in solution if name.split(".")[-1].startswith("_") and name not in starter}
    assert {name: solution[name] for name in solution if name not in own} == starter
    assert exercise.entry in starter


@each(EXERCISES)
def test_starter_states_section_and_minutes(exercise):
    text = exercise.starter.read_text(encoding="utf-8")
    assert re.search(rf"Book sections? [\d., and]*{re.escape(exercise.section)}\.", text)
    assert f"About {exercise.minutes} minutes." in text


@each(EXERCISES)
def test_groups_and_hints_are_complete(exercise):
    assert all(group.about for group in exercise.groups)
    assert all(group.hint for group in exercise.groups if not group.visible)
    assert exercise.hints
    if exercise in JUDGED_BY_CASES:
        assert {group.visible for group in exercise.groups} == {True, False}, "both visible and hidden groups"


@each(PROGRAMS)
def test_mistakes_and_honest_programs_are_enough(exercise):
    side = exercise.judge_side
    hints = [mutant.hint for mutant in side.mutants]
    assert len(side.mutants) >= 4 and len(side.honest) >= 2
    assert all(hints) and len(set(hints)) >= 4, "a hint for each mutant; forms of one mistake may share theirs"
    solution = exercise.solution.read_text(encoding="utf-8")
    sources = [variant.applied_to(solution) for variant in (*side.mutants, *side.honest)]
    assert len({solution, *sources}) == len(sources) + 1, "two programs are the same"


@each(PROGRAMS)
def test_what_is_stubbed_exists(exercise):
    for name in exercise.stubs:
        module, _, function = name.rpartition(".")
        assert callable(getattr(importlib.import_module(module), function))


@each(JUDGED_BY_CASES)
def test_cases_of_visible_groups_are_the_same_for_all_and_of_hidden_ones_for_nobody_else(exercise):
    for group in exercise.groups:
        mine, again, theirs = (asked(exercise, group, student) for student in ("ada", "ada", "bob"))
        assert compare(again, mine, EXACT) is None
        assert (compare(theirs, mine, EXACT) is None) == group.visible


def asked(exercise, group, student) -> list[tuple]:
    """Arguments and calls of each case, without what a kernel has to fill."""
    outputs = exercise.judge_side.outputs
    return [
        (
            {name: value for name, value in case.arguments.items() if name not in outputs},
            [(call.method, dict(call.arguments)) for call in case.calls],
        )
        for case in cases(exercise, group, student)
    ]


def cases(exercise, group, student="ada") -> list[Case]:
    rng = visible_rng(exercise, group.name) if group.visible else hidden_rng(SECRET, student, exercise, group.name)
    return list(exercise.judge_side.cases(group.name, rng))


@each([exercise for exercise in EXERCISES if exercise.kind == "number" and exercise.judge_side.draw])
def test_numbers_are_drawn_by_student_and_can_be_pasted(exercise):
    draw = exercise.judge_side.draw
    mine, again, theirs = (draw(np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert mine == again != theirs
    assert ast.literal_eval(repr(mine)) == mine, "what is printed must be Python's own numbers"


@each(JUDGED_BY_CASES)
def test_labels_differ(exercise):
    for group in exercise.groups:
        labels = [case.label for case in cases(exercise, group) if case.label]
        assert len(set(labels)) == len(labels)


def test_orders_differ():
    for chapter in {exercise.chapter for exercise in EXERCISES}:
        orders = [exercise.order for exercise in EXERCISES if exercise.chapter == chapter]
        assert len(set(orders)) == len(orders)


def test_half_of_a_chapter_is_not_in_the_library():
    for chapter in {exercise.chapter for exercise in EXERCISES}:
        own = [exercise.answer_in_library for exercise in EXERCISES if exercise.chapter == chapter]
        assert sum(own) <= len(own) / 2


def test_chapter_has_what_every_chapter_should():
    assert {exercise.kind for exercise in all_exercises("3.1")} == {
        "number",
        "function",
        "class",
        "kernel",
        "short-answer",
    }
    assert len(all_exercises("3.1")) >= 12


@each(PROGRAMS)
def test_texts_speak_of_no_machine(exercise):
    files = [exercise.starter, exercise.solution, exercise.solution.with_name(f"{exercise.name}_judge.py")]
    for path in files:
        assert not re.search(r"(?<![\w.])/(home|root|work|tmp|Users)/", path.read_text(encoding="utf-8"))
