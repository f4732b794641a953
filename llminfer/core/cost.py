"""What an idea costs at the very least: arithmetic and memory traffic, counted before any clock is started."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """The work no implementation can avoid: every input byte read once, every output byte written once.

    A multiply and an add are two FLOPs. Costs add up with `+` and repeat with `*`.
    Raises ValueError when a count is negative.
    Source: Williams, Waterman and Patterson 2009, "Roofline", section 3. Book section 3.1.4.
    """

    flops: float
    read_bytes: float
    write_bytes: float

    def __post_init__(self) -> None:
        for name in ("flops", "read_bytes", "write_bytes"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be a number of at least 0, got {getattr(self, name)}")

    @property
    def bytes(self) -> float:
        """Bytes that cross the memory bus, both ways."""
        return self.read_bytes + self.write_bytes

    @property
    def intensity(self) -> float:
        """Arithmetic intensity in FLOPs per byte; 0 for pure data movement, infinite without any."""
        if self.bytes == 0:
            return float("inf") if self.flops else 0.0
        return self.flops / self.bytes

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.flops + other.flops, self.read_bytes + other.read_bytes, self.write_bytes + other.write_bytes)

    def __mul__(self, times: float) -> "Cost":
        return Cost(self.flops * times, self.read_bytes * times, self.write_bytes * times)

    __rmul__ = __mul__
