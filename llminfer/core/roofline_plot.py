"""The roofline: how fast work can be at all, given how many FLOPs it does with each byte.

Left of the ridge a roof rises with the bandwidth, right of it it is flat at the peak. A point is something measured;
what it falls short of its roof is what is left to gain.
Source: Williams, Waterman and Patterson 2009. Book section 3.1.4.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from llminfer.core.cost import Cost
from llminfer.core.hardware import Device
from llminfer.core.plot_style import COLOURS, DASHES, MARKERS, check_alt, describe, new_axes, si, styled


@dataclass(frozen=True)
class Roof:
    """One bandwidth and one peak: HBM with bfloat16, the same chip's L2, another device."""

    name: str
    bandwidth: float
    peak_flops: float

    @classmethod
    def of(cls, device: Device, dtype: str) -> "Roof":
        """The roof of a device's main memory and its rate for `dtype`."""
        return cls(f"{device.name}, {dtype}", device.bandwidth, device.flops(dtype))

    @property
    def ridge(self) -> float:
        """FLOPs per byte where memory and arithmetic take equally long."""
        return self.peak_flops / self.bandwidth

    def attainable(self, intensity: float) -> float:
        """The most FLOP/s that work of this intensity (FLOPs per byte) can reach."""
        return min(self.peak_flops, self.bandwidth * intensity)


@dataclass(frozen=True)
class Achieved:
    """Something measured: FLOPs per byte, FLOP/s, and the name of the roof it stands under (None: the first).

    Points of one name are joined, as for a sweep over batch sizes.
    """

    name: str
    intensity: float
    flops: float
    roof: str | None = None

    @classmethod
    def of(cls, name: str, cost: Cost, seconds: float, roof: str | None = None) -> "Achieved":
        """What a run of known cost reached in `seconds`."""
        return cls(name, cost.intensity, cost.flops / seconds, roof)


@styled
def roofline(
    roofs: Sequence[Roof],
    points: Sequence[Achieved] = (),
    *,
    alt: str,
    title: str = "",
    margin: float = 0.05,
    axes: Axes | None = None,
) -> Axes:
    """Draw points under roofs, both axes logarithmic, the sides of the first roof's ridge shaded and named.

    `margin` is how far measuring noise may lift a point above its roof. A point higher than that raises ValueError:
    no machine is faster than it can be, so the time, the cost or the roof is wrong.
    """
    check_alt(alt)
    if not roofs:
        raise ValueError("roofs is empty: draw at least one, such as Roof.of(device('h100-sxm'), 'bfloat16')")
    shares = [_share(roofs, point, margin) for point in points]
    axes = axes or new_axes(7.5, 5.4)
    low, high = _intensities(roofs, points)
    _shade(axes, roofs[0], low, high)
    for index, roof in enumerate(roofs):
        _draw_roof(axes, roof, DASHES[index % len(DASHES)], low, high)
    for index, name in enumerate(dict.fromkeys(point.name for point in points)):
        series = [(point, share) for point, share in zip(points, shares, strict=True) if point.name == name]
        _draw_points(axes, name, series, COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)])
    _scale(axes, roofs, points, low, high)
    _write_shares(axes, roofs[0].ridge, points, shares)
    axes.set(title=title, xlabel="arithmetic intensity (FLOP per byte)", ylabel="FLOP/s")
    _write_legends(axes, len(roofs))
    describe(axes, alt, ("what", "FLOP/byte", "FLOP/s", "% of roof", "roof"), _rows(roofs, points, shares))
    return axes


def _roof_of(roofs: Sequence[Roof], point: Achieved) -> Roof:
    if point.roof is None:
        return roofs[0]
    for roof in roofs:
        if roof.name == point.roof:
            return roof
    raise ValueError(f"{point.name!r} names the roof {point.roof!r}; drawn are {', '.join(r.name for r in roofs)}")


def _share(roofs: Sequence[Roof], point: Achieved, margin: float) -> float:
    """What part of its roof a point reaches."""
    if not (0 < point.intensity < float("inf") and 0 < point.flops < float("inf")):
        raise ValueError(f"{point.name!r} needs a positive intensity and rate, got {point.intensity} and {point.flops}")
    roof = _roof_of(roofs, point)
    share = point.flops / roof.attainable(point.intensity)
    if share > 1 + margin:
        raise ValueError(
            f"{point.name!r} lies at {share:.0%} of the roof of {roof.name}, above it by more than the margin of "
            f"{margin:.0%}: the time is too short, the cost too high, or the roof too low (its data may fit a cache)"
        )
    return share


def _intensities(roofs: Sequence[Roof], points: Sequence[Achieved]) -> tuple[float, float]:
    """The span of the horizontal axis: everything drawn, with room on both sides, from a power of two to another."""
    shown = [roof.ridge for roof in roofs] + [point.intensity for point in points]
    return 2.0 ** np.floor(log2(min(shown)) - 4), 2.0 ** np.ceil(log2(max(shown)) + 3)


