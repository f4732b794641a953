"""The same measurements through torch: on its CPU, where it also multiplies half-precision numbers, and on a GPU."""

from collections.abc import Callable
from datetime import date
from functools import partial
from statistics import median
from time import perf_counter

import torch

from llminfer.core import host
from llminfer.core.measurement import Engine, MeasuredDevice, processor_share, working_set_bytes

RATED = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def torch_circumstances(engine: Engine) -> dict[str, str | int]:
    """What a measurement through torch depends on beyond the processor. Raises ValueError for "cuda" without a GPU."""
    found = {"torch": torch.__version__, "threads": torch.get_num_threads()}
    if engine == "cuda":
        if not torch.cuda.is_available():
            raise ValueError('engine "cuda" needs a GPU that torch can see; use "numpy" or "torch" on this machine')
        found["gpu"] = torch.cuda.get_device_name()
    return found


def measure_torch(engine: Engine) -> MeasuredDevice:
    """Copy, read, GEMV and GEMM on the device of `engine`, "torch" for the CPU or "cuda" for the GPU (ROCm too)."""
    where = torch.device("cuda" if engine == "cuda" else "cpu")
    properties = torch.cuda.get_device_properties(where) if engine == "cuda" else None
    size = 1024 * 2**20 if properties else working_set_bytes()  # no GPU has an L2 of a quarter of this
    array = torch.ones(size // 4, device=where)  # written, so that its pages exist before any clock starts
    half = array.numel() // 2
    copy = size / _fastest_s(lambda: array[:half].copy_(array[half : 2 * half]), where)
    read = size / _fastest_s(array.max, where)
    matrix, vector = array.view(-1, 4096), torch.ones(4096, device=where)  # [M, N], [N]
    gemv = size / _fastest_s(lambda: torch.mv(matrix, vector), where)
    del array, matrix
    return MeasuredDevice(
        name=torch.cuda.get_device_name() if properties else host.cpu_name(),
        peak_flops={name: _gemm_flops(dtype, where) for name, dtype in RATED.items()},
        memory_bytes=properties.total_memory if properties else host.memory_bytes(),
        bandwidth=max(copy, read, gemv),
        source=f"measured here with torch {torch.__version__}",
        sms=properties.multi_processor_count if properties else None,
        l2_bytes=getattr(properties, "L2_cache_size", None),
        engine=engine,
        threads=torch.get_num_threads(),
        working_set_bytes=size,
        copy_bandwidth=copy,
        read_bandwidth=read,
        gemv_bandwidth=gemv,
        call_overhead_s=_call_overhead_s(),
        processor_share=processor_share(),
        launch_overhead_s=_launch_overhead_s(where) if properties else None,
        last_level_cache_bytes=None if properties else host.last_level_cache_bytes(),
        measured_on=date.today().isoformat(),
    )


def _fastest_s(action: Callable[[], object], where: torch.device, seconds: float = 0.3, at_least: int = 3) -> float:
    """The shortest of repeated runs, in seconds. On a GPU by its own events: the clock of the host would see only the
    launch, or the launch and the wait."""
    clock = _gpu_run_s if where.type == "cuda" else _cpu_run_s
    clock(action)
    times: list[float] = []
    while len(times) < at_least or sum(times) < seconds:
        times.append(clock(action))
    return min(times)


def _cpu_run_s(action: Callable[[], object]) -> float:
    start = perf_counter()
    action()
    return perf_counter() - start


def _gpu_run_s(action: Callable[[], object]) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    action()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e-3  # events count in milliseconds


def _gemm_flops(dtype: torch.dtype, where: torch.device) -> float:
    """FLOP/s of the largest square product done in a share of a second. float32 stays float32: torch's default is not
    to use tf32."""
    size, elapsed, enough = 256, 0.0, 0.005 if where.type == "cuda" else 0.05
    while elapsed < enough and size < 16384:
        size *= 2
        matrix = torch.full((size, size), 1 / size, dtype=dtype, device=where)
        elapsed = _fastest_s(partial(torch.mm, matrix, matrix), where, seconds=0.0, at_least=1)
    return 2 * size**3 / _fastest_s(partial(torch.mm, matrix, matrix), where, seconds=0.4)


def _call_overhead_s(calls: int = 1000, rounds: int = 11) -> float:
    """An addition of eight numbers on the CPU: Python and torch finding out what to do."""
    a, b = torch.ones(8), torch.ones(8)
    return median(_cpu_run_s(lambda: [torch.add(a, b, out=b) for _ in range(calls)]) / calls for _ in range(rounds))


def _launch_overhead_s(where: torch.device, launches: int = 500, rounds: int = 11) -> float:
    """Seconds a kernel of almost no work holds up a queue of its like: what a CUDA graph is there to remove."""
    tiny = torch.ones(8, device=where)
    return median(_gpu_run_s(lambda: [tiny.add_(1) for _ in range(launches)]) / launches for _ in range(rounds))
