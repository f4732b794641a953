"""Pictures of chapter 3.1: what each processor of logits leaves of one distribution."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from llminfer.basics import SamplingParams, process_logits, softmax
from llminfer.core.plot_style import describe, new_axes, styled

WORDS = ("blue", "clear", "the", "grey", "falling", "a", "green", "limit", "sky", "Monday")
LOGITS = np.array([4.0, 3.4, 2.9, 2.6, 1.9, 1.3, 0.6, -0.2, -0.9, -2.0])  # made up, for "The sky is"
SAID = [0, 0, 3]  # the answer so far has "blue" twice and "grey" once

PANELS = {
    "as the model gives it": SamplingParams(temperature=1),
    "temperature 0.5": SamplingParams(temperature=0.5),
    "temperature 2": SamplingParams(temperature=2),
    "frequency penalty 1,\nsaid: blue, blue, grey": SamplingParams(temperature=1, frequency_penalty=1),
    "top-k 4": SamplingParams(temperature=1, top_k=4),
    "top-p 0.9": SamplingParams(temperature=1, top_p=0.9),
    "min-p 0.05": SamplingParams(temperature=1, min_p=0.05),
    "temperature 2, top-p 0.9": SamplingParams(temperature=2, top_p=0.9),
}


@styled
def processors() -> Figure:
    """One distribution, and what eight settings leave of it."""
    figure = new_axes(7.6, 5.4).figure
    figure.clear()
    panels = figure.subplots(2, 4, sharex=True, sharey=True)
    left = [_left(params) for params in PANELS.values()]
    for axes, name, probability in zip(panels.flat, PANELS, left, strict=True):
        _draw_panel(axes, name, probability)
    for axes in panels[1]:
        axes.set_xlabel("probability", fontsize=9)
    describe(
        panels[0, 0],
        "Bars of the probabilities of ten tokens, in eight panels: as the model gives them; sharper at temperature "
        "0.5, flatter at 2; with said tokens lowered by a frequency penalty; cut to four tokens by top-k 4, to five by "
        "top-p 0.9, to six by min-p 0.05, to seven by top-p 0.9 at temperature 2. What is cut is marked by a cross.",
        ("token (%)", *(name.replace("\n", " ") for name in PANELS)),
        [(word, *(100 * float(p) for p in row)) for word, row in zip(WORDS, np.transpose(left), strict=True)],
    )
    return figure


def _left(params: SamplingParams) -> np.ndarray:
    return softmax(process_logits(LOGITS, params, [], SAID))


def _draw_panel(axes: Axes, name: str, probability: np.ndarray) -> None:
    places = np.arange(len(WORDS))
    axes.barh(places, probability, height=0.72, color="#9CC7E0", edgecolor="black", linewidth=0.7)
    for place, p in enumerate(probability):
        mark = "×" if p == 0 else f"{p:.1%}" if p >= 0.0005 else "< 0.1%"
        axes.text(p + 0.015, place, mark, va="center", fontsize=7.5)
    axes.set_yticks(places, WORDS, fontsize=8.5)
    axes.set(xlim=(0, 0.85), ylim=(len(WORDS) - 0.4, -0.6), xticks=(0, 0.25, 0.5, 0.75))
    axes.set_xticklabels(("0", "¼", "½", "¾"))
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.set_title(name, fontsize=9, pad=4, linespacing=1.0)


FIGURES = {"processors": processors}
