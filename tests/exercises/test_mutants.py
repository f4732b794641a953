"""Every mutant loses points where its author can see it, and is told what was written for it; by the real judge."""

import pytest

from llminfer.grading.judge import grade
from llminfer.grading.results import Status
from llminfer.grading.spec import Exercise, all_exercises

MUTANTS = [
    (exercise, mutant)
    for exercise in all_exercises()
    if exercise.kind != "short-answer"
    for mutant in exercise.judge_side.mutants
]

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("exercise", "mutant"), MUTANTS, ids=lambda it: it.id if isinstance(it, Exercise) else it.name.replace(" ", "-")
)
def test_mutant_loses_points_and_gets_its_hint(exercise, mutant, tmp_path):
    if exercise.kind == "kernel":
        pytest.importorskip("triton")
    file = tmp_path / exercise.file_name
    file.write_text(mutant.applied_to(exercise.solution.read_text(encoding="utf-8")), encoding="utf-8")
    result = grade(exercise, file)  # without a secret: what a student sees
    assert result.status is not Status.GRADER_ERROR
    assert any(group.points < group.max_points for group in result.groups if group.visible)
    assert result.failure.cause == mutant.hint
