"""What the machine at hand really does: bandwidth, arithmetic and overheads, measured once and kept.

A benchmark of memory is easily a benchmark of something else. The traps met here:
- A fresh array has no memory behind it. `np.empty` and `np.zeros` are pages promised, not given: the first write pays
  for a page fault each, and pages only read share one page of zeros that sits in the first-level cache. So every array
  is written before the clock starts.
- What fits a cache is not read from memory. The array is several times the last-level cache.
- One thread cannot draw all that memory gives. Reading uses as many threads as the matrix products do.
- The clock of the processor falls when all cores use wide vectors and rises when they idle. Each measurement is
  repeated until a share of a second has passed, in the state in which an engine would run.
- Other programs only ever take away. A rate is therefore the best of many runs: it is to serve as a roof. An overhead
  is the median: it is to serve as a forecast.
"""

import hashlib
import json
import os
import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from datetime import date
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time

import numpy as np
from jaxtyping import Float

from llminfer.core import host
from llminfer.core.cache_folder import cache_folder
from llminfer.core.measured_device import Engine, MeasuredDevice

MIB = 2**20
QUIET_SHARE = 0.9
"""Below this share of the processor a measurement says more of the other programs than of the machine."""
METHOD = 1  # to be raised when the way of measuring changes, so that older results are measured anew


def measure_device(engine: Engine = "numpy", refresh: bool = False) -> MeasuredDevice:
    """The machine at hand, as NumPy ("numpy"), torch on its CPU ("torch") or torch on its GPU ("cuda") finds it.

    Takes a few seconds the first time. The result is kept in `cache_folder()` until the processor, BLAS, a version or
    the number of threads changes; `refresh` measures anew. A damaged file is measured over. What was measured while
    other programs had the processor (`processor_share` below 0.9) is returned but not kept.
    Raises ValueError for another engine, and for "cuda" without a GPU; ModuleNotFoundError where torch is missing.
    Book section 3.1.4.
    """
    if engine not in ("numpy", "torch", "cuda"):
        raise ValueError(f'engine must be "numpy", "torch" or "cuda", got {engine!r}')
    circumstances = _circumstances(engine)
    digest = hashlib.sha256(json.dumps(circumstances).encode()).hexdigest()[:16]
    file = cache_folder() / "devices" / f"{engine}-{digest}.json"
    known = None if refresh else _load(file, circumstances)
    if known is not None and known.processor_share >= QUIET_SHARE:
        return known
    measured = _measure_numpy() if engine == "numpy" else _measure_torch(engine)
    if measured.processor_share >= QUIET_SHARE:
        _save(file, circumstances, measured)
    return measured


