"""Pictures of chapter 3.1: what a step costs, how long it takes at best. All numbers are of presets and devices."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter

from llminfer.basics import (
    Segment,
    critical_batch,
    decode,
    decode_ceiling,
    expected_experts,
    max_batch,
    prefill,
    preset,
    step_cost,
    step_costs,
    step_times,
)
from llminfer.core.hardware import device
from llminfer.core.plot_style import COLOURS, DASHES, HATCHES, MARKERS, describe, new_axes, si, styled
from llminfer.core.plots import Roof

MODEL = preset("llama-3-8b")
H100 = device("h100-sxm")
PALE = ("#9CC7E0", "#F3C29F", "#A6D9C8", "#D9D9D9")  # areas that bear writing or hatching

GROUPS = {  # what a reader tells apart -> parts of step_costs
    "attention matrices": ("qkv", "output"),
    "attention (q·k, weighted v)": ("attention",),
    "feed-forward": ("gate_up", "down"),
    "head": ("head",),
}
STEPS = {
    "prefill of 2048 tokens": prefill(2048),
    "decode, batch 1, context 2048": decode(2048),
    "decode, batch 64, context 2048": decode(2048, 64),
}


@styled
def shares() -> Figure:
    """Where the FLOPs and the bytes of a step go."""
    figure = new_axes(7.4, 4.6).figure
    figure.clear()
    above, below = figure.subplots(2, 1)
    rows = _draw_shares(above, "flops", "FLOP") + _draw_shares(below, "bytes", "B")
    above.set_title("FLOPs of a step of Llama-3-8B")
    below.set_title("Bytes of the same step, weights and cache in bfloat16")
    patches = [Patch(facecolor=PALE[i], hatch=HATCHES[i], edgecolor="black", label=g) for i, g in enumerate(GROUPS)]
    figure.legend(handles=patches, loc="outside lower center", ncols=4, handlelength=1.8, columnspacing=1.2)
    describe(
        above,
        "Shares of the FLOPs and of the bytes of a prefill and of two decode steps of Llama-3-8B. Feed-forward has "
        "most of the FLOPs everywhere. The bytes of a single decode are nearly all weights; at batch 64 more than half "
        "are keys and values.",
        ("of", "step", "part", "%"),
        rows,
    )
    return figure


def _draw_shares(axes: Axes, what: str, unit: str) -> list[tuple[str, str, str, float]]:
    """A bar for each step, in pieces; returns the rows of the table."""
    rows = []
    for at, (step, segments) in enumerate(STEPS.items()):
        costs = step_costs(MODEL, segments)
        total, left = sum(getattr(cost, what) for cost in costs.values()), 0.0
        for index, (group, parts) in enumerate(GROUPS.items()):
            share = sum(getattr(costs[part], what) for part in parts) / total
            look = {"color": PALE[index], "hatch": HATCHES[index], "edgecolor": "black", "linewidth": 0.6}
            axes.barh(at, share, left=left, height=0.66, **look)
            if share > 0.05:
                background = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
                axes.text(left + share / 2, at, f"{share:.0%}", ha="center", va="center", fontsize=9, bbox=background)
            left += share
            rows.append((what, step, group, 100 * share))
        axes.text(1.01, at, si(total, unit), va="center", fontsize=9)
    axes.set_yticks(range(len(STEPS)), STEPS)
    axes.set(xlim=(0, 1.12), ylim=(len(STEPS) - 0.5, -0.5), xticks=np.linspace(0, 1, 6))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    return rows


@styled
def experts() -> Axes:
    """The share of a layer's experts that a step touches."""
    axes = new_axes(7.4, 3.4)
    tokens = np.arange(1, 513)
    rows = []
    for index, name in enumerate(("mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3")):
        moe = preset(name).moe
        touched = np.array([expected_experts(moe.experts, moe.top_k, int(t)) for t in tokens])
        label = f"{name}: {moe.top_k} of {moe.experts}"
        axes.plot(tokens, touched / moe.experts, color=COLOURS[index], linestyle=DASHES[index], label=label)
        rows += [(name, t, float(touched[t - 1]), float(100 * touched[t - 1] / moe.experts)) for t in (1, 16, 64, 256)]
    axes.set(xlim=(1, 512), ylim=(0, 1.03), xlabel="tokens in the step", ylabel="experts read, of all")
    _powers_of_four(axes, x=True)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.legend(loc="lower right")
    axes.set_title("Experts that a step is expected to read in each layer")
    describe(
        axes,
        "Expected share of experts read by a step over its tokens, for three mixtures of experts. One token reads k of "
        "X; a batch of 64 reads nearly all of Mixtral's and Qwen3's, so the bytes saved at batch 1 are soon gone.",
        ("model", "tokens", "experts touched", "% of all"),
        rows,
    )
    return axes


