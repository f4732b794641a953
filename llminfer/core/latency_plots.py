"""Pictures of time: what was measured against what was predicted, and how times spread."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator, PercentFormatter

from llminfer.core.plot_style import COLOURS, DASHES, HATCHES, MARKERS, check_alt, describe, new_axes, styled

Numbers = Sequence[float] | np.ndarray  # one-dimensional
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
PERCENTILES = (50, 95, 99)


@dataclass(frozen=True)
class Timed:
    """Times over something varied, in seconds: measured at each x, predicted at the same ones, or both.

    Raises ValueError when the lengths differ, a time is not positive, or there are no times.
    """

    name: str
    x: Numbers
    measured_s: Numbers | None = None
    predicted_s: Numbers | None = None

    def __post_init__(self) -> None:
        for what in ("measured_s", "predicted_s"):
            times = getattr(self, what)
            if times is None:
                continue
            if len(times) != len(self.x):
                raise ValueError(f"{what} of {self.name!r} needs a time for each x, got {len(times)} for {len(self.x)}")
            if not all(0 < time < float("inf") for time in times):
                raise ValueError(f"{what} of {self.name!r} must be positive seconds, got {list(times)}")
        if len(self.x) == 0 or (self.measured_s is None and self.predicted_s is None):
            raise ValueError(f"{self.name!r} has no points: there is nothing to draw")


@styled
def latency(
    series: Sequence[Timed],
    *,
    x_label: str,
    alt: str,
    title: str = "",
    log: bool = False,
    axes: Axes | None = None,
) -> Axes:
    """Measured times as points and predictions as lines, one shape and one dash for each series.

    `log` makes both axes logarithmic; otherwise time starts at 0, so that a ratio of times is a ratio of heights.
    """
    check_alt(alt)
    if not series:
        raise ValueError("series is empty: give at least one Timed")
    axes = axes or new_axes()
    times = [given for one in series for given in (one.measured_s, one.predicted_s) if given is not None]
    _scale_axes(axes, np.concatenate(times), log)
    for index, one in enumerate(series):
        colour, dashes = COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)]
        marker = MARKERS[index % len(MARKERS)]
        if one.predicted_s is not None:
            axes.plot(one.x, one.predicted_s, color=colour, linestyle=dashes, label=f"{one.name}, predicted")
        if one.measured_s is not None:
            axes.plot(
                one.x, one.measured_s, color=colour, marker=marker, markeredgecolor="black",
                label=f"{one.name}, measured", linestyle="" if one.predicted_s is not None else dashes,
            )  # fmt: skip
    axes.set(title=title, xlabel=x_label)
    axes.legend(loc="best")
    rows = [
        (one.name, float(x), *(None if of is None else float(of[index]) for of in (one.measured_s, one.predicted_s)))
        for one in series
        for index, x in enumerate(one.x)
    ]
    describe(axes, alt, ("series", x_label, "measured (s)", "predicted (s)"), rows)
    return axes


@styled
def latency_cdf(
    samples: Mapping[str, Numbers], *, alt: str, title: str = "", log: bool = False, axes: Axes | None = None
) -> Axes:
    """The share of requests that took at most so long: a step curve a series, median, 95th and 99th percentile marked.

    Times in seconds. A percentile is the smallest measured time that so many percent do not exceed: see `percentile`.
    One that so few times cannot bound from above is neither marked nor in the table: p99 takes 299, p95 takes 59.
    """
    check_alt(alt)
    _check_samples(samples)
    axes = axes or new_axes()
    rows = []
    for index, (name, times) in enumerate(samples.items()):
        ordered = np.sort(np.asarray(times, dtype=float))  # [R]
        colour, dashes = COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)]
        share = np.arange(1, len(ordered) + 1) / len(ordered)
        axes.step(ordered, share, where="post", color=colour, linestyle=dashes, label=name)
        marks = {p: percentile(ordered, p) for p in PERCENTILES if _is_bounded(p, len(ordered))}
        axes.plot(
            list(marks.values()), [p / 100 for p in marks], linestyle="", color=colour,
            marker=MARKERS[index % len(MARKERS)], markeredgecolor="black", zorder=3,
        )  # fmt: skip
        rows += [(name, len(ordered), *(marks.get(p) for p in PERCENTILES))]
    _scale_axes(axes, np.concatenate(list(samples.values())), log, vertical=False)
    axes.set(title=title, ylim=(0, 1.04), ylabel="requests that took at most this long")
    axes.set_yticks([0, 0.25, 0.5, 0.75, 0.95])
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    handles, _ = axes.get_legend_handles_labels()
    marked = [f"{p} %" for p in PERCENTILES if any(_is_bounded(p, len(times)) for times in samples.values())]
    if marked:
        look = {"linestyle": "", "marker": "o", "color": "white", "markeredgecolor": "black"}
        handles.append(Line2D([], [], label=", ".join(marked), **look))
    axes.legend(handles=handles, loc="lower right")
    describe(axes, alt, ("series", "requests", *(f"p{p} (s)" for p in PERCENTILES)), rows)
    return axes


@styled
def latency_percentiles(
    x: Numbers,
    samples: Mapping[str, Sequence[Numbers]],
    *,
    x_label: str,
    alt: str,
    title: str = "",
    log: bool = False,
    axes: Axes | None = None,
) -> Axes:
    """How a spread of times moves with x (load, batch, length): median as a line, median to 95th percentile as a band.

    `samples` holds, for each series, the times in seconds at each x. The 99th percentile is a thin line above the band.
    """
    check_alt(alt)
    for name, per_x in samples.items():
        if len(per_x) != len(x):
            raise ValueError(f"{name!r} needs a list of times for each x, got {len(per_x)} for {len(x)}")
        _check_samples({f"{name} at {at}": times for at, times in zip(x, per_x, strict=True)})
    axes = axes or new_axes()
    rows = []
    for index, (name, per_x) in enumerate(samples.items()):
        colour, dashes = COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)]
        middle, high, tail = ([percentile(times, percent) for times in per_x] for percent in PERCENTILES)
        axes.plot(
            x, middle, color=colour, linestyle=dashes, marker=MARKERS[index % len(MARKERS)], markeredgecolor="black",
            label=f"{name}, median",
        )  # fmt: skip
        axes.fill_between(
            x, middle, high, facecolor=(*_rgb(colour), 0.15), edgecolor=(*_rgb(colour), 0.6), linewidth=0,
            hatch=HATCHES[(index + 1) % len(HATCHES)], label=f"{name}, to 95 %",
        )  # fmt: skip
        axes.plot(x, tail, color=colour, linewidth=0.9, linestyle=dashes, label=f"{name}, 99 %")
        counts = [len(times) for times in per_x]
        rows += [(name, *row) for row in zip(map(float, x), counts, middle, high, tail, strict=True)]
    _scale_axes(axes, np.concatenate([times for per_x in samples.values() for times in per_x]), log)
    axes.set(title=title, xlabel=x_label)
    axes.legend(loc="best")
    describe(axes, alt, ("series", x_label, "requests", *(f"p{p} (s)" for p in PERCENTILES)), rows)
    return axes


def percentile(times: Numbers, percent: float) -> float:
    """The smallest of `times` that at least `percent` % of them do not exceed.

    Source: Hyndman and Fan 1996, definition 1 ("nearest rank"): always a time that was measured, never a mean of two.
    """
    return float(np.percentile(times, percent, method="inverted_cdf"))


def _is_bounded(percent: float, samples: int) -> bool:
    """Whether the largest of n independent times exceeds a percentile with 95 % confidence: n lie below it with p^n."""
    return (percent / 100) ** samples <= 0.05


def _check_samples(samples: Mapping[str, Numbers]) -> None:
    if not samples:
        raise ValueError("samples is empty: give at least one series of times")
    for name, times in samples.items():
        if len(times) == 0 or not all(0 < time < float("inf") for time in times):
            raise ValueError(f"the times of {name!r} must be positive seconds and at least one, got {list(times)[:5]}")


def _scale_axes(axes: Axes, times: np.ndarray, log: bool, vertical: bool = True) -> None:
    """Label the time axis in the unit that keeps its largest number readable."""
    factor, unit = next(((f, u) for f, u in UNITS if max(times) >= f), UNITS[-1])
    axis = axes.yaxis if vertical else axes.xaxis
    if log:
        axes.set(xscale="log", yscale="log") if vertical else axes.set(xscale="log")
        for scaled in {axes.xaxis, axis}:
            scaled.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            scaled.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / factor:g}"))
    axis.set_label_text(f"time ({unit})")
    if not log:
        (axes.set_ylim if vertical else axes.set_xlim)(0, 1.08 * max(times))


def _rgb(colour: str) -> tuple[float, float, float]:
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
