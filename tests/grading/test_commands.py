"""`llminfer grade` and `llminfer exercises` as a student types them."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from llminfer.grading.spec import all_exercises

EVERY = {exercise.name: exercise for exercise in all_exercises()}
SOFTMAX = EVERY["stable_softmax"]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "llminfer.cli", *arguments]
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def test_the_command_line_starts_without_numpy_and_without_the_judge():
    program = (
        "import sys, llminfer.cli; print([m for m in ('numpy', 'torch', 'llminfer.grading.judge') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.slow
def test_from_the_starter_to_the_points(tmp_path):
    copied = run(tmp_path, "exercises", "copy", "3.1/stable_softmax")
    assert copied.returncode == 0
    assert "wrote exercises/3.1-basics/stable_softmax.py" in copied.stdout
    fresh = run(tmp_path, "grade")
    assert fresh.returncode == 1
    assert "not begun yet: stable_softmax.py waits for you" in fresh.stdout
    file = tmp_path / "exercises" / "3.1-basics" / "stable_softmax.py"
    file.write_text(
        "import numpy as np\n\ndef stable_softmax(x):\n    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)\n"
    )
    wrong = run(tmp_path, "grade", "3.1/stable_softmax")
    assert wrong.returncode == 1
    assert "Small scores come out right and large ones as NaN." in wrong.stdout
    assert "Stuck? llminfer grade 3.1/stable_softmax --hint" in wrong.stdout
    assert "hidden: run by your teacher" in wrong.stdout
    file.write_text(SOFTMAX.solution.read_text())
    right = run(tmp_path, "grade", "stable_softmax", "--log")
    assert right.returncode == 0
    assert "visible 8/8 (3 of 3 points), hidden: run by your teacher (2 points)" in right.stdout
    assert (tmp_path / "attempts.jsonl").is_file()


@pytest.mark.slow
def test_json_is_all_that_is_printed_then(tmp_path):
    done = run(tmp_path, "grade", "3.1/top_p", "--json")
    assert done.returncode == 1
    [result] = json.loads(done.stdout)
    assert (result["exercise"], result["status"]) == ("3.1/top_p", "missing")


def test_hints_are_shown_without_grading(tmp_path):
    assert "hint 1 of" in run(tmp_path, "grade", "top_p", "--hint").stdout
    assert "hint 2 of" in run(tmp_path, "grade", "top_p", "--hint").stdout
    refused = run(tmp_path, "grade", "3.1", "--hint")
    assert refused.returncode == 2
    assert "a hint is for one exercise" in refused.stderr


def test_mistakes_end_in_one_line(tmp_path):
    for arguments in (("grade",), ("grade", "nonsense"), ("grade", "hw1"), ("exercises", "show", "3.1")):
        done = run(tmp_path, *arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")
        assert len(done.stderr.splitlines()) == 1


def test_the_list_and_the_task_are_shown(tmp_path):
    listed = run(tmp_path, "exercises", "list", "3.1").stdout
    assert all(name in listed for name in EVERY)
    shown = run(tmp_path, "exercises", "show", "3.1/top_p").stdout
    assert "hidden: " in shown
    assert f"{EVERY['top_p'].minutes} minutes, section 3.1.6" in shown


def test_a_students_own_numbers_are_printed(tmp_path):
    ada, bob = (
        json.loads(run(tmp_path, "exercises", "show", "3.1/parameter_count", "--student", student, "--json").stdout)
        for student in ("ada", "bob")
    )
    assert ada["numbers"] != bob["numbers"]
    assert set(ada["numbers"]) == set(bob["numbers"])
    assert "Your numbers, ada:" in run(tmp_path, "exercises", "show", "parameter_count", "--student", "ada").stdout


@pytest.mark.slow
def test_watching_grades_again_when_a_file_is_saved_and_ends_with_ctrl_c(tmp_path):
    file = tmp_path / "stable_softmax.py"
    file.write_text("def stable_softmax(x):\n    return x\n")
    command = [sys.executable, "-u", "-m", "llminfer.cli", "grade", "stable_softmax", "--watch"]
    with open(tmp_path / "out", "w") as out:
        # What runs in the background of a shell, as tests may, has Ctrl-C switched off, and so has what it starts.
        hears = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        watching = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, cwd=tmp_path, preexec_fn=hears)
    try:
        assert told(tmp_path / "out", "What comes back is x, unchanged.")
        file.write_text(SOFTMAX.solution.read_text())
        assert told(tmp_path / "out", "visible 8/8")
        watching.send_signal(signal.SIGINT)
        assert watching.wait(60) == 0
    finally:
        watching.kill()


def told(path: Path, words: str) -> bool:
    """Whether these words appear in time."""
    until = time.monotonic() + 120
    while words not in path.read_text():
        if time.monotonic() > until:
            return False
        time.sleep(0.2)
    return True
