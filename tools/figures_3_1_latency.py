"""Pictures of chapter 3.1: one request as a timeline, by the definitions of seven tools, and what a sample can know."""

from statistics import median

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, PercentFormatter

from llminfer.basics import (
    Chunk,
    RequestTrace,
    ToolReading,
    dispatch_delay,
    e2e,
    itls,
    samples_needed,
    tool_readings,
    tpot,
    ttft,
)
from llminfer.core.plot_style import COLOURS, DASHES, MARKERS, describe, new_axes, styled

# Due at -0.25 s, sent at 0; a chunk of 3 tokens at 0.5 s, then one token every 0.25 s up to 2.5 s: N = 11.
WORKED = RequestTrace(-0.25, 0.0, (Chunk(0.5, 3), *(Chunk(0.5 + 0.25 * i) for i in range(1, 9))), 2.5)
# The same wait for the first token; then 4 tokens every 0.2 s, a token being made every 0.05 s.
BUNDLED = RequestTrace(0.0, 0.0, (Chunk(0.5), *(Chunk(0.5 + 0.2 * i, 4) for i in range(1, 11))), 2.5)


@styled
def request() -> Axes:
    """When each chunk of one request came, and the latencies as lengths."""
    axes = new_axes(7.6, 3.6)
    trace = WORKED
    first, n = trace.chunks[0].time_s, trace.output_tokens
    for at, name in ((trace.scheduled_s, "due"), (trace.sent_s, "sent"), (trace.end_s, "end")):
        axes.plot([at, at], [-4.3, 1.6], color="black", linewidth=1, linestyle=":", zorder=1)
        axes.text(at, 1.75, name, ha="center", va="bottom", fontsize=9, style="italic")
    for chunk in trace.chunks:
        for row in range(chunk.tokens):
            axes.add_patch(
                Rectangle((chunk.time_s - 0.035, 0.42 * row), 0.07, 0.36, facecolor=COLOURS[6], edgecolor="black")
            )
    lengths = (
        ("held back", trace.scheduled_s, trace.sent_s, -1, dispatch_delay(trace)),
        ("TTFT", trace.sent_s, first, -1, ttft(trace)),
        ("E2E", trace.sent_s, trace.end_s, -4, e2e(trace)),
    )
    rows = []
    for name, start, end, row, seconds in lengths:
        _length(axes, start, end, row)
        between = "\n" if name == "held back" else " "  # the shortest of them
        label = f"{name}{between}{1e3 * seconds:.0f} ms"
        axes.text((start + end) / 2, row + 0.14, label, ha="center", va="bottom", fontsize=8.5, linespacing=1.0)
        rows.append((name, start, end, seconds))
    waits = itls(trace)
    for name, row, steps in (
        ("ITL", -2, first + np.concatenate([[0], np.cumsum(waits)])),
        ("TPOT", -3, first + tpot(trace) * np.arange(n)),
    ):
        for start, end in zip(steps, steps[1:], strict=False):
            _length(axes, start, end, row)
        seconds = float(np.mean(np.diff(steps)))
        label = f"{name} {len(steps) - 1} × {1e3 * seconds:.0f} ms"
        background = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        axes.text(first - 0.03, row, label, ha="right", va="center", fontsize=8.5, bbox=background)
        rows.append((f"{name}, {len(steps) - 1} times", float(steps[0]), float(steps[-1]), seconds))
    axes.set(xlim=(-0.36, 2.62), ylim=(-4.6, 2.4), xlabel="seconds since the request was sent", yticks=())
    axes.spines["left"].set_visible(False)
    axes.grid(False)
    axes.set_title("One request of 11 tokens, of which 3 came at once")
    describe(
        axes,
        "Timeline of one request: due, held back by its client for a quarter of a second, sent; 3 tokens after 0.5 s, "
        "then 8 single ones every 0.25 s until 2.5 s. TTFT is 500 ms, E2E 2500 ms; TPOT cuts the 2 s between into 10 "
        "equal parts of 200 ms, while the reader waits 8 times for 250 ms.",
        ("latency", "from (s)", "to (s)", "each (s)"),
        rows,
    )
    return axes


