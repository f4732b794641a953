"""Runs an autograder zip here as Gradescope does: its folders, its metadata, its share of a processor, its memory."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from llminfer.grading.archives import Member, members
from llminfer.grading.course import GradescopeSettings
from llminfer.grading.gradescope_results import problems

PERIOD_S = 0.1
"""A container with half a processor runs for half of every such period, as the kernel's own quota has it."""
MAX_BYTES = 16 << 20


@dataclass(frozen=True)
class Trial:
    """How a submission fared. problems: what Gradescope would not take. printed: what only the teacher would see."""

    results: dict[str, Any]
    problems: tuple[str, ...]
    seconds: float
    peak_mb: float
    printed: str

    @property
    def score(self) -> float:
        return self.results.get("score", sum(test.get("score", 0.0) for test in self.results.get("tests", ())))


def try_out(archive: Path, submission: Path, settings: GradescopeSettings, email: str = "") -> Trial:
    """Run the autograder in `archive` on a submission: a folder, an archive or one file.

    `setup.sh` is not run: this Python takes the place of the one that it installs. Raises ValueError on Windows.
    """
    if os.name != "posix":
        raise ValueError("an autograder is a program for Linux; try it there, or in WSL")
    with tempfile.TemporaryDirectory(prefix="autograder-") as folder:
        root = Path(folder)
        _lay_out(root, archive, submission, email)
        began = time.monotonic()
        home = {"AUTOGRADER_ROOT": str(root), "LLMINFER_HOME": str(root / "home"), "LLMINFER_PYTHON": sys.executable}
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                [root / "run_autograder", "--trial"],
                cwd=root,
                env=os.environ | home,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                peak, stopped = _held(process, settings)
            finally:
                _signal(_tree(process.pid) if process.poll() is None else [], signal.SIGKILL)
            output.seek(0)
            printed = output.read(MAX_BYTES).decode("utf-8", "replace")
        try:
            found = json.loads((root / "results" / "results.json").read_text(encoding="utf-8"))
            wrong = problems(found)
        except (OSError, ValueError) as problem:
            found, wrong = {}, [f"results.json: {problem}"]
        return Trial(found, (*stopped, *wrong), time.monotonic() - began, peak, printed)


def _lay_out(root: Path, archive: Path, submission: Path, email: str) -> None:
    source, handed = root / "source", root / "submission"
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(source)  # our own zip; a submission is never unpacked like this
    for folder in (source, root, root / "home" / "cache", handed, root / "results"):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700 if folder == source else 0o755)
    (source / "class-secret").chmod(0o600)
    shutil.copy(source / "run_autograder", root / "run_autograder")
    (root / "run_autograder").chmod(0o755)
    if submission.is_file() and submission.suffix not in (".zip", ".tar", ".gz", ".tgz"):
        shutil.copy(submission, handed / submission.name)
    else:
        for each in members(submission):
            if isinstance(each, Member):
                place = handed.joinpath(*each.path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(each.read(MAX_BYTES))
    (root / "submission_metadata.json").write_text(json.dumps(_metadata(email)), encoding="utf-8")


def _metadata(email: str) -> dict[str, Any]:
    """In the form in which Gradescope gives it."""
    now = datetime.now().astimezone().isoformat()
    assignment = {"id": 1, "course_id": 1, "title": "trial", "group_submission": False, "total_points": "0.0"}
    dates = {"release_date": now, "due_date": now, "late_due_date": None, "group_size": None}
    users = [{"id": 1, "name": "Trial", "email": email or "trial@example.edu"}]
    return {
        "id": 1,
        "created_at": now,
        "assignment": assignment | dates,
        "submission_method": "upload",
        "users": users,
        "previous_submissions": [],
    }


def _held(process: subprocess.Popen, settings: GradescopeSettings) -> tuple[float, tuple[str, ...]]:
    """Let it run in its share of a processor, its memory and its time. Returns the peak in MB and what stopped it."""
    runs = min(1.0, settings.cpus) * PERIOD_S
    peak, end = 0.0, time.monotonic() + 60 * settings.minutes
    while process.poll() is None:
        _wait(process, runs)
        tree = _tree(process.pid)
        peak = max(peak, sum(map(_memory_mb, tree)))
        late = time.monotonic() > end
        if late or peak > settings.memory_mb:
            _signal(tree, signal.SIGKILL)
            process.wait()
            limit = f"{settings.minutes:g} minutes" if late else f"{settings.memory_mb} MB of memory"
            return peak, (f"it was stopped: it needed more than {limit}",)
        if runs < PERIOD_S:
            _signal(tree, signal.SIGSTOP)
            time.sleep(PERIOD_S - runs)
            _signal(_tree(process.pid), signal.SIGCONT)
    return peak, ()


def _wait(process: subprocess.Popen, seconds: float) -> None:
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        pass


def _tree(top: int) -> list[int]:
    """The process and all that descend from it, as /proc tells; elsewhere than on Linux the process alone."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue  # it has just ended
        children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [top]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found


def _memory_mb(pid: int) -> float:
    """Its own share: pages that several processes use count once."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6
    except (OSError, ValueError, IndexError):
        return 0.0


def _signal(pids: list[int], which: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, which)
        except (ProcessLookupError, PermissionError):
            pass