def _shade(axes: Axes, roof: Roof, low: float, high: float) -> None:
    axes.axvspan(low, roof.ridge, color="#F0F0F0", zorder=0, linewidth=0)
    axes.axvline(roof.ridge, color="#999999", linewidth=0.8, zorder=1)
    for at, word in ((low, "memory-bound"), (high, "compute-bound")):
        between = (at * roof.ridge) ** 0.5
        axes.text(between, 0.97, word, transform=axes.get_xaxis_transform(), ha="center", va="top", style="italic")
    ridge = f" ridge {roof.ridge:.3g}"
    axes.text(roof.ridge, 0.02, ridge, transform=axes.get_xaxis_transform(), ha="left", va="bottom", fontsize=9)


def _draw_roof(axes: Axes, roof: Roof, dashes: object, low: float, high: float) -> None:
    numbers = f"{si(roof.peak_flops, 'FLOP/s')}, {si(roof.bandwidth, 'B/s')}, ridge {roof.ridge:.3g} FLOP/byte"
    corners = [low, roof.ridge, high]
    heights = [roof.attainable(x) for x in corners]
    axes.plot(corners, heights, color="black", linestyle=dashes, label=f"{roof.name}\n{numbers}", zorder=2)


def _draw_points(axes: Axes, name: str, series: list[tuple[Achieved, float]], colour: str, marker: str) -> None:
    """A marker each, joined when several."""
    x, y = [point.intensity for point, _ in series], [point.flops for point, _ in series]
    shares = f"{series[0][1]:.0%}" if len(series) == 1 else f"{series[0][1]:.0%} to {series[-1][1]:.0%}"
    axes.plot(
        x, y, color=colour, marker=marker, linestyle=":" if len(series) > 1 else "", linewidth=1.2,
        markeredgecolor="black", zorder=4, label=f"{name}: {shares} of roof",
    )  # fmt: skip


def _write_shares(axes: Axes, ridge: float, points: Sequence[Achieved], shares: Sequence[float]) -> None:
    """The share of the roof beside both ends of a series, unless another text is so near that they would run together.

    Places are fractions of the axes, so that they hold whatever size the axes are given later.
    """

    def place(x: float, y: float) -> tuple[float, float]:
        return tuple(axes.transAxes.inverted().transform(axes.transData.transform((x, y))))

    names = [point.name for point in points]
    at_ridge = place(ridge, axes.get_ylim()[0])[0]
    written = [(at_ridge, 0.04), (at_ridge + 0.09, 0.04)]  # the two ends of "ridge ..."
    for index, (point, share) in enumerate(zip(points, shares, strict=True)):
        if point.name in names[:index] and point.name in names[index + 1 :]:
            continue
        at = place(point.intensity, point.flops)
        if all(abs(at[0] - x) > 0.09 or abs(at[1] - y) > 0.06 for x, y in written):
            axes.annotate(
                f"{share:.0%}", (point.intensity, point.flops), xytext=(7, -5), textcoords="offset points",
                ha="left", va="top", fontsize=9, zorder=5,
            )  # fmt: skip
            written.append(at)


def _write_legends(axes: Axes, roofs: int) -> None:
    """Below the axes, and below what is written under them: roofs on the left, what was measured on the right."""
    handles, labels = axes.get_legend_handles_labels()
    below = axes.transAxes + ScaledTranslation(0, -44 / 72, axes.figure.dpi_scale_trans)  # 44 points of 1/72 inch
    place = {"loc": "upper left", "borderaxespad": 0, "bbox_transform": below}
    left = axes.legend(handles[:roofs], labels[:roofs], bbox_to_anchor=(0.0, 0.0), **place)
    if handles[roofs:]:
        axes.add_artist(left)  # a second legend would replace the first
        left.set_clip_on(False)  # what is clipped gets no room in the layout
        axes.legend(handles[roofs:], labels[roofs:], bbox_to_anchor=(0.56, 0.0), **place)


def _scale(axes: Axes, roofs: Sequence[Roof], points: Sequence[Achieved], low: float, high: float) -> None:
    floor = min([roof.attainable(low) for roof in roofs] + [point.flops / 4 for point in points])
    axes.set(xscale="log", yscale="log", xlim=(low, high))
    axes.set_ylim(floor, max(roof.peak_flops for roof in roofs) * 6)  # room for the names of the two sides
    axes.xaxis.set_major_locator(LogLocator(base=4 if high / low < 2**14 else 16))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value >= 1 else f"1/{1 / value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: si(value, "")))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())


def _rows(roofs: Sequence[Roof], points: Sequence[Achieved], shares: Sequence[float]) -> list[tuple[object, ...]]:
    ridges = [(f"ridge of {roof.name}", roof.ridge, roof.peak_flops, None, roof.name) for roof in roofs]
    return ridges + [
        (point.name, point.intensity, point.flops, 100 * share, _roof_of(roofs, point).name)
        for point, share in zip(points, shares, strict=True)
    ]
