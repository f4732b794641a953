"""No process outlives its worker: the worker splits, and the half that runs no student code sweeps up.

The kernel hands orphans to the nearest ancestor that asked for them; the supervisor asks, so that even a daemon that
left its group and its session ends up as a child of the supervisor's. Linux only.
"""

import ctypes
import os
import signal
import time
from pathlib import Path
from typing import NoReturn

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def split(descriptors: list[int]) -> None:
    """Return in a child, whose exit code the parent passes on when nothing that it started is left.

    SIGTERM makes the parent end everything, and so does the death of its own parent. descriptors: the child's alone.
    """
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    child = os.fork()
    if child == 0:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        return
    for descriptor in descriptors:
        os.close(descriptor)
    signal.signal(signal.SIGTERM, lambda *_: _leave(128 + signal.SIGKILL))
    _, status = os.waitpid(child, 0)
    _leave(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def _leave(code: int) -> NoReturn:
    end_children()
    os._exit(code)


def end_children() -> None:
    """Kill the children of this process, and theirs as they arrive, until there are none."""
    while True:
        for child in children(os.getpid()):
            os.kill(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def children(parent: int) -> list[int]:
    """The ids of a process's children, the dead that nobody has waited for included."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_bytes()
            except OSError:  # it has ended meanwhile
                continue
            if int(status.rpartition(b")")[2].split()[1]) == parent:  # the name before may hold anything
                found.append(int(entry.name))
    return found
