"""What a student gets from `pip install llminfer`: the wheel, in an environment with the base dependencies alone."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def clean_python(tmp_path_factory) -> Path:
    """A Python that has the built wheel, its base dependencies and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        check=True,
        capture_output=True,
    )
    [wheel] = folder.glob("llminfer-*.whl")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install = [str(python), "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    return python


def run(python: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    """Run the clean Python away from the repository, so that only the wheel can be imported."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LLMINFER"))}
    environment["LLMINFER_CACHE"] = str(cwd / "cache")
    return subprocess.run(
        [str(python), *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=True, timeout=120
    )


def test_import_is_quick_and_loads_nothing_heavy(clean_python, tmp_path):
    program = (
        "import sys, time; start = time.perf_counter(); import llminfer; took = time.perf_counter() - start;"
        "import json; print(json.dumps([took, [m for m in ('torch', 'triton', 'matplotlib') if m in sys.modules]]))"
    )
    took, heavy = json.loads(run(clean_python, "-c", program, cwd=tmp_path).stdout)
    assert heavy == []
    assert took < 0.2  # the bound of the design; it is 1 ms of work, so only a heavy import can break it


def test_torch_is_not_there_and_every_name_still_loads(clean_python, tmp_path):
    program = (
        "import importlib.util, llminfer.basics as b; assert importlib.util.find_spec('torch') is None;"
        "print(len([getattr(b, name) for name in b.__all__]))"
    )
    assert int(run(clean_python, "-c", program, cwd=tmp_path).stdout) > 20


def test_the_tour_runs_from_the_wheel(clean_python, tmp_path):
    printed = run(clean_python, "-m", "llminfer.cli", "tour", cwd=tmp_path).stdout
    assert "tokens/s" in printed
    assert list(tmp_path.glob("llminfer-tour.*"))


def test_the_doctor_answers_from_the_wheel(clean_python, tmp_path):
    findings = json.loads(run(clean_python, "-m", "llminfer.cli", "doctor", "--json", cwd=tmp_path).stdout)
    states = {finding["subject"]: finding["state"] for finding in findings}
    assert states["NumPy"] == "ok"
    assert states["torch"] == "missing"
    assert "problem" not in states.values()
