"""The autograder for Gradescope: what is in the zip, what it writes, and a submission from upload to points."""

import json
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from llminfer.grading import gradescope_trial
from llminfer.grading.course import GradescopeSettings, Homework
from llminfer.grading.course_file import load_course
from llminfer.grading.gradescope import SCRIPTS, build, requirements, worst_s
from llminfer.grading.gradescope_results import problems, results_json, shares
from llminfer.grading.gradescope_run import _members, memory_mib, run
from llminfer.grading.gradescope_trial import try_out
from llminfer.grading.results import ExerciseResult, Failure, GroupResult, Status
from llminfer.grading.spec import all_exercises

EXERCISES = {exercise.name: exercise for exercise in all_exercises("3.1")}
SOFTMAX, ROPE = EXERCISES["stable_softmax"], EXERCISES["rope_both"]
KERNEL = EXERCISES["rmsnorm_kernel"]
VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
FORMAT = {"enum": ["text", "html", "simple_format", "md", "ansi"]}
NUMBER, TEXT = {"type": "number"}, {"type": "string"}
# Gradescope's documentation of results.json ("Autograder Specifications", Output Format), as a schema.
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "anyOf": [
        {"required": ["score"]},
        {"required": ["tests"], "properties": {"tests": {"items": {"required": ["score"]}}}},
    ],
    "properties": {
        **{"score": NUMBER, "execution_time": NUMBER, "output": TEXT, "output_format": FORMAT, "extra_data": {}},
        **{"test_output_format": FORMAT, "test_name_format": FORMAT, "visibility": VISIBILITY, "leaderboard": {}},
        **{"stdout_visibility": VISIBILITY},
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    **{"score": NUMBER, "max_score": NUMBER, "status": {"enum": ["passed", "failed"]}, "name": TEXT},
                    **{"name_format": FORMAT, "number": TEXT, "output": TEXT, "output_format": FORMAT},
                    **{"tags": {"type": "array", "items": TEXT}, "visibility": VISIBILITY, "extra_data": {}},
                },
            },
        },
    },
}


def result(exercise, right=lambda group: True, status: Status = Status.WRONG, failure=None) -> ExerciseResult:
    groups = []
    for group in exercise.groups:
        good = right(group)
        points, end = (group.points, Status.OK) if good else (0.0, status)
        groups.append(GroupResult(group.name, group.visible, points, group.points, 1, 1, end, group.hint or "about"))
    points = sum(group.points for group in groups)
    return ExerciseResult(exercise.id, "t", 1, status, points, exercise.points, tuple(groups), failure)


def written(homework: Homework, results, lines=("hello",)) -> dict:
    data = json.loads(json.dumps(results_json(homework, results, lines, 1.23)))
    jsonschema.validate(data, SCHEMA)
    assert problems(data) == []
    return data


def test_what_is_written_fits_the_documented_form_and_adds_up(course):
    homework = course.find("hw1")
    for results in ({}, {SOFTMAX.id: result(SOFTMAX)}, {SOFTMAX.id: result(SOFTMAX), ROPE.id: result(ROPE)}):
        data = written(homework, results)
        assert sum(test["max_score"] for test in data["tests"]) == pytest.approx(homework.max_points)
        earned = sum(homework.worth(each) for each in (SOFTMAX, ROPE) if each.id in results)
        assert sum(test["score"] for test in data["tests"]) == pytest.approx(earned)


@pytest.mark.parametrize("worth", [1, 10, 7.77, 0.01, 100 / 3])
def test_the_parts_of_an_exercise_are_hundredths_that_add_up(worth):
    parts = shares(Homework("hw1", (ROPE,), points={ROPE.id: worth}), ROPE)
    assert sum(parts) == pytest.approx(round(worth, 2))
    assert all(round(part, 2) == part >= 0 for part in parts)


def test_hidden_groups_show_points_and_hint_alone_and_by_default_after_grades_are_published(course):
    shown = Failure("halves", Status.WRONG, "it is wrong", expected="[1 2 3]", printed="PRINTED")
    data = written(course.find("hw1"), {ROPE.id: result(ROPE, lambda group: False, failure=shown)})
    hidden = [test for test in data["tests"] if "(hidden)" in test["name"]]
    assert {test["visibility"] for test in hidden} == {"after_published"}
    [rope] = [test for test in hidden if "rope" in test["name"]]
    assert rope["output"] == next(group.hint for group in ROPE.groups if not group.visible)
    [halves] = [test for test in data["tests"] if test["name"].endswith("halves")]
    assert (halves["visibility"], halves["status"]) == ("visible", "failed")
    assert "[1 2 3]" in halves["output"]


def test_what_a_program_printed_is_cut_and_cannot_command_a_terminal(course):
    told = Failure("halves", Status.WRONG, "\x1b[2J wrong", printed="x" * 100_000)
    data = written(course.find("hw1"), {ROPE.id: result(ROPE, lambda group: False, failure=told)})
    assert len(json.dumps(data)) < 50_000
    assert "\\u001b" not in json.dumps(data)