ROOFS = ("h100-sxm", "mi300x", "rtx-4070")
WORK = {  # and where its name stands: the side of the line, the height
    "decode, batch 1": (decode(2048), "left", 6e10),
    "decode, batch 64": (decode(2048, 64), "left", 6e10),
    "chunk of 128 tokens": ([Segment(128, 2048)], "left", 1.7e11),
    "prefill of 2048 tokens": (prefill(2048), "right", 6e10),
}


@styled
def roofline() -> Axes:
    """The same work under three roofs."""
    axes = new_axes(7.4, 4.9)
    intensities = np.geomspace(0.5, 4096, 200)
    roofs = [Roof.of(device(name), "bfloat16") for name in ROOFS]
    for index, (name, roof) in enumerate(zip(ROOFS, roofs, strict=True)):
        heights = [roof.attainable(i) for i in intensities]
        label = f"{device(name).name}: ridge at {roof.ridge:.0f} FLOP/byte"
        axes.plot(intensities, heights, color="black", linestyle=DASHES[index], label=label)
    rows = []
    for index, (work, (segments, side, height)) in enumerate(WORK.items()):
        intensity = step_cost(MODEL, segments).intensity
        attained = [roof.attainable(intensity) for roof in roofs]
        axes.plot([intensity] * 2, [1e10, max(attained)], color=COLOURS[index], linewidth=0.8, linestyle=":", zorder=1)
        look = {"color": COLOURS[index], "marker": MARKERS[index], "markeredgecolor": "black", "linestyle": ""}
        axes.plot([intensity] * len(roofs), attained, **look, zorder=4)
        number = f"{intensity:.3g}" if intensity < 1000 else f"{intensity:,.0f}"
        axes.text(intensity, height, f" {work} \n {number} FLOP/byte ", fontsize=8.5, va="bottom", ha=side)
        rows += [
            (work, device(name).name, intensity, rate, 100 * rate / roof.peak_flops)
            for name, roof, rate in zip(ROOFS, roofs, attained, strict=True)
        ]
    axes.set(xlim=(0.5, 4096), xlabel="arithmetic intensity (FLOP per byte)", ylabel="FLOP/s at most")
    _powers_of_four(axes, x=True)
    axes.set(yscale="log", ylim=(5e10, 3e15))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: si(value, "")))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.legend(loc="upper left")
    axes.set_title("Steps of Llama-3-8B under three roofs, bfloat16, prompt or context of 2048 tokens")
    describe(
        axes,
        "Rooflines of an H100, an MI300X and an RTX 4070 with four steps of Llama-3-8B. Decoding lies far down the "
        "slope of all three, at batch 64 too; a chunk of 128 tokens is compute-bound on the RTX 4070 only; a prefill "
        "of 2048 tokens is compute-bound everywhere.",
        ("step", "device", "FLOP/byte", "FLOP/s at most", "% of peak"),
        rows,
    )
    return axes


