"""The times of pairs in one picture: measured where they were measured, and what a kernel could do at best elsewhere.

A prediction is drawn hollow and named as one. What only an interpreter ran has no time, and no mark.
"""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from llminfer.core.latency_plots import UNITS
from llminfer.core.plot_style import COLOURS, MARKERS, check_alt, describe, new_axes, styled
from llminfer.core.timing import Measurement

WORDS = {"reference": "NumPy", "baseline": "torch"}  # of implementations that a reader knows by another name


@styled
def pair_times(measurements: Sequence[Measurement], *, alt: str, title: str = "", axes: Axes | None = None) -> Axes:
    """A row for each pair, time along it: filled marks were measured, hollow ones are bounds of the devices named.

    Raises ValueError when there is nothing to draw.
    """
    check_alt(alt)
    if not measurements:
        raise ValueError("measurements is empty: give at least one, from core.pairs.measure(pair, ...)")
    axes = axes or new_axes(8.4, 1.9 + 0.62 * len(measurements))
    times = [_times(measurement) for measurement in measurements]
    for row, of_pair in enumerate(times):
        axes.plot([min(of_pair.values()), max(of_pair.values())], [row, row], color="#BBBBBB", linewidth=1)
    for index, what in enumerate(dict.fromkeys(what for of_pair in times for what in of_pair)):
        rows = [row for row, of_pair in enumerate(times) if what in of_pair]
        axes.plot([times[row][what] for row in rows], rows, **_look(index, what), label=what, zorder=4)
    _scale(axes, [f"{one.pair}\n{one.dtype}" for one in measurements], [t for each in times for t in each.values()])
    axes.set_title(title)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)
    table = [
        (one.pair, f"{one.shapes}, {one.dtype}", what, seconds)
        for one, of_pair in zip(measurements, times, strict=True)
        for what, seconds in of_pair.items()
    ]
    describe(axes, alt, ("pair", "input", "what", "time (s)"), table)
    return axes


def _times(measurement: Measurement) -> dict[str, float]:
    """What -> seconds, of all that has a time: measured first, then bounds."""
    measured = {
        f"{WORDS.get(timing.implementation, timing.implementation)}, measured": timing.seconds
        for timing in measurement.timings
    }
    bounds = {"bound of this machine": measurement.roof_seconds}
    bounds |= {f"bound on {name}": seconds for name, seconds in measurement.predictions.items()}
    return {what: seconds for what, seconds in (measured | bounds).items() if seconds is not None}


def _look(index: int, what: str) -> dict[str, object]:
    """A marker and colour of its own for each kind of time; bounds are hollow."""
    colour, hollow = COLOURS[index % len(COLOURS)], what.startswith("bound")
    return {
        "linestyle": "",
        "marker": MARKERS[index % len(MARKERS)],
        "markerfacecolor": "white" if hollow else colour,
        "markeredgecolor": colour if hollow else "black",
        "markeredgewidth": 1.6 if hollow else 0.8,
    }


def _scale(axes: Axes, names: Sequence[str], seconds: Sequence[float]) -> None:
    middle = (min(seconds) * max(seconds)) ** 0.5
    factor, unit = next(((f, u) for f, u in UNITS if middle >= f), UNITS[-1])
    axes.set_yticks(range(len(names)), names)
    axes.set(xscale="log", xlim=(min(seconds) / 2, max(seconds) * 2), ylim=(len(names) - 0.5, -0.5))
    axes.xaxis.set_major_locator(LogLocator(base=10))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / factor:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.set_xlabel(f"time ({unit}), logarithmic")
