"""A memory hierarchy as a tower: the nearest and smallest memory on top, capacity to the left, time to the right.

Both sides are logarithmic, each in decades of its own unit, so a bar that is twice as long is not twice as much: the
numbers beside the bars are what to read, their lengths are what to compare.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from llminfer.core.plot_style import COLOURS, HATCHES, check_alt, describe, new_axes, si, styled

CAPACITY = {"facecolor": COLOURS[6], "hatch": HATCHES[0]}
TIME = {"facecolor": COLOURS[5], "hatch": HATCHES[1]}
NAMES = 0.34  # how much of the longer side the column of names takes, between the two sides


@dataclass(frozen=True)
class Tier:
    """One memory: what it holds, how fast it is read, and how long something given takes through it; None if unknown.

    Raises ValueError when a number is not positive.
    """

    name: str
    capacity_bytes: float | None
    bandwidth: float | None
    time_s: float | None

    def __post_init__(self) -> None:
        for what in ("capacity_bytes", "bandwidth", "time_s"):
            value = getattr(self, what)
            if value is not None and not 0 < value < float("inf"):
                raise ValueError(f"{what} of {self.name!r} must be positive, or None if unknown, got {value}")


@styled
def hierarchy(
    tiers: Sequence[Tier],
    *,
    moved: str,
    moved_bytes: float,
    alt: str,
    title: str = "",
    axes: Axes | None = None,
) -> Axes:
    """Draw memories as storeys of a tower, first on top; `moved` names what is moved, a dashed line shows its size.

    A capacity that reaches the line can hold it all. What is unknown is said in words, not drawn.
    """
    check_alt(alt)
    if not any(tier.capacity_bytes for tier in tiers) or not any(tier.time_s for tier in tiers):
        raise ValueError("a tower needs at least one memory with a capacity and one with a time")
    axes = axes or new_axes(8.6, 1.5 + 0.62 * len(tiers))
    sizes = [tier.capacity_bytes for tier in tiers if tier.capacity_bytes] + [moved_bytes]
    times = [tier.time_s for tier in tiers if tier.time_s]
    left, right = _Decades.over(sizes), _Decades.over(times)
    gap = NAMES * max(left.count, right.count)
    for row, tier in enumerate(tiers):
        axes.text(0, row, tier.name, ha="center", va="center", fontweight="bold")
        _bar(axes, row, -gap, -1, left, tier.capacity_bytes, _capacity(tier), CAPACITY)
        rate = f", {si(tier.bandwidth, 'B/s')}" if tier.bandwidth else ""
        time = "speed not published" if tier.time_s is None else f"{si(tier.time_s, 's')}{rate}"
        _bar(axes, row, gap, 1, right, tier.time_s, time, TIME)
    line = -gap - left.place(moved_bytes)
    axes.plot([line, line], [-0.5, len(tiers) - 0.5], color="black", linestyle=(0, (4, 2)), linewidth=1.2, zorder=4)
    label = f"{moved}: {si(moved_bytes, 'B')}"
    axes.text(line, -0.62, label, ha="center", va="bottom", fontsize=9)
    _finish(axes, len(tiers), gap, left, right, moved, title)
    rows = [(tier.name, tier.capacity_bytes, tier.bandwidth, tier.time_s) for tier in tiers]
    columns = ("memory", "capacity (bytes)", "bandwidth (bytes/s)", f"time of {moved} (s)")
    describe(axes, alt, columns, [*rows, (moved, moved_bytes, None, None)])
    return axes


@dataclass(frozen=True)
class _Decades:
    """A logarithmic scale from one power of ten to another, as lengths from 0 on."""

    low: int
    count: int

    @classmethod
    def over(cls, values: Sequence[float]) -> "_Decades":
        low = floor(log10(min(values)) - 0.3)  # so that the smallest bar has a length too
        return cls(low, ceil(log10(max(values)) + 1e-9) - low)

    def place(self, value: float) -> float:
        return log10(value) - self.low


def _capacity(tier: Tier) -> str:
    """A link has a speed and no size; a memory without either is one whose maker is silent."""
    if tier.capacity_bytes is None:
        return "" if tier.bandwidth else "size not published"
    return si(tier.capacity_bytes, "B")


def _bar(
    axes: Axes, row: int, start: float, side: int, scale: _Decades, value: float | None, text: str, look: dict[str, str]
) -> None:
    """A bar from the column of names outwards, its number behind its end; the words alone where there is no value."""
    length = 0.0 if value is None else scale.place(value)
    if value is not None:
        axes.barh(row, side * length, left=start, height=0.66, edgecolor="black", linewidth=0.7, **look)
    axes.text(
        start + side * (length + 0.12), row, text, ha="left" if side > 0 else "right", va="center", fontsize=9,
        style="normal" if value is not None else "italic", zorder=5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 1.0},
    )  # fmt: skip


def _finish(axes: Axes, rows: int, gap: float, left: _Decades, right: _Decades, moved: str, title: str) -> None:
    axes.set_ylim(rows - 0.4, -1.15)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    room = 0.42 * max(left.count, right.count)  # for the numbers behind the longest bars
    axes.set_xlim(-gap - left.count - 0.6 * room, gap + right.count + room)
    every = 2 if left.count + right.count > 9 else 1
    ticks_left = [(-gap - d, si(10.0 ** (left.low + d), "B")) for d in range(0, left.count + 1, every)]
    ticks_right = [(gap + d, si(10.0 ** (right.low + d), "s")) for d in range(0, right.count + 1, every)]
    places, labels = zip(*ticks_left, *ticks_right, strict=True)
    axes.set_xticks(places, labels)
    axes.set(title=title, xlabel=f"capacity (to the left) and time to move {moved} (to the right), both logarithmic")
    patches = [
        Patch(edgecolor="black", linewidth=0.7, label="capacity", **CAPACITY),
        Patch(edgecolor="black", linewidth=0.7, label="time", **TIME),
    ]
    axes.legend(handles=patches, loc="upper right")