@styled
def batch() -> Axes:
    """Tokens per second over the batch, for three contexts, and what fits."""
    axes = new_axes(7.4, 4.5)
    rows = []
    for index, context in enumerate((128, 2048, 8192)):
        fits = max_batch(MODEL, H100, context)
        batches = sorted({*np.geomspace(1, 1024, 60).astype(int).tolist(), 4, 16, 64, 256, min(fits, 1024)})
        rates = {size: decode_ceiling(MODEL, H100, context, size) for size in batches}
        look = {"color": COLOURS[index], "linestyle": DASHES[index]}
        inside, beyond = [b for b in batches if b <= fits], [b for b in batches if b >= fits]
        axes.plot(inside, [rates[b] for b in inside], **look, label=f"context {context}: {fits:,} sequences fit")
        axes.plot(beyond, [rates[b] for b in beyond], **look, linewidth=0.7)
        if fits in rates:
            axes.plot(fits, rates[fits], color=COLOURS[index], marker="X", markersize=10, markeredgecolor="black")
        shown = sorted({1, 4, 16, 64, 256, min(fits, 1024)})
        rows += [(context, b, rates[b], "yes" if b <= fits else "no") for b in shown]
    critical = critical_batch(H100)
    axes.axvline(critical, color="#999999", linewidth=1)
    axes.text(critical * 1.05, 220, f"critical batch\nof the weights, {critical:.0f}", fontsize=9, va="bottom")
    axes.set(xlim=(1, 1024), ylim=(180, 90_000), xlabel="sequences in the batch", ylabel="tokens/s at most, of all")
    _powers_of_four(axes, x=True, y=True)
    axes.legend(loc="upper left")
    axes.set_title("Decoding Llama-3-8B on an H100: what a batch gains")
    describe(
        axes,
        "Tokens per second of Llama-3-8B on an H100 over batch size. At a context of 128 tokens the rate grows almost "
        "with the batch up to the critical batch of 295; at 2048 and 8192 tokens it flattens early, because every "
        "sequence brings its own cache to read. Crosses mark where the memory of 80 GB is full.",
        ("context", "batch", "tokens/s at most", "fits"),
        rows,
    )
    return axes


@styled
def context() -> Axes:
    """Step time over the context at batch 16, in weights and cache."""
    axes = new_axes(7.4, 4.0)
    contexts = np.linspace(0, 16384, 65)
    parts = [step_times(MODEL, decode(int(length), 16), H100) for length in contexts]
    cache = np.array([times["attention"] for times in parts]) * 1e3  # ms
    weights = np.array([sum(times.values()) for times in parts]) * 1e3 - cache
    there_and_back = np.concatenate([contexts, contexts[::-1]])
    for low, high, colour, hatch, label in (
        (0 * weights, weights, PALE[0], "", "weights, read once a step"),
        (weights, weights + cache, PALE[1], "///", "keys and values of 16 sequences"),
    ):
        look = {"facecolor": colour, "hatch": hatch, "edgecolor": "black", "linewidth": 0.6, "label": label}
        axes.fill(there_and_back, np.concatenate([low, high[::-1]]), **look)
    equal = float(np.interp(0, cache - weights, contexts))
    axes.axvline(equal, color="black", linewidth=1.2, linestyle=":")
    background = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    axes.text(equal + 150, 0.6, f"equal at {equal:,.0f} tokens", fontsize=9, va="bottom", bbox=background)
    axes.set(xlim=(0, 16384), ylim=(0, 17.5), xticks=range(0, 16385, 2048))
    axes.set(xlabel="tokens in the context of each sequence", ylabel="step time at least (ms)")
    axes.legend(loc="upper left")
    axes.set_title("A decode step of Llama-3-8B on an H100, batch 16, bfloat16")
    describe(
        axes,
        "Time of a decode step of Llama-3-8B on an H100 at batch 16 over the context. The weights take 4.5 ms whatever "
        "the context; keys and values grow in proportion to it, and take as long as the weights from some 7,200 tokens "
        "on.",
        ("context", "weights (ms)", "keys and values (ms)"),
        [(int(c), float(w), float(k)) for c, w, k in zip(contexts[::8], weights[::8], cache[::8], strict=True)],
    )
    return axes


def _powers_of_four(axes: Axes, x: bool = False, y: bool = False) -> None:
    """Logarithmic axes with ticks at 1, 4, 16 ... (vertically 250, 1000, 4000 ...), written out."""
    for wanted, axis, first in ((x, axes.xaxis, 1), (y, axes.yaxis, 250)):
        if wanted:
            axes.set(**{f"{axis.axis_name}scale": "log"})
            axis.set_major_locator(FixedLocator([first * 4**power for power in range(7)]))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            axis.set_minor_locator(NullLocator())


FIGURES = {"shares": shares, "experts": experts, "roofline": roofline, "batch": batch, "context": context}
