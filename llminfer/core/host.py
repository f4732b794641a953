"""What the operating system says of this machine: its processor, memory, caches, and how many threads BLAS will use."""

import os
import platform
import subprocess
import sys
from pathlib import Path

BLAS_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS")


def cpu_name() -> str:
    """The processor as its maker calls it; the architecture ("arm64") where nobody says."""
    name = {"linux": _linux_cpu, "darwin": lambda: _sysctl("machdep.cpu.brand_string"), "win32": _windows_cpu}
    found = name.get(sys.platform, lambda: None)() or platform.processor() or platform.machine()
    return " ".join(found.replace("(R)", "").replace("(TM)", "").replace("CPU", "").split())


def usable_cpus() -> int:
    """Logical processors this process may run on, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def blas_threads() -> int:
    """How many threads NumPy's matrix products use, as the environment tells BLAS, at most one per usable CPU.

    A later change by threadpoolctl is not seen: the variables are read by BLAS when NumPy is first imported.
    """
    for name in BLAS_THREAD_VARIABLES:
        asked = os.environ.get(name, "").split(",")[0].strip()
        if asked.isdecimal() and int(asked) > 0:
            return min(int(asked), usable_cpus())
    return usable_cpus()


def memory_bytes() -> int:
    """Main memory this process may use: of the machine, or of the container where that is smaller."""
    if sys.platform == "win32":
        return _windows_memory()
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = _read(Path(limit))
        if text.isdecimal():  # "max" means no limit
            total = min(total, int(text))
    return total


def last_level_cache_bytes() -> int | None:
    """The largest cache between a core and memory; None where the system does not tell.

    A virtual machine may report the whole cache of a server of which it owns a slice.
    """
    if sys.platform == "darwin":
        sizes = [_sysctl(name) for name in ("hw.l3cachesize", "hw.perflevel0.l2cachesize", "hw.l2cachesize")]
        return max((int(size) for size in sizes if size.isdecimal()), default=None)
    texts = [_read(path) for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    units = {"K": 2**10, "M": 2**20}
    sizes = [int(text[:-1]) * units[text[-1]] for text in texts if text[:-1].isdecimal() and text[-1] in units]
    return max(sizes, default=None)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _sysctl(name: str) -> str:
    try:
        answer = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip()


def _linux_cpu() -> str | None:
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return None


def _windows_cpu() -> str | None:
    import winreg

    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"HARDWARE\DESCRIPTION\System\CentralProcessor\0") as key:
            return str(winreg.QueryValueEx(key, "ProcessorNameString")[0])
    except OSError:
        return None


def _windows_memory() -> int:
    import ctypes

    class MemoryStatus(ctypes.Structure):
        _fields_ = [("length", ctypes.c_uint32), ("load", ctypes.c_uint32)] + [
            (name, ctypes.c_uint64)
            for name in ("total", "free", "page_total", "page_free", "virtual_total", "virtual_free", "extended_free")
        ]

    status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
    return status.total
