"""The picture of the tour, one page: this machine's roofline among three others, and what memory allows each."""

from dataclasses import replace
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from llminfer.basics.config import ModelConfig
from llminfer.basics.parameters import parameter_count
from llminfer.basics.presets import preset
from llminfer.basics.rooflines import decode_ceiling
from llminfer.core.hardware import Device, device
from llminfer.core.measurement import MeasuredDevice
from llminfer.core.plot_style import COLOURS, MARKERS, describe, new_axes, save_png, si, styled
from llminfer.core.roofline_plot import Achieved, Roof, roofline
from llminfer.tour import DecodeStep

BESIDE = ("h100-sxm", "rtx-4070", "mi300x")
MODELS = ("smollm2-135m", "llama-3.1-8b", "llama-3.1-70b")
HALF = 2  # bytes a weight takes in 16 bits
SLOWEST = 0.05  # tokens/s at the left edge


def save_page(machine: MeasuredDevice, model: str, step: DecodeStep, path: Path) -> Path:
    """Draw the page and save it as PNG, with the same in words in its description."""
    return save_png(draw_page(machine, model, step), path)


@styled
def draw_page(machine: MeasuredDevice, model: str, step: DecodeStep) -> Figure:
    """Rooflines above, tokens per second below."""
    figure = new_axes(8.3, 11.2).figure
    figure.clear()
    above, below = figure.subplots(2, 1, height_ratios=(1.0, 0.9))
    figure.suptitle("Your machine beside an H100, an RTX 4070 and an MI300X", x=0.02, ha="left", fontsize=14)
    facts = f"{machine.name}, {machine.threads} threads, as measured on {machine.measured_on}; the others by data sheet"
    figure.supxlabel(facts, fontsize=9)
    machine = replace(machine, name="your machine")  # processors have long names
    others = [device(name) for name in BESIDE]
    _draw_rooflines(above, machine, others, model, step)
    _draw_ceilings(below, [machine, *others])
    return figure


def _draw_rooflines(axes: Axes, machine: MeasuredDevice, others: list[Device], model: str, step: DecodeStep) -> None:
    mine = Roof.of(machine, "float32")
    roofs, under = [mine], mine
    quickest_s = min(step.reading_s, step.measured_s)  # a step reads the weights too
    bandwidth, peak = step.cost.bytes / quickest_s, step.cost.flops / quickest_s
    if bandwidth > machine.bandwidth or peak > mine.peak_flops:  # the peak: if other programs lowered it when measured
        bandwidth, peak = max(bandwidth, machine.bandwidth), max(peak, mine.peak_flops)
        under = Roof(f"{machine.name}, from its cache", bandwidth, peak)
        roofs.append(under)
    point = Achieved.of(f"{model}, one token", step.cost, step.measured_s, under.name)
    share = point.flops / under.attainable(point.intensity)
    ratios = ", ".join(f"{other.name} {other.bandwidth / machine.bandwidth:.0f} times" for other in others)
    roofline(
        roofs + [Roof.of(other, "bfloat16") for other in others],
        [point],
        title="What each can do at most",
        alt=f"Rooflines of this machine and three accelerators. This machine reads {si(machine.bandwidth, 'B/s')} and "
        f"computes {si(mine.peak_flops, 'FLOP/s')}; of its bandwidth the others have: {ratios}. Choosing one token "
        f"with {model} lies far left of every ridge, at {share:.0%} of its roof.",
        axes=axes,
    )


def _draw_ceilings(axes: Axes, devices: list[Device]) -> None:
    """A row for each model and device: tokens per second as a point, or that the weights do not fit."""
    rows, labels = [], []
    for config in map(preset, MODELS):
        weights_gb = parameter_count(config).total * HALF / 1e9
        axes.axhline(len(labels) - 0.6, color="#999999", linewidth=0.8)
        labels.append(f"{config.name}, {weights_gb:.3g} GB")
        for index, one in enumerate(devices):
            speed = _ceiling(config, one)
            _draw_ceiling(axes, len(labels), one, speed, COLOURS[index], MARKERS[index])
            labels.append(one.name)
            rows.append((config.name, one.name, weights_gb, speed))
    axes.set(xscale="log", xlim=(SLOWEST, 20 * max(row[3] or 0 for row in rows)), ylim=(len(labels) - 0.4, -0.7))
    axes.set_yticks(range(len(labels)), labels)
    for label in axes.get_yticklabels()[:: len(devices) + 1]:
        label.set_fontweight("bold")
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.set_xlabel("tokens per second (logarithmic)")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_title("What the roofline allows one sequence, weights in 16 bits")
    fastest = max((row for row in rows if row[3]), key=lambda row: row[3])
    describe(
        axes,
        f"Tokens per second at most, with weights of 16 bits, for {len(MODELS)} models on {len(devices)} devices. "
        f"The fastest is {fastest[0]} on {fastest[1]}; the larger models do not fit everywhere.",
        ("model", "device", "weights (GB)", "tokens/s at most"),
        rows,
    )


def _draw_ceiling(axes: Axes, at: int, one: Device, speed: float | None, colour: str, marker: str) -> None:
    if speed is None:
        axes.text(1.2 * SLOWEST, at, f"does not fit in {one.memory_bytes / 1e9:.0f} GB", va="center", style="italic")
        return
    axes.plot([SLOWEST, speed], [at, at], color="#999999", linestyle=":", linewidth=1)
    axes.plot(speed, at, color=colour, marker=marker, markeredgecolor="black", linestyle="")
    number = f"{speed:,.0f}" if speed >= 100 else f"{speed:.3g}"
    axes.annotate(number, (speed, at), xytext=(9, 0), textcoords="offset points", va="center")


def _ceiling(config: ModelConfig, one: Device) -> float | None:
    """Tokens per second with nothing in the context, or None where the weights do not fit."""
    if parameter_count(config).total * HALF > one.memory_bytes:
        return None
    math = "bfloat16" if "bfloat16" in one.peak_flops else "float32"
    return decode_ceiling(config, one, weights="bfloat16", math=math)
