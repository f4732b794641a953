"""Time a pair: device events on a GPU, `perf_counter` on a CPU; the median of many calls, no input warm in a cache.

Each call gets the next of several copies of its inputs, together larger than the last-level cache, so that what is
timed is the traffic from memory that the cost counts. On a GPU a read of a large buffer is queued before each call: it
drives out what the last call left, and keeps the device busy while the host prepares the launch, which would otherwise
be counted.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from statistics import median
from time import perf_counter

import numpy as np
import torch

from llminfer.core import host
from llminfer.core.cost import Cost
from llminfer.core.measurement import working_set_bytes
from llminfer.core.pairs import Pair, usual_dtype
from llminfer.core.parity_torch import cases_of, shapes_of
from llminfer.core.tensors_torch import to_torch
from llminfer.core.timing import Measurement, RoofLike, Timing, bound_s
from llminfer.core.triton_environment import DEVICE

MAX_COPIES = 32  # of inputs so small that the caches hold them whatever is done
MAX_COPIES_BYTES = 2 * 2**30
GPU_WARM_UP_CALLS = 3
GPU_CALLS = 50
CPU_CALLS = (5, 100)  # at least, at most
CPU_SECONDS = 0.5  # per implementation, once the least number of calls is reached
SPACER_BYTES = 512 * 2**20  # twice the largest last-level cache of a GPU so far
NOT_A_LATENCY = "no GPU: the interpreter's time is no latency"


def measure(
    pair: Pair,
    dtype: str | None = None,
    size: str = "bench",
    roof: RoofLike | None = None,
    predict_on: Sequence[RoofLike] = (),
) -> Measurement:
    """Time `pair` on the first case of `size`; without a dtype in the pair's usual one, on a CPU in float32 if it can.

    Raises ValueError for a dtype that the pair does not have.
    """
    if dtype is None:
        dtype = "float32" if DEVICE == "cpu" and "float32" in pair.dtypes else usual_dtype(pair)
    if dtype not in pair.dtypes:
        raise ValueError(f"{pair.name} has the dtypes {', '.join(pair.dtypes)}, got {dtype!r}")
    [case, *_] = cases_of(pair, size, dtype)
    cost = pair.cost(**case)
    return Measurement(
        pair.name,
        dtype,
        shapes_of(case),
        host.cpu_name() if DEVICE == "cpu" else torch.cuda.get_device_name(),
        cost,
        _on_cpu(pair, case, cost) if DEVICE == "cpu" else _on_gpu(pair, case, cost),
        bound_s(cost, roof, dtype) if roof else None,
        {device.name: bound_s(cost, device, dtype) for device in predict_on},
    )


def _on_cpu(pair: Pair, case: dict, cost: Cost) -> tuple[Timing, ...]:
    return (
        Timing("reference", *cpu_seconds(pair.reference, rotated(case, cost, working_set_bytes(), np.copy))),
        Timing("baseline", *cpu_seconds(pair.baseline, rotated(case, cost, working_set_bytes(), to_torch))),
        *(Timing(name, None, note=NOT_A_LATENCY) for name in pair.implementations),
    )


def _on_gpu(pair: Pair, case: dict, cost: Cost) -> tuple[Timing, ...]:
    copies = rotated(case, cost, SPACER_BYTES, partial(to_torch, device=DEVICE))
    timings = []
    for name, function in {**pair.implementations, "baseline": pair.baseline}.items():
        try:
            timings.append(Timing(name, *gpu_seconds(function, copies)))
        except NotImplementedError as reason:
            timings.append(Timing(name, None, note=str(reason)))
    return tuple(timings)


def rotated(case: dict, cost: Cost, total_bytes: int, copy: Callable) -> list[dict]:
    """Copies of a case, each array through `copy`, so many that a round of calls reads at least `total_bytes`.

    What one call reads is in the cost, not in the sizes of the arrays: a gather touches few rows of a large table.
    """
    arrays = {name: value for name, value in case.items() if isinstance(value, np.ndarray)}
    size = max(1, sum(array.nbytes for array in arrays.values()))
    wanted = total_bytes / max(1.0, cost.read_bytes)
    copies = max(1, min(math.ceil(wanted), MAX_COPIES, MAX_COPIES_BYTES // size))
    return [case | {name: copy(array) for name, array in arrays.items()} for _ in range(copies)]


def cpu_seconds(function: Callable, cases: list[dict]) -> tuple[float, int]:
    """(median seconds, calls) of `function` on the CPU, another case each call."""
    turns, times = cycle(cases), []
    function(**next(turns))  # warms up
    least, most = CPU_CALLS
    while len(times) < least or (sum(times) < CPU_SECONDS and len(times) < most):
        arguments = next(turns)
        start = perf_counter()
        function(**arguments)
        times.append(perf_counter() - start)
    return median(times), len(times)


def gpu_seconds(function: Callable, cases: list[dict]) -> tuple[float, int]:
    """(median seconds, calls) of `function` between two events of the GPU's own clock, another case each call."""
    turns, spacer = cycle(cases), torch.zeros(SPACER_BYTES // 4, device=DEVICE)
    for _ in range(GPU_WARM_UP_CALLS):  # compiles, and lets autotuning settle
        function(**next(turns))
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(GPU_CALLS)]
    for start, end in events:
        spacer.sum()
        start.record()
        function(**next(turns))
        end.record()
    torch.cuda.synchronize()
    return median(start.elapsed_time(end) for start, end in events) / 1e3, GPU_CALLS