def test_short_answers_are_no_tests():
    answer = next(each for each in all_exercises("3.1") if each.kind == "short-answer")
    data = written(Homework("hw1", (ROPE, answer)), {})
    assert {test["name"].split(":")[0] for test in data["tests"]} == {ROPE.id}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "must be an object"),
        ({}, "neither a score nor a list of tests"),
        ({"tests": [{"name": "x"}]}, "every test needs one"),
        ({"score": "5"}, "score has the wrong type"),
        ({"score": True}, "score has the wrong type"),
        ({"score": 1, "visibility": "sometimes"}, "visibility must be one of"),
        ({"score": 1, "tests": [{"number": 1}]}, "number has the wrong type"),
        ({"score": 1, "tests": [{"status": "ok"}]}, "passed or failed"),
        ({"score": 1, "output_format": "rst"}, "output_format must be one of"),
        ({"score": 1, "points": 1}, "points is unknown"),
    ],
)
def test_what_gradescope_would_stumble_over_is_named_and_the_schema_agrees(data, said):
    assert any(said in problem for problem in problems(data))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, SCHEMA)


def test_the_zip_holds_what_it_needs_at_its_root_and_no_other_solutions(course, tmp_path):
    built = build(course, course.find("hw1"), tmp_path / "auto.zip")
    assert (built.path.stat().st_mode & 0o777, built.max_points) == (0o600, 10 + ROPE.points)
    with zipfile.ZipFile(built.path) as archive:
        names = archive.namelist()
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
        assert archive.read("class-secret") == course.secret
        assert "family" not in archive.read("course.toml").decode()
    assert {"setup.sh", "run_autograder", "course.toml", "roster.csv", "requirements.txt"} <= set(names)
    assert modes["run_autograder"] & 0o111
    assert modes["setup.sh"] & 0o111
    solutions = {Path(name).name for name in names if "/solutions/" in name}
    sides = {f"{each.name}_judge.py" for each in (SOFTMAX, ROPE)}
    assert solutions == {SOFTMAX.file_name, ROPE.file_name, *sides}
    assert sum(name.endswith(".toml") for name in names) == len(all_exercises()) + 1


def test_scripts_end_their_lines_as_bash_wants_and_are_bash():
    for name in ("setup.sh", "run_autograder"):
        raw = (SCRIPTS / name).read_bytes()
        assert raw.startswith(b"#!/usr/bin/env bash\n")
        assert b"\r" not in raw
        assert subprocess.run(["bash", "-n", SCRIPTS / name]).returncode == 0


def test_versions_are_pinned_and_torch_comes_only_with_kernels():
    plain = requirements(torch=False).splitlines()
    assert all("==" in line for line in plain)
    assert any(line.startswith("numpy==") for line in plain)
    assert not any(line.startswith(("torch", "triton", "llminfer")) for line in plain)
    pytest.importorskip("torch")
    assert any(line.startswith("torch==") and "+" not in line for line in requirements(torch=True).splitlines())


def test_a_container_that_is_too_small_or_too_slow_is_refused_when_the_zip_is_built(course, tmp_path):
    homework = course.find("hw1")
    with pytest.raises(ValueError, match="needs a container of 1000 MB .kernel exercises need torch., not of 768"):
        build(course, replace(homework, exercises=(KERNEL,)), tmp_path / "a.zip")
    with pytest.raises(ValueError, match="needs a container of 600 MB"):
        build(course, replace(homework, gradescope=GradescopeSettings(memory_mb=500)), tmp_path / "a.zip")
    with pytest.raises(ValueError, match=f"may take {worst_s(homework):.0f} s, Gradescope stops after 12"):
        build(course, replace(homework, gradescope=GradescopeSettings(minutes=0.2)), tmp_path / "a.zip")


def test_a_programs_memory_leaves_room_for_the_judge():
    homework = Homework("hw1", (ROPE, KERNEL), gradescope=GradescopeSettings(memory_mb=1500))
    assert memory_mib(homework, ROPE) == 1239  # (1500 - 200) MB
    assert memory_mib(homework, KERNEL) == 858  # (1500 - 200 - 400) MB


def test_the_class_lists_ids_seed_the_inputs_as_in_a_class_run(course):
    users = {"users": [{"email": "BOB@example.edu"}, {"email": "new@example.edu"}, "nonsense", {}]}
    assert _members(course, users) == ("bob", "new@example.edu")
    assert _members(course, {}) == ()


@pytest.fixture
def container(course, tmp_path, monkeypatch) -> Path:
    """Gradescope's folders, with a homework of one exercise in them."""
    root = tmp_path / "autograder"
    text = (tmp_path / "course.toml").read_text().replace(', "3.1/rope_both"]', "]")
    (tmp_path / "course.toml").write_text(text)
    small = load_course(tmp_path)
    build(small, small.find("hw1"), tmp_path / "auto.zip")
    for name in ("source", "submission", "results"):
        (root / name).mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "auto.zip") as archive:
        archive.extractall(root / "source")
    (root / "source" / "class-secret").chmod(0o600)
    return root