def _length(axes: Axes, start: float, end: float, row: float) -> None:
    arrow = {"arrowstyle": "|-|, widthA=0.28, widthB=0.28", "color": "black", "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (end, row), (start, row), arrowprops=arrow)


KINDS = {  # what a tool prints -> its mark
    "TPOT": (COLOURS[0], MARKERS[1]),
    "ITL, one value a request": (COLOURS[1], MARKERS[0]),
    "ITL, median of pooled gaps": (COLOURS[2], MARKERS[2]),
    "normalized TPOT": (COLOURS[3], MARKERS[3]),
}


@styled
def tools() -> Figure:
    """Two requests by seven definitions."""
    figure = new_axes(7.6, 5.2).figure
    figure.clear()
    panels = figure.subplots(1, 2, sharey=True)
    titles = ("3 tokens first, then one by one", "4 tokens at a time, one made each 50 ms")
    rows = []
    for axes, trace, title in zip(panels, (WORKED, BUNDLED), titles, strict=True):
        rows += _draw_readings(axes, tool_readings(trace), title)
        axes.set_title(title, fontsize=10)
    handles = [
        panels[0].plot([], [], color=colour, marker=marker, markeredgecolor="black", linestyle="", label=name)[0]
        for name, (colour, marker) in KINDS.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    describe(
        panels[0],
        "Times per token of two requests by the definitions of seven tools. For the first, TPOT is 200 or 227 ms and "
        "ITL is 200, 227 or 250 ms. For the second, whose server sends four tokens at a time, ITL is 200 ms in vLLM "
        "and SGLang, 0 in inference-perf, 50 ms in AIPerf and GuideLLM, and 61 ms in llmperf.",
        ("request", "tool", "TPOT (ms)", "ITL (ms)", "normalized TPOT (ms)", "TTFT (ms)", "E2E (ms)"),
        rows,
    )
    return figure


def _draw_readings(axes: Axes, readings: list[ToolReading], title: str) -> list[tuple]:
    rows = []
    for row, reading in enumerate(readings):
        gaps = reading.itl_s
        pooled = gaps is not None and len(gaps) > 1
        values = {
            "TPOT": reading.tpot_s,
            "ITL, one value a request": gaps[0] if gaps is not None and not pooled else None,
            "ITL, median of pooled gaps": median(gaps) if pooled else None,
            "normalized TPOT": reading.normalized_tpot_s,
        }
        present = [(name, 1e3 * value) for name, value in values.items() if value is not None]
        for place, (name, value) in enumerate(present):
            colour, marker = KINDS[name]
            at = row + 0.28 * (place - (len(present) - 1) / 2)
            axes.plot(value, at, color=colour, marker=marker, markeredgecolor="black", clip_on=False, zorder=4)
            axes.text(value + 9, at, f"{value:.0f}", va="center", fontsize=8)
        itl = values["ITL, one value a request"] if values["ITL, median of pooled gaps"] is None else median(gaps)
        numbers = (reading.tpot_s, itl, reading.normalized_tpot_s, reading.ttft_s, reading.e2e_s)
        rows.append((title, reading.tool, *(None if number is None else 1e3 * number for number in numbers)))
    axes.set_yticks(range(len(readings)), [reading.tool for reading in readings])
    axes.set(xlim=(0, 285), ylim=(len(readings) - 0.5, -0.5), xlabel="milliseconds", xticks=(0, 50, 100, 150, 200, 250))
    axes.tick_params(axis="y", length=0)
    for edge in range(1, len(readings)):
        axes.axhline(edge - 0.5, color="#DDDDDD", linewidth=0.6)
    axes.grid(False, axis="y")
    return rows


@styled
def samples() -> Axes:
    """How often all of n times lie below a percentile."""
    axes = new_axes(7.4, 3.7)
    times = np.unique(np.geomspace(1, 10_000, 200).astype(int))
    rows = []
    for index, percent in enumerate((90, 95, 99, 99.9)):
        below = (percent / 100) ** times
        needed = samples_needed(percent, sided=1)
        label = f"p{percent:g}: n = {needed:,}"
        axes.plot(times, below, color=COLOURS[index], linestyle=DASHES[index], label=label)
        look = {"color": COLOURS[index], "marker": MARKERS[index], "markeredgecolor": "black", "linestyle": ""}
        axes.plot(needed, (percent / 100) ** needed, **look, zorder=4)
        rows += [(f"p{percent:g}", n, 100 * (percent / 100) ** n) for n in sorted({10, 100, 1000, needed})]
    axes.axhline(0.05, color="black", linewidth=1)
    axes.text(9_500, 0.06, "5 %", fontsize=9, va="bottom", ha="right")
    axes.set(xscale="log", xlim=(1, 10_000), ylim=(0, 1.02), xlabel="independent times n")
    axes.set_ylabel("chance that all lie below it")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 0.06))
    axes.set_title("The largest of n times as a bound for a percentile")
    describe(
        axes,
        "Chance that all of n independent times lie below a percentile, so that even the largest is too small. For p99 "
        "it is 37 % with 100 times and falls to 5 % with 299; for p90 it takes 29 times, for p95 59, for p99.9 2,995.",
        ("percentile", "times n", "chance that all lie below (%)"),
        rows,
    )
    return axes


FIGURES = {"request": request, "tools": tools, "samples": samples}
