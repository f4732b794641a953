"""Pictures of chapter 3.1: how long one layer takes through each memory of four devices."""

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from llminfer.basics import layer_crossings, preset
from llminfer.core.hardware import device
from llminfer.core.plot_style import COLOURS, MARKERS, describe, new_axes, si, styled

MODEL = preset("llama-3-8b")
GPUS = ("h100-sxm", "a100-80gb", "mi300x", "rtx-4070")


@styled
def hierarchy() -> Axes:
    """Time of a layer's weights over each level; filled where the level can hold them all."""
    axes = new_axes(7.4, 4.2)
    crossings = {name: layer_crossings(MODEL, device(name)) for name in GPUS}
    levels = [crossing.level.name for crossing in crossings[GPUS[0]]]
    for index, name in enumerate(GPUS):
        look = {"color": COLOURS[index], "marker": MARKERS[index], "markeredgecolor": "black", "linestyle": ""}
        places = [(c.time_s, at + 0.16 * (index - 1.5), c) for at, c in enumerate(crossings[name]) if c.time_s]
        for time_s, at, crossing in places:
            axes.plot([1e-7, time_s], [at, at], color=COLOURS[index], linewidth=1, zorder=2)
            axes.plot(time_s, at, **look, fillstyle="full" if crossing.fits else "none", zorder=4)
            axes.text(time_s * 1.35, at, si(time_s, "s"), va="center", fontsize=8)
        axes.plot([], [], **look, label=device(name).name)
    axes.text(
        1.15e-7, levels.index("L2") + 0.3, "H100, RTX 4070: not published", fontsize=8, va="center", style="italic"
    )
    axes.set_yticks(range(len(levels)), levels)
    axes.set(xscale="log", xlim=(1e-7, 1e-1), ylim=(len(levels) - 0.5, -0.5), xlabel="time to move one layer")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: si(value, "s")))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.legend(loc="upper right", title="filled: the layer fits into it", title_fontsize=9)
    moved = crossings[GPUS[0]][0].bytes
    axes.set_title(f"One layer of Llama-3-8B, {si(moved, 'B')} in bfloat16, through each memory")
    describe(
        axes,
        "Time to move the weights of one layer of Llama-3-8B through registers, shared memory, L2, main memory and "
        "link of four GPUs, on a logarithmic axis. From each level to the next it takes two to thirty times as "
        "long: on an H100 1 microsecond, 14, 130 and 969. Only main memory, with filled marks, can hold the layer.",
        ("memory", "device", "capacity (bytes)", "bandwidth (bytes/s)", "time of a layer (s)"),
        [
            (c.level.name, device(name).name, c.level.capacity_bytes, c.level.bandwidth, c.time_s)
            for at in range(len(levels))
            for name in GPUS
            for c in [crossings[name][at]]
        ],
    )
    return axes


FIGURES = {"hierarchy": hierarchy}
