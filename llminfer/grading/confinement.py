"""What a worker does to itself before it reads the student's file: it gives up what it will not need, for good."""

import contextlib
import ctypes
import os
import sys
from collections.abc import Mapping
from typing import Any

from llminfer.grading import landlock, system_calls

try:
    import resource
except ImportError:  # Windows has no such limits; the judge's clock is all there is
    resource = None

MIB = 2**20
_PR_SET_KEEPCAPS, _PR_SET_NO_NEW_PRIVS = 8, 38
CAPABILITY_VERSION = 0x20080522
CAP_DAC_READ_SEARCH = 1 << 2


def confine(orders: Mapping[str, Any]) -> None:
    """Follow the judge's orders; what is absent or None is left as it is. Raises OSError when one cannot be followed.

    limits: names of the resource module -> value; "memory_mib" is what may be mapped on top of what already is.
    user: the id to become. reads_all: keep the one right that reads where that user could not. files: rules for
    Landlock. calls: refuse system calls, with or without "processes".
    """
    if sys.platform == "linux" and len(os.listdir("/proc/self/task")) > 1:
        raise OSError("a second thread runs already, and would not be confined")
    limit(orders["limits"])
    if orders.get("user") is not None:
        become(orders["user"], orders["reads_all"])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if orders.get("files") is not None:
        landlock.restrict(orders["files"])
    if orders.get("calls") is not None:
        system_calls.refuse_calls(orders["calls"] == "processes")


def limit(limits: Mapping[str, int | None]) -> None:
    """Set limits that cannot be raised again."""
    if resource is None:
        return
    chosen = dict(limits)
    memory_mib = chosen.pop("memory_mib", None)
    if memory_mib is not None and sys.platform == "linux":
        # On top of what is mapped: NumPy alone maps hundreds of MiB that it never touches.
        chosen["RLIMIT_AS"] = _mapped_bytes() + memory_mib * MIB
    for name, value in chosen.items():
        if value is not None and hasattr(resource, name):
            with contextlib.suppress(*(() if sys.platform == "linux" else (OSError, ValueError))):  # macOS refuses some
                resource.setrlimit(getattr(resource, name), (value, value))


def become(user: int, reads_all: bool) -> None:
    """Be an unprivileged user from now on. Raises OSError for a process that may not."""
    libc = ctypes.CDLL(None, use_errno=True)
    if reads_all:
        libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    if reads_all:
        header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
        effective_permitted_inheritable = (ctypes.c_uint32 * 6)(CAP_DAC_READ_SEARCH, CAP_DAC_READ_SEARCH)
        if libc.capset(header, effective_permitted_inheritable) != 0:
            code = ctypes.get_errno()
            raise OSError(code, f"capset: {os.strerror(code)}")


def _mapped_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
