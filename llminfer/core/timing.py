"""What timing a pair gives: seconds, and what they amount to beside the cost of the idea and the roof of a device."""

from dataclasses import asdict, dataclass
from typing import Protocol, runtime_checkable

from llminfer.core.cost import Cost

ROOF_MARGIN = 1.05
"""Faster than this many times the roof is not a fast kernel but a wrong clock, a wrong cost or a wrong roof."""


@runtime_checkable
class RoofLike(Protocol):
    """What a roofline needs of a device: `core.hardware.Device` and `Roof` have it. Bytes/s and FLOP/s."""

    name: str
    bandwidth: float

    def flops(self, dtype: str) -> float: ...


@dataclass(frozen=True)
class Roof:
    """A device as two numbers: bytes/s, and FLOP/s whatever the dtype."""

    name: str
    bandwidth: float
    peak_flops: float

    def flops(self, dtype: str) -> float:
        return self.peak_flops


def bound_s(cost: Cost, roof: RoofLike, dtype: str) -> float | None:
    """The least time in seconds that `cost` can take under `roof`: its memory traffic or its arithmetic, the slower.

    None where the device has no rate for arithmetic in `dtype`; a pure copy needs none.
    Source: Williams, Waterman and Patterson 2009. Book section 3.1.4.
    """
    if not cost.flops:
        return cost.bytes / roof.bandwidth
    try:
        peak = roof.flops(dtype)
    except ValueError:
        return None
    return max(cost.bytes / roof.bandwidth, cost.flops / peak)


@dataclass(frozen=True)
class Timing:
    """One implementation's median time in seconds over `repeats` calls; None where it was not timed, and why."""

    implementation: str
    seconds: float | None
    repeats: int = 0
    note: str = ""


@dataclass(frozen=True)
class Measurement:
    """All timings of a pair on one case.

    machine:        the processor or GPU they are of.
    roof_seconds:   the bound of the device given as roof, or None.
    predictions:    device name -> bound in seconds of the idea there, None where it lacks the dtype. A bound is not a
                    measurement.
    """

    pair: str
    dtype: str
    shapes: str
    machine: str
    cost: Cost
    timings: tuple[Timing, ...]
    roof_seconds: float | None
    predictions: dict[str, float | None]

    def seconds(self, implementation: str) -> float | None:
        """Median time of one implementation; None where it was not timed here."""
        return next((timing.seconds for timing in self.timings if timing.implementation == implementation), None)

    def bytes_per_s(self, implementation: str) -> float | None:
        """The least traffic of the idea over the time taken: effective bandwidth."""
        seconds = self.seconds(implementation)
        return self.cost.bytes / seconds if seconds else None

    def flops_per_s(self, implementation: str) -> float | None:
        seconds = self.seconds(implementation)
        return self.cost.flops / seconds if seconds else None

    def share_of_roof(self, implementation: str) -> float | None:
        """1 is as fast as the roof allows; None without a roof or a time."""
        seconds = self.seconds(implementation)
        return self.roof_seconds / seconds if self.roof_seconds and seconds else None

    @property
    def above_roof(self) -> tuple[str, ...]:
        """Implementations that came out faster than the roof allows: the measurement, the cost or the roof is wrong."""
        shares = {t.implementation: self.share_of_roof(t.implementation) for t in self.timings}
        return tuple(name for name, share in shares.items() if share is not None and share > ROOF_MARGIN)

    def require_below_roof(self) -> "Measurement":
        """This measurement; raises ValueError if a point of it lies above the roof."""
        if self.above_roof:
            shares = ", ".join(f"{name} {self.share_of_roof(name):.2f}" for name in self.above_roof)
            raise ValueError(
                f"{self.pair} on {self.machine} is faster than its roof allows ({shares} times the roof): the clock, "
                "the cost or the roof is wrong; measure the device anew, then look at the cost function"
            )
        return self

    def as_dict(self) -> dict:
        """Plain data for JSON, with the rates worked out."""
        rates = {
            timing.implementation: {
                "bytes_per_s": self.bytes_per_s(timing.implementation),
                "flops_per_s": self.flops_per_s(timing.implementation),
                "share_of_roof": self.share_of_roof(timing.implementation),
            }
            for timing in self.timings
        }
        timings = [asdict(timing) | rates[timing.implementation] for timing in self.timings]
        return asdict(self) | {"timings": timings, "above_roof": list(self.above_roof)}
