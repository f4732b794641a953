"""The levels of isolation, strongest first: how each starts a worker, and what it has the worker do to itself."""

import os
import shutil
import subprocess
import sys
from functools import cache
from typing import Any

from llminfer.grading.worker_views import WorkerView

LEVELS = ("bwrap", "unshare", "landlock", "gradescope", "rlimits")
NOBODY = 65534
PROCESSES = 256
"""Of the user that a worker becomes, threads included."""
WORK_BYTES = 64 << 20
"""What a worker may write in all, where the level can limit that."""
WORKER = (sys.executable, "-P", "-s", "-X", "utf8", "-m", "llminfer.grading.worker")
WITH_NAMESPACE = ("bwrap", "unshare")
"""Levels that give the worker a process namespace of its own."""


def command(level: str, view: WorkerView) -> list[str]:
    """How the worker is started."""
    if level == "bwrap":
        return [*_bwrap(view), *WORKER]
    if level == "unshare":
        return [*_unshare(), *WORKER]
    return list(WORKER)


def orders(level: str, view: WorkerView, processes: bool) -> dict[str, Any]:
    """What the worker does to itself. processes: it may start some, which kernels need that are compiled for a GPU."""
    drops = is_root() and level != "rlimits"
    fenced = level in ("unshare", "landlock")
    return {
        "user": NOBODY if drops else None,
        "reads_all": drops and fenced and not view.open_to_all,  # what may be read at all, Landlock decides
        "files": view.landlock_rules() if fenced else None,
        "calls": None if level in ("gradescope", "rlimits") else "processes" if processes else "threads",
        "processes": PROCESSES if drops else None,
        "supervised": sys.platform == "linux" and level != "bwrap",
    }


def _bwrap(view: WorkerView) -> list[str]:
    """Namespaces of every kind, and a file system of what is needed. As root no user namespace is needed either."""
    rights = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    work = str(view.work)
    sized = ["--perms", "0777", "--size", str(WORK_BYTES), "--tmpfs", work]
    return [
        *("bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *(rights if is_root() else ["--unshare-user"]),
        *("--die-with-parent", "--proc", "/proc", "--dev", "/dev"),
        *view.bwrap_arguments(),
        *(sized if "--size" in _bwrap_help() else ["--bind", work, work]),
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", work, "--"),
    ]


def _unshare() -> list[str]:
    namespaces = ["--pid", "--net", "--ipc", "--uts", "--mount-proc", "--fork", "--kill-child=KILL"]
    user = [] if is_root() else ["--map-current-user"]
    return ["setpriv", "--pdeathsig", "KILL", "unshare", *user, *namespaces, "--"]


@cache
def _bwrap_help() -> str:
    return subprocess.run(["bwrap", "--help"], capture_output=True, text=True).stdout


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def available(level: str) -> bool:
    """True when what the level is made of is installed; whether it works is another question."""
    needs = {"bwrap": ["bwrap"], "unshare": ["unshare", "setpriv"]}
    if sys.platform != "linux":
        return level == "rlimits"
    return (level != "gradescope" or is_root()) and all(map(shutil.which, needs.get(level, ())))
