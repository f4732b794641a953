"""What a worker does to itself before it reads the student's file: it takes limits that it cannot lift again."""

import contextlib
import os
import sys
from typing import Any

try:
    import resource
except ImportError:  # Windows has no such limits; the judge's clock is all there is
    resource = None

MIB = 2**20


def confine(confinement: dict[str, Any]) -> None:
    """Take the limits that the judge names; a key that is absent or None limits nothing."""
    if resource is None:
        return
    limits = {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": confinement.get("cpu_s"),
        "RLIMIT_FSIZE": confinement.get("file_bytes"),
        "RLIMIT_NOFILE": confinement.get("open_files"),
        "RLIMIT_NPROC": confinement.get("processes"),
        "RLIMIT_AS": _address_space(confinement.get("memory_mib")),
    }
    for name, value in limits.items():
        if value is not None and hasattr(resource, name):
            with contextlib.suppress(*(() if sys.platform == "linux" else (OSError, ValueError))):  # macOS refuses some
                resource.setrlimit(getattr(resource, name), (value, value))


def _address_space(memory_mib: int | None) -> int | None:
    """What is mapped now and `memory_mib` more: NumPy alone maps hundreds of MiB that it never touches."""
    if memory_mib is None or sys.platform != "linux":
        return None
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE") + memory_mib * MIB
