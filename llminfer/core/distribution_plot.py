"""What a rule does to a distribution over tokens: a panel for each rule, what was before it as an outline.

Shown are the tokens that were most probable before, and all others together in one last bar: a rule that spares the
tail and one that cuts it often look alike at the top, and differ there.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from llminfer.core.plot_style import COLOURS, check_alt, describe, new_axes, styled

AFTER = {"facecolor": COLOURS[6], "edgecolor": "black", "linewidth": 0.7}
BEFORE = {"fill": False, "edgecolor": "black", "linestyle": (0, (2, 1.5)), "linewidth": 1.0}
GONE = {"marker": "x", "color": "black", "linestyle": "", "markersize": 5, "clip_on": False, "zorder": 4}
SUMS_TO_ONE = 1e-4


@styled
def distributions(
    before: Float[np.ndarray, "V"],
    after: Mapping[str, np.ndarray],
    tokens: Sequence[str],
    *,
    alt: str,
    title: str = "",
    columns: int = 3,
) -> Figure:
    """Draw probabilities `after` each named rule beside those `before` it, as bars over their outlines.

    after: name of a rule -> [V]. tokens: texts of the most probable tokens before, best first; they are shown by
    themselves. A cross stands where nothing is left, and each panel says how many tokens are left in all.
    Raises ValueError for probabilities that do not sum to 1, lengths that differ, and when there is nothing to draw.
    """
    check_alt(alt)
    _check(before, after, tokens)
    shown = np.argsort(-before, kind="stable")[: len(tokens)]
    names = [*tokens, f"{len(before) - len(tokens):,} others"]
    rows = -(-len(after) // columns)
    figure = new_axes(8.6, 0.9 + rows * (0.75 + 0.19 * len(names))).figure
    figure.clear()
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel().tolist()
    outline = _pooled(before, shown)  # [shown + 1]
    table = [("before", *outline.tolist(), np.count_nonzero(before))]
    for axes, (rule, probabilities) in zip(panels, after.items(), strict=False):
        bars, left = _pooled(probabilities, shown), np.count_nonzero(probabilities)
        _draw_panel(axes, names, bars, outline)
        axes.set_title(f"{rule}\n{left:,} {'token' if left == 1 else 'tokens'} left", fontsize=10)
        table.append((rule, *bars.tolist(), left))
    _finish(figure, panels, len(after), columns, title)
    describe(panels[0], alt, ("distribution", *names, "tokens left"), table)
    return figure


def _check(before: np.ndarray, after: Mapping[str, np.ndarray], tokens: Sequence[str]) -> None:
    if not after or not 0 < len(tokens) < len(before):
        raise ValueError(
            f"give at least one distribution and from 1 to {len(before) - 1} tokens to show by themselves, "
            f"got {len(after)} and {len(tokens)}"
        )
    for name, probabilities in {"before": before, **after}.items():
        if len(probabilities) != len(before):
            raise ValueError(f"{name!r} has {len(probabilities)} tokens, before it were {len(before)}")
        if not (np.all(probabilities >= 0) and abs(np.sum(probabilities) - 1) < SUMS_TO_ONE):
            raise ValueError(
                f"the probabilities of {name!r} sum to {np.sum(probabilities)}, and the least is "
                f"{np.min(probabilities)}; give softmax(logits), not logits"
            )


def _pooled(probabilities: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """Those shown by themselves, and all others together; exactly 0 where none of the others is left."""
    others = np.delete(probabilities, shown)
    return np.append(probabilities[shown], others.sum())


def _draw_panel(axes: Axes, names: Sequence[str], bars: np.ndarray, outline: np.ndarray) -> None:
    at = np.arange(len(bars))
    axes.barh(at, bars, height=0.72, **AFTER)
    axes.barh(at, outline, height=0.72, zorder=3, **BEFORE)
    if not bars.all():  # an empty line that is not clipped would leave the layout without a size
        axes.plot(np.zeros(np.sum(bars == 0)), at[bars == 0], **GONE)
    axes.set_yticks(at, names)
    axes.axhline(len(bars) - 1.5, color="#999999", linewidth=0.8)
    axes.grid(False, axis="y")


def _finish(figure: Figure, panels: Sequence[Axes], drawn: int, columns: int, title: str) -> None:
    top = max(patch.get_width() for axes in panels[:drawn] for patch in axes.patches)
    panels[0].set_xlim(0, 1.05 * top)
    panels[0].invert_yaxis()  # the most probable on top
    panels[0].xaxis.set_major_formatter(PercentFormatter(1.0))
    for axes in panels[drawn:]:
        axes.set_visible(False)
    for axes in panels[max(drawn - columns, 0) : drawn]:
        axes.tick_params(labelbottom=True)  # also above a place that stays empty
    handles = [
        Patch(label="after the rule", **AFTER),
        Patch(label="before", **BEFORE),
        Line2D([], [], label="nothing left", **GONE),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
