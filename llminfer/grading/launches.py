"""Start a worker at a level of isolation: in its own folder, with its overlay of the library and its orders."""

import contextlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llminfer.grading import ladder
from llminfer.grading.overlay import PACKAGE, overlay
from llminfer.grading.removal import remove_tree
from llminfer.grading.spec import Limits
from llminfer.grading.worker_processes import WorkerProcess
from llminfer.grading.worker_views import graphics_devices, user_packages, worker_view

FILE_LIMIT_BYTES = 16 << 20
"""For each file that a worker writes, what it prints among them."""
OPEN_FILES = 256
USUAL = Limits()


class Launch:
    """A worker that has been started. `start` is the request that makes it confine itself, yet to be sent.

    source: the submission, which is written where the worker can read it and the student's own file cannot be reached.
    kernel: torch and Triton are imported before the limits are taken. processes: it may start some; a kernel that is
    compiled for a GPU always may.
    """

    def __init__(
        self,
        level: str,
        source: bytes,
        name: str = "submission.py",
        stubs: Sequence[str] = (),
        limits: Limits = USUAL,
        kernel: bool = False,
        processes: bool = False,
    ) -> None:
        library = overlay(stubs)
        self._folder = Path(tempfile.mkdtemp(prefix="llminfer-")).resolve()
        work, home = self._folder / "work", self._folder / "submission"
        for folder, mode in ((self._folder, 0o711), (work, 0o700), (home, 0o755)):  # another user may pass through
            folder.mkdir(exist_ok=True)
            folder.chmod(mode)
        file = home / name
        file.write_bytes(source)
        file.chmod(0o644)
        gpu = kernel and bool(graphics_devices())
        view = worker_view(library, home, work, gpu)
        orders = ladder.orders(level, view, processes or gpu)
        if orders["user"] is not None:
            os.chown(work, orders["user"], orders["user"])
        # On a GPU the driver maps far more than it uses; what counts there is what can be written.
        memory = {"RLIMIT_DATA": limits.memory_mib << 20} if gpu else {"memory_mib": limits.memory_mib}
        orders["limits"] = {
            **memory,
            "RLIMIT_CORE": 0,
            "RLIMIT_CPU": int(10 * limits.seconds + 10),
            "RLIMIT_FSIZE": FILE_LIMIT_BYTES,
            "RLIMIT_NOFILE": OPEN_FILES,
            "RLIMIT_NPROC": orders.pop("processes"),
        }
        what = {"file": str(file), "kernel": kernel, "orders": orders, "checkout": checkout()}
        self.start: dict[str, Any] = {"act": "start", **what}
        try:
            environment = worker_environment(library, work, interpreted=kernel and not gpu)
            command = ladder.command(level, view)
            namespace = level in ladder.WITH_NAMESPACE
            self.process = WorkerProcess(command, environment, work, namespace, orders["supervised"])
        except BaseException:
            self._remove()
            raise

    def close(self) -> None:
        """End the worker and all that it started, then delete its folder."""
        self.process.close()
        self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):  # nothing that is wrong here may touch the result
            remove_tree(self._folder)


def worker_environment(library: Path, work: Path, interpreted: bool) -> dict[str, str]:
    """All that a worker inherits: no secret of the judge's, one thread for BLAS, caches in its own folder."""
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ}
    threads = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    folders = ("HOME", "TMPDIR", "TEMP", "MPLCONFIGDIR", "TRITON_CACHE_DIR", "XDG_CACHE_HOME", "LLMINFER_CACHE")
    return {
        **kept,
        **dict.fromkeys(threads, "1"),
        **dict.fromkeys(folders, str(work)),
        **({"TRITON_INTERPRET": "1"} if interpreted else {}),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "LOGNAME": "student",
        "MPLBACKEND": "Agg",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([str(library), *user_packages()]),
    }


def checkout() -> str:
    """The folder that an editable install puts on every path, exercises and solutions with it; "" for a wheel."""
    return str(PACKAGE.parent) if (PACKAGE.parent / "pyproject.toml").is_file() else ""
