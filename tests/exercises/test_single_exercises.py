"""What single exercises rest on: planted mistakes, a picture and its numbers, a benchmark's ceilings, a measurement."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from llminfer.basics import decode, decode_ceiling, device, max_batch, prefill, preset, step_cost, step_time
from llminfer.core.plots import alt_text, data_table, save_svg
from llminfer.grading.judge import grade
from llminfer.grading.spec import Case, all_exercises

BY_NAME = {exercise.name: exercise for exercise in all_exercises("3.1")}
TOOLS = Path(__file__).parents[2] / "tools"


def judges_names(name: str) -> dict:
    """All that the judge's side of an exercise defines, its constants too."""
    return runpy.run_path(str(BY_NAME[name].solution.with_name(f"{name}_judge.py")))


def test_bug_hunt_is_the_solution_with_the_planted_mistakes_and_no_others():
    exercise = BY_NAME["bug_hunt_block"]
    program = exercise.solution.read_text(encoding="utf-8")
    for mutant in judges_names(exercise.name)["PLANTED"]:
        program = mutant.applied_to(program)
    assert program == exercise.starter.read_text(encoding="utf-8")


@pytest.fixture
def picture(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(TOOLS), *sys.path])
    from draw_exercise_pictures import PICTURES

    return PICTURES["diagnose_roofline"]()


def test_picture_is_the_one_that_the_tool_draws(picture, tmp_path):
    stored = BY_NAME["diagnose_roofline"].folder / "diagnose_roofline.svg"
    assert save_svg(picture, tmp_path / "drawn.svg").read_bytes() == stored.read_bytes()
    assert stored.with_suffix(".png").is_file()


def test_task_tells_the_picture_in_words_and_numbers(picture):
    told = BY_NAME["diagnose_roofline"].starter.read_text(encoding="utf-8")
    assert data_table(picture).markdown() in told
    where_they_lie = re.search(r"From left to right: .*? a little\.", alt_text(picture))[0]
    assert where_they_lie in " ".join(told.split())


def test_judge_knows_the_points_of_the_picture(picture):
    known = [(point, *numbers) for point, numbers in judges_names("diagnose_roofline")["RUNS"].items()]
    assert known == [(point, intensity, 1e12 * tflops) for point, _, intensity, tflops in data_table(picture).rows]


def test_ceilings_of_the_benchmark_are_those_of_the_library():
    model, h100 = preset("llama-3-70b"), device("h100-sxm")
    answers = BY_NAME["read_a_benchmark"].solution.read_text(encoding="utf-8")
    assert f"{step_cost(model, decode(0)).bytes / 1e9:.0f} GB in bfloat16" in answers
    assert f"at most {decode_ceiling(model, h100, devices=2):.0f} tokens/s" in answers
    assert f"with attention {step_cost(model, prefill(2000)).flops / 1e12:.0f} TFLOP" in answers
    assert f"{1e3 * step_time(model, prefill(2000), h100, devices=2):.0f} ms" in answers
    assert f"so {max_batch(model, h100, 2000, devices=2)} fit" in " ".join(answers.split())
    assert f"{1e3 * step_time(model, decode(2000, 64), h100, devices=2):.1f} ms" in answers
    most = decode_ceiling(model, h100, context=2000, batch=64, devices=2)
    assert f"at most {round(most, -1):,.0f} tokens/s" in answers


@pytest.mark.parametrize("student", range(50))
def test_mistakes_of_a_prediction_show_with_every_student_s_numbers(student):
    side = BY_NAME["predict_then_measure"].judge_side
    drawn = side.draw(np.random.default_rng(student))
    case, right = Case(drawn, label="prediction"), side.reference(drawn)["prediction"]
    assert side.accept(case, right, right) is None
    for mutant in side.mutants:
        assert side.accept(case, mutant.like(drawn)["prediction"], right), mutant.name


MEASURED = {
    "bandwidth": 60e9,
    "peak_flops": 1.2e12,
    "weights": 4096 * 16384,
    "batches": [1, 2, 4, 8, 16, 32, 64, 128],
    "measured_s": [0.0049, 0.009, 0.0091, 0.0095, 0.011, 0.0135, 0.016, 0.021],
}
# 268,435,456 B / 60 GB/s = 4.474 ms up to the critical batch of 1.2e12 * 4 / 120e9 = 40; from there on it grows
PREDICTED_S = [*[0.0044739] * 6, 0.0071583, 0.0143166]
CONCLUDED = {
    "predicted_s": PREDICTED_S,
    "critical_batch": 40.0,
    "worst_batch": 32,  # 0.0135 / 0.0044739 = 3.02
    "gain": 32 * 0.0049 / 0.0135,
}


def judged(group: str, got: object) -> str | None:
    return BY_NAME["predict_then_measure"].judge_side.accept(Case({}, label=group), got, {})


def test_an_honest_measurement_and_its_conclusion_are_accepted():
    assert judged("measurement", MEASURED) is None
    assert judged("conclusion", MEASURED | CONCLUDED) is None


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"bandwidth": 30e9}, "faster than it can be"),
        ({"measured_s": [1e3 * s for s in MEASURED["measured_s"]]}, "are these seconds"),
        ({"measured_s": [1.25 * s for s in PREDICTED_S]}, "same multiple"),
        ({"measured_s": MEASURED["measured_s"][:-1]}, "positive numbers"),
        ({"measured_s": [float("nan"), *MEASURED["measured_s"][1:]]}, "positive numbers"),
        ({"peak_flops": "1.2 TFLOP/s"}, "positive numbers"),
        ({"batches": 128}, "those of measure"),
        ({"weights": 4096}, "those of measure"),
    ],
)
def test_a_measurement_that_cannot_be_is_refused(change, complaint):
    assert complaint in judged("measurement", MEASURED | change)


@pytest.mark.parametrize("nothing", [None, {}, [], "0.1 s"])
def test_no_measurement_is_refused(nothing):
    assert "paste what this file prints" in judged("measurement", nothing)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"predicted_s": [2 * s for s in PREDICTED_S]}, "predicted_s of batch 1 does not follow"),
        ({"predicted_s": None}, "positive number of seconds"),
        ({"critical_batch": 20.0}, "critical_batch"),
        ({"worst_batch": 2}, "worst_batch"),
        ({"gain": 0.0135 / 0.0049}, "gain"),
    ],
)
def test_a_conclusion_that_does_not_follow_is_refused(change, complaint):
    assert complaint in judged("conclusion", MEASURED | CONCLUDED | change)


@pytest.mark.slow
def test_a_kernel_exercise_is_not_done_by_torch_alone(tmp_path):
    pytest.importorskip("torch")
    exercise = BY_NAME["rmsnorm_kernel"]
    torch_alone = (
        "    wide = x.float()\n"
        "    mean_square = (wide * wide).mean(-1, keepdim=True)\n"
        "    out.copy_(wide / torch.sqrt(mean_square + eps) * (1 + gain.float()))\n"
    )
    before, launch = exercise.solution.read_text(encoding="utf-8").split('    """Write the normed heads')
    assert "head_norm[(" in launch
    submission = tmp_path / exercise.file_name
    submission.write_text(before + torch_alone, encoding="utf-8")
    found = grade(exercise, submission, secret=b"secret")
    assert (found.status, found.points) == ("bad_reply", 0)
    assert "started no @triton.jit function of its own" in found.failure.message