def gemv_bandwidth(matrix_bytes: int, seconds: float = 0.3) -> float:
    """Bytes/s at which NumPy reads a float32 matrix of this size while multiplying it with a vector.

    The sizes of a model's own matrices give the bandwidth that model meets: a small one may live in a cache.
    Raises ValueError for less than 64 KiB, where the call itself would be measured.
    """
    if matrix_bytes < 2**16:
        raise ValueError(f"matrix_bytes must be at least 65536, got {matrix_bytes}: less would measure the call")
    return _gemv_bandwidth(np.ones(matrix_bytes // 4, np.float32), seconds)


def fastest_s(action: Callable[[], object], seconds: float = 0.3, at_least: int = 3) -> float:
    """The shortest of repeated runs of `action`, in seconds; repeats until `seconds` have passed. One run warms up."""
    action()
    times: list[float] = []
    while len(times) < at_least or sum(times) < seconds:
        start = perf_counter()
        action()
        times.append(perf_counter() - start)
    return min(times)


def working_set_bytes() -> int:
    """How large an array must be to come from memory: 3 times the last-level cache, at least 256 MiB.

    Never more than 1 GiB or an eighth of the memory, so that a small machine is not pushed into swapping. A server
    whose cache is larger than a third of that shares it among many, and what it reports is mostly not ours.
    """
    wanted = max(256 * MIB, 3 * (host.last_level_cache_bytes() or 0))
    return min(wanted, 1024 * MIB, host.memory_bytes() // 8) // MIB * MIB


def processor_share(seconds: float = 0.2) -> float:
    """The share of a core that a thread gets which never waits: 1 on a quiet machine."""
    start, used = perf_counter(), thread_time()
    while perf_counter() - start < seconds:
        pass
    return min((thread_time() - used) / (perf_counter() - start), 1.0)


def _measure_numpy() -> MeasuredDevice:
    threads = host.blas_threads()
    size = working_set_bytes()
    array = np.ones(size // 4, np.float32)  # np.ones writes, so every page is there before any clock starts
    copy = _copy_bandwidth(array)
    read = _read_bandwidth(array, threads)
    gemv = _gemv_bandwidth(array)
    return MeasuredDevice(
        name=host.cpu_name(),
        peak_flops={dtype: _gemm_flops(dtype) for dtype in ("float32", "float64")},
        memory_bytes=host.memory_bytes(),
        bandwidth=max(copy, read, gemv),
        source=f"measured here with NumPy {np.__version__}, {_blas()}, {threads} threads",
        target=platform.machine(),
        engine="numpy",
        threads=threads,
        working_set_bytes=size,
        copy_bandwidth=copy,
        read_bandwidth=read,
        gemv_bandwidth=gemv,
        call_overhead_s=_call_overhead_s(),
        processor_share=processor_share(),
        last_level_cache_bytes=host.last_level_cache_bytes(),
        measured_on=date.today().isoformat(),
    )


def _measure_torch(engine: Engine) -> MeasuredDevice:
    from llminfer.core.measurement_torch import measure_torch

    return measure_torch(engine)


def _copy_bandwidth(array: Float[np.ndarray, "N"]) -> float:
    """One half of the array over the other. A plain store would first read the line it writes; memcpy's do not."""
    half = array.size // 2
    return 2 * half * 4 / fastest_s(lambda: np.copyto(array[:half], array[half : 2 * half]))


def _read_bandwidth(array: Float[np.ndarray, "N"], threads: int) -> float:
    """A maximum is the cheapest use of a number that cannot be skipped; NumPy lets other threads run meanwhile."""
    parts = np.array_split(array, threads)
    with ThreadPoolExecutor(threads) as pool:
        return array.nbytes / fastest_s(lambda: list(pool.map(np.max, parts)))


def _gemv_bandwidth(array: Float[np.ndarray, "N"], seconds: float = 0.3) -> float:
    """Rows of 4096 for a large matrix, a square one for a small: the shapes of projections."""
    width = min(4096, int(array.size**0.5))
    matrix = array[: array.size // width * width].reshape(-1, width)  # [M, N]
    vector, out = np.ones(width, np.float32), np.empty(len(matrix), np.float32)
    return matrix.nbytes / fastest_s(lambda: np.matmul(matrix, vector, out=out), seconds)


def _gemm_flops(dtype: str) -> float:
    """FLOP/s of the largest square product that this machine does in a share of a second."""
    size, elapsed = 256, 0.0
    while elapsed < 0.05 and size < 4096:
        size *= 2
        matrix = np.full((size, size), 1 / size, dtype)  # powers of it stay as they are: no denormals, no overflow
        out = np.empty_like(matrix)
        elapsed = fastest_s(lambda a=matrix, out=out: np.matmul(a, a, out=out), seconds=0.0)
    return 2 * size**3 / fastest_s(lambda: np.matmul(matrix, matrix, out=out), seconds=0.4)


def _call_overhead_s(calls: int = 1000, rounds: int = 21) -> float:
    """An addition of eight numbers: all of it is Python and NumPy finding out what to do."""
    a, b = np.ones(8, np.float32), np.ones(8, np.float32)
    times = []
    for _ in range(rounds):
        start = perf_counter()
        for _ in range(calls):
            np.add(a, b, out=b)
        times.append((perf_counter() - start) / calls)
    return median(times)


def _blas() -> str:
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas['name']} {blas['version']}"


def _circumstances(engine: Engine) -> dict[str, str | int]:
    """All that a measurement depends on; another value means another measurement."""
    found = {"method": METHOD, "engine": engine, "cpu": host.cpu_name(), "cpus": host.usable_cpus()}
    if engine == "numpy":
        return found | {"threads": host.blas_threads(), "numpy": np.__version__, "blas": _blas()}
    from llminfer.core.measurement_torch import torch_circumstances

    return found | torch_circumstances(engine)


def _load(file: Path, circumstances: dict) -> MeasuredDevice | None:
    """The measurement in `file`; None when there is none, it is damaged, or it was made under other circumstances."""
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
        return MeasuredDevice(**stored["device"]) if stored["circumstances"] == circumstances else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _save(file: Path, circumstances: dict, measured: MeasuredDevice) -> None:
    """Write beside and rename, so that no reader meets half a file. A folder that cannot be written costs only time."""
    text = json.dumps({"circumstances": circumstances, "device": asdict(measured)}, indent=2)
    beside = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, encoding="utf-8")
        beside.replace(file)
    except OSError:
        with suppress(OSError):
            beside.unlink()
