"""The hostile submissions at level "gradescope", on a machine made to look like Gradescope's container.

There the interpreter can be read by everybody and the source by root alone. Here that is so in a mount namespace of our
own: folders that only root may pass get an open one in front of them, and the checkout is hidden behind a closed one.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from llminfer.grading.ladder import is_root
from llminfer.grading.overlay import PACKAGE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or not is_root(), reason="only root can make such a machine"),
]
ROOT = Path(__file__).parents[2]
HIDDEN = ("llminfer", "exercises", "solutions", "tests")


def needed() -> Iterator[Path]:
    """What workers must be able to reach."""
    for prefix in sorted({Path(sys.prefix), Path(sys.base_prefix)}):
        yield prefix.resolve()


def closed_to_others(path: Path) -> Path | None:
    """The first folder on the way that only its owner may pass."""
    return next((parent for parent in reversed(path.parents) if not parent.stat().st_mode & 0o001), None)


def machine(source: Path) -> str:
    """Shell commands that make the namespace what it should be."""
    commands = ["set -e"]
    for path in needed():
        if closed := closed_to_others(path):
            keep = source.parent / "kept"
            commands += [f"mkdir -p {keep}", f"mount --bind {path} {keep}", f"mount -t tmpfs -o mode=755 none {closed}"]
            commands += [f"mkdir -p {path}", f"mount --move {keep} {path}"]
    commands += [f"mount -t tmpfs -o mode=700 none {ROOT / name}" for name in HIDDEN]
    return "\n".join(commands) + '\nexec "$@"\n'


@pytest.fixture
def source() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="gradescope-", dir="/tmp"))
    folder.chmod(0o755)
    shutil.copytree(PACKAGE, folder / "source" / "llminfer", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests" / "hostile", folder / "source" / "hostile")
    (folder / "source").chmod(0o700)
    yield folder / "source"
    shutil.rmtree(folder, ignore_errors=True)


def test_the_attacks_fail_there_too_and_the_network_is_reported_as_open(source):
    script = source.parent / "machine.sh"
    script.write_text(machine(source))
    environment = {**os.environ, "PYTHONPATH": str(source), "LLMINFER_CACHE": str(source.parent / "cache")}
    program = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-rs"]
    command = ["unshare", "--mount", "sh", str(script), *program, str(source / "hostile" / "test_hostile.py")]
    told = [sys.executable, "-c", "from llminfer.grading.isolation import tried; print(tried('gradescope').sentence)"]
    sentence = subprocess.run([*command[:4], *told], env=environment, capture_output=True, text=True)
    if "mount" in sentence.stderr:
        pytest.skip(f"this machine does not let root mount: {sentence.stderr.strip()}")
    assert "files hidden, network open, processes contained, not root" in sentence.stdout, sentence.stderr
    assert "no security boundary" in sentence.stdout
    done = subprocess.run([*command, "-k", "gradescope"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