def outcome(root: Path) -> dict:
    data = json.loads((root / "results" / "results.json").read_text())
    jsonschema.validate(data, SCHEMA)
    return data


def test_results_are_there_before_anything_is_judged_and_say_whose_fault_it_is_not(container, monkeypatch):
    shutil.copy(SOFTMAX.solution, container / "submission")
    seen = []

    def stopped(*_, **__):
        seen.append(outcome(container))
        raise KeyboardInterrupt

    monkeypatch.setattr("llminfer.grading.gradescope_run.judge.grade", stopped)
    with pytest.raises(KeyboardInterrupt):
        run(container, trial=True)
    assert seen[0] == outcome(container)
    assert "not your fault" in seen[0]["output"]
    assert sum(test["score"] for test in seen[0]["tests"]) == 0


def test_a_grader_that_fails_says_so_to_the_student(container, monkeypatch):
    shutil.copy(SOFTMAX.solution, container / "submission")
    broken = result(SOFTMAX, lambda group: False, Status.GRADER_ERROR)
    broken = replace(broken, status=Status.GRADER_ERROR)
    monkeypatch.setattr("llminfer.grading.gradescope_run.judge.grade", lambda *_, **__: broken)
    run(container, trial=True)
    assert "The grader itself failed at 3.1/stable_softmax" in outcome(container)["output"]


def test_time_that_runs_out_leaves_what_was_judged(container, monkeypatch):
    monkeypatch.setattr("llminfer.grading.gradescope_run.LAST_WORDS_S", 10_000)
    run(container, trial=True)
    assert "not judged to its end" in outcome(container)["output"]


def test_without_anybody_else_to_run_as_nothing_is_judged(container, monkeypatch):
    from llminfer.grading.isolation import Isolation

    weak = Isolation("rlimits", False, False, True, False)
    monkeypatch.setattr("llminfer.grading.gradescope_run.strongest", lambda: weak)
    with pytest.raises(RuntimeError, match="cannot be held here"):
        run(container, trial=False)


@pytest.mark.slow
def test_submissions_go_from_upload_to_points(course, tmp_path):
    """The zip as built, run by its own script, under half a processor and 768 MB."""
    homework = course.find("hw1")
    built = build(course, homework, tmp_path / "auto.zip")
    (tmp_path / "upload").mkdir()
    shutil.copy(SOFTMAX.solution, tmp_path / "upload" / "stable_softmax-1.py")
    forged = 'import os\nopen("../results/results.json", "w").write(\'{"score": 99}\')\nos._exit(0)\n'
    (tmp_path / "upload" / "rope_both.py").write_text(forged)
    trial = try_out(built.path, tmp_path / "upload", homework.gradescope, email="ada@example.edu")
    assert trial.problems == ()
    jsonschema.validate(trial.results, SCHEMA)
    scores = {test["name"].split(":")[0]: 0.0 for test in trial.results["tests"]}
    for test in trial.results["tests"]:
        scores[test["name"].split(":")[0]] += test["score"]
    assert scores == {SOFTMAX.id: 10, ROPE.id: 0}
    assert "stable_softmax-1.py: taken as stable_softmax.py" in trial.results["output"]
    assert 0 < trial.peak_mb < homework.gradescope.memory_mb


def hold(program: str, settings: GradescopeSettings):
    process = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    return gradescope_trial._held(process, settings)


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from /proc")
def test_a_trial_stops_what_needs_more_memory_than_the_container_has():
    program = "import time; held = b'x' * 200_000_000; time.sleep(60)"
    peak, stopped = hold(program, GradescopeSettings(memory_mb=100))
    assert stopped == ("it was stopped: it needed more than 100 MB of memory",)
    assert peak > 100


def test_a_trial_stops_what_takes_too_long():
    began = time.monotonic()
    _, stopped = hold("import time; time.sleep(60)", GradescopeSettings(minutes=0.01))
    assert stopped == ("it was stopped: it needed more than 0.01 minutes",)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(("cpus", "pauses"), [(0.25, True), (1.0, False), (2.0, False)])
def test_a_trial_pauses_what_has_only_a_share_of_a_processor(monkeypatch, cpus, pauses):
    sent, send = [], gradescope_trial._signal
    monkeypatch.setattr(gradescope_trial, "_signal", lambda pids, which: (sent.append(which), send(pids, which)))
    _, stopped = hold("import time; time.sleep(0.8)", GradescopeSettings(cpus=cpus))
    assert stopped == ()
    assert len(sent) >= 4 if pauses else not sent
    assert set(sent[::2]) <= {signal.SIGSTOP}
    assert set(sent[1::2]) <= {signal.SIGCONT}
    assert len(sent) % 2 == 0
