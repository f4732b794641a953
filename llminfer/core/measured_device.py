"""A device with the rates that programs reached on it, as `measurement` finds them."""

from dataclasses import dataclass
from typing import Literal

from llminfer.core.hardware import Device

Engine = Literal["numpy", "torch", "cuda"]


@dataclass(frozen=True, kw_only=True)
class MeasuredDevice(Device):
    """A device with what programs reached on it in place of what a data sheet promises.

    `bandwidth` is the best of the three bandwidths below and `peak_flops` are the rates of square matrix products, so
    both can serve as roofs. Bandwidths are in bytes/s, from arrays of `working_set_bytes`, too large for any cache:
    copy_bandwidth counts bytes read plus bytes written; read_bandwidth is a running maximum, with all threads;
    gemv_bandwidth is a float32 matrix times a vector, as in decoding one sequence: bytes of the matrix only.
    call_overhead_s: what one call on a handful of numbers costs; launch_overhead_s: what each kernel in a queue of tiny
    ones takes on a GPU (None on a CPU). processor_share: how much of a core a busy thread got meanwhile; well below 1,
    other programs were at work, all rates are too low, and it is worth to measure again.
    Raises ValueError for counts, rates and times that cannot be, as a damaged file has them.
    """

    engine: Engine
    threads: int
    working_set_bytes: int
    copy_bandwidth: float
    read_bandwidth: float
    gemv_bandwidth: float
    call_overhead_s: float
    launch_overhead_s: float | None = None
    processor_share: float = 1.0
    last_level_cache_bytes: int | None = None
    measured_on: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        counts = {"threads": self.threads, "working_set_bytes": self.working_set_bytes}
        if self.last_level_cache_bytes is not None:
            counts["last_level_cache_bytes"] = self.last_level_cache_bytes
        for what, value in counts.items():
            if type(value) is not int or value < 1:
                raise ValueError(f"{what} of {self.name!r} must be an integer of at least 1, got {value!r}")
        for what in ("copy_bandwidth", "read_bandwidth", "gemv_bandwidth"):
            if not 0 < getattr(self, what) < float("inf"):
                raise ValueError(f"{what} of {self.name!r} must be a positive number, got {getattr(self, what)}")
        for what in ("call_overhead_s", "launch_overhead_s", "processor_share"):
            value = getattr(self, what)
            if value is not None and not 0 <= value < float("inf"):
                raise ValueError(f"{what} of {self.name!r} must be a number of at least 0, got {value}")
