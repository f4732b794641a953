"""Pictures of chapter 3.1: the loop, the way through a layer, and how RoPE turns."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from llminfer.basics import preset, rope_frequencies
from llminfer.basics.parameters import layer_shapes
from llminfer.core.plot_style import COLOURS, DASHES, describe, new_axes, styled

MODEL = preset("llama-3-8b")
STREAM, INSIDE = "#A6D9C8", "#9CC7E0"  # pale, as they bear writing


@styled
def loop() -> Axes:
    """The generation loop as boxes."""
    axes = new_axes(7.4, 3.0)
    axes.set(xlim=(0, 100), ylim=(0, 40), title="The generation loop")
    axes.axis("off")
    boxes = (
        ("tokens", "[T] ids"),
        ("layers", "[T] → [T, D]"),
        ("head", "[1, D] → [1, V]"),
        ("choose", "argmax → 1 id"),
        ("append", "T grows by 1"),
    )
    for index, (title, shape) in enumerate(boxes):
        left = 2 + 20 * index
        _box(axes, left, 16, 15, 11, title, shape)
        if index:
            _arrow(axes, (left - 4.6, 21.5), (left - 0.4, 21.5))
    first, last = 9.5, 89.5  # the middles of the outer boxes
    axes.plot([last, last, first, first], [16, 5.5, 5.5, 10], color="black", linewidth=1.4)
    _arrow(axes, (first, 9), (first, 15.6))
    axes.text(49.5, 7, "again, until the end-of-text token, or max_tokens", ha="center", va="bottom", style="italic")
    _arrow(axes, (first, 34.5), (first, 27.4))
    axes.text(first + 1.5, 33.5, "text → encode → ids of the prompt", ha="left", va="center")
    _arrow(axes, (last, 27.4), (last, 34.5))
    axes.text(last - 1.5, 33.5, "ids → decode → text", ha="right", va="center")
    describe(
        axes,
        "The generation loop. A prompt is encoded to token ids. The layers turn all T ids into T hidden states of "
        "width D, the head turns the last of them into V logits, the largest is chosen, its id is appended to the "
        "tokens, and everything begins again, until the end-of-text token or max_tokens.",
        ("step", "shape"),
        boxes,
    )
    return axes


@styled
def layer() -> Axes:
    """One token's way through a layer, widths to scale."""
    config, shapes = MODEL, layer_shapes(MODEL, 0)
    D, H, K, E, F = config.width, config.heads, config.kv_heads, config.head_width, config.feed_forward
    rows = (  # what happens, the weight it takes, the widths that come out
        ("the residual stream", None, {"x": D}),
        ("rmsnorm", "attention_norm", {"": D}),
        ("@ qkv", "qkv", {"q": H * E, "k": K * E, "v": K * E}),
        ("rope on q, k; attend", None, {"o": H * E}),
        ("@ output, + x", "output", {"x": D}),
        ("rmsnorm", "feed_forward_norm", {"": D}),
        ("@ gate_up", "gate_up", {"gate": F, "up": F}),
        ("swiglu", None, {"": F}),
        ("@ down, + x", "down", {"x": D}),
    )
    axes = new_axes(7.4, 4.9)
    for at, (_, weight, widths) in enumerate(rows):
        end = _bar(axes, at, widths)
        if weight:
            shape = shapes[weight]
            size = f"{' × '.join(map(str, shape))} = {np.prod(shape):,}" if len(shape) > 1 else f"{shape[0]:,}"
            axes.text(max(end, (H + 2 * K) * E) + 400, at, size, va="center", fontsize=8.5)
    axes.set_yticks(range(len(rows)), [what for what, *_ in rows])
    axes.set(
        ylim=(len(rows) - 0.4, -0.6),
        xlim=(0, 2 * F + 11000),
        xlabel="elements for each token (bars); parameters of the weight (beside them)",
    )
    axes.set_xticks([0, D, F, 2 * F])
    axes.tick_params(axis="y", length=0)
    axes.grid(False)
    axes.set_title("One token through one of the 32 layers of Llama-3-8B")
    describe(
        axes,
        "One token's way through a layer of Llama-3-8B as bars to scale: 4096 elements of the residual stream become "
        "6144 of query, key and value, 4096 out of attention, 28672 of gate and up, 14336 after SwiGLU, and 4096 "
        "again.",
        ("what happens", "weight", "its shape", "elements that come out"),
        [(what, w or "", str(shapes[w]) if w else "", sum(widths.values())) for what, w, widths in rows],
    )
    return axes


def _bar(axes: Axes, at: int, widths: dict[str, int]) -> int:
    """A row of named pieces; returns where it ends."""
    hatches = {"k": "///", "v": "...", "up": "///"}
    left = 0
    for name, width in widths.items():
        axes.barh(
            at, width, left=left, height=0.62, color=STREAM if name == "x" else INSIDE, hatch=hatches.get(name, ""),
            edgecolor="black", linewidth=0.7,
        )  # fmt: skip
        label = f"{name} {width}".strip() if width > 2000 else name
        background = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if name in hatches else None
        axes.text(left + width / 2, at, label, ha="center", va="center", fontsize=8.5, bbox=background)
        left += width
    return left


@styled
def rope() -> Axes:
    """How fast four of the pairs turn."""
    axes = new_axes(7.4, 3.0)
    frequencies = rope_frequencies(MODEL.rope, MODEL.head_width)
    positions, pairs = np.arange(0, 201, 0.5), (0, 8, 16, 63)
    for index, pair in enumerate(pairs):
        turn = 2 * np.pi / frequencies[pair]
        tokens = f"{turn:.1f}" if turn < 1000 else f"{turn:,.0f}"
        axes.plot(
            positions, np.cos(positions * frequencies[pair]), color=COLOURS[index], linestyle=DASHES[index],
            linewidth=1.8 if index else 0.9, label=f"pair {pair}: a turn in\n{tokens} tokens",
        )  # fmt: skip
    axes.set(xlabel="position", ylabel="cosine of the angle", xlim=(0, 200), yticks=[-1, 0, 1])
    axes.set_title("Four of the 64 pairs of a head of Llama-3-8B")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, labelspacing=0.9)
    describe(
        axes,
        "Cosine of the rotation angle over 200 positions for four pairs of a head of Llama-3-8B. The first pair turns "
        "once in 6 tokens, the last hardly moves: fast pairs tell neighbours apart, slow pairs tell far from near.",
        ("pair", "radians per token", "tokens for a full turn"),
        [(pair, float(frequencies[pair]), float(2 * np.pi / frequencies[pair])) for pair in pairs],
    )
    return axes


def _box(axes: Axes, left: float, bottom: float, width: float, height: float, title: str, below: str) -> None:
    round_corners = "round,pad=0,rounding_size=1.2"
    axes.add_patch(
        FancyBboxPatch((left, bottom), width, height, boxstyle=round_corners, facecolor="#EAF2F8", edgecolor="black")
    )
    axes.text(left + width / 2, bottom + 0.66 * height, title, ha="center", va="center", fontweight="bold")
    axes.text(left + width / 2, bottom + 0.28 * height, below, ha="center", va="center", fontsize=9)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "black", "shrinkA": 0, "shrinkB": 0})


FIGURES = {"loop": loop, "layer": layer, "rope": rope}
