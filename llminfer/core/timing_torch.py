"""Time a pair: device events on a GPU, `perf_counter` on a CPU; medians, and no input warm in a cache.

Each call gets the next of several copies of its inputs, together larger than the last-level cache, so that what is
timed is the traffic from memory that the cost counts. On a GPU a whole round over the copies lies between two events,
and its outputs are kept until the end: one that is overwritten while it waits in the cache never reaches memory, and
the kernel would look faster than the roof. Reads of a large buffer are queued before each round; they keep the device
busy while the host prepares the launches, which would otherwise be counted.
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
GPU_ROUNDS = 20
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
    """(median seconds a call, calls) of `function` by the GPU's own clock, in rounds of one call for each case."""
    spacer = torch.zeros(SPACER_BYTES // 4, device=DEVICE)
    _queue_round(function, cases, spacer, spacers=1)  # compiles, and lets autotuning settle
    start = perf_counter()
    _queue_round(function, cases, spacer, spacers=1)
    launches_s = perf_counter() - start  # of the host, which does not wait for the device
    read_s = _elapsed_s(*_queue_round(spacer.sum, [{}], spacer, spacers=1))
    spacers = 1 + math.ceil(launches_s / read_s)
    rounds = [_elapsed_s(*_queue_round(function, cases, spacer, spacers)) for _ in range(GPU_ROUNDS)]
    return median(rounds) / len(cases), GPU_ROUNDS * len(cases)


def _queue_round(function: Callable, cases: list[dict], spacer: torch.Tensor, spacers: int) -> tuple:
    """Queue `spacers` reads of the spacer, then one call for each case between two events; gives the events."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(spacers):
        spacer.sum()
    start.record()
    outputs = [function(**case) for case in cases]  # all kept until the last is queued, so that none reuses memory
    end.record()
    del outputs
    return start, end


def _elapsed_s(start: "torch.cuda.Event", end: "torch.cuda.Event") -> float:
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3
