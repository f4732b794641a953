"""Draw the pictures that exercises ask about, as SVG and PNG beside their starters: the same bytes every time.

The points are invented, and each is there for a question. Shares of the roof are not written into the picture: to find
them is the exercise.
"""

import sys
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from llminfer.core.plot_style import COLOURS, MARKERS, describe, new_axes, si, styled
from llminfer.core.plots import Roof, save_png, save_svg

EXERCISES = Path(__file__).resolve().parent.parent / "exercises" / "3.1-basics"

ACCELERATOR = Roof("an accelerator, bfloat16", bandwidth=2e12, peak_flops=400e12)
RUNS = (  # letter, what ran, FLOPs per byte, FLOP/s
    ("A", "decode, batch 1", 1.0, 1.8e12),
    ("B", "decode, batch 32", 32.0, 20e12),
    ("C", "prefill, its matrices", 1000.0, 340e12),
    ("D", "prefill, its attention", 800.0, 100e12),
    ("E", "a gate on 8 MB, again and again", 0.25, 1.2e12),
    ("F", "decode, batch 160", 150.0, 291e12),
)
ALT = (
    "Roofline of an accelerator with 400 TFLOP/s in bfloat16 and 2 TB/s, both axes logarithmic, and six measured runs, "
    "A to F. From left to right: E lies above the slope of the memory, A just below it, B far below it, F close below "
    "it near the ridge; D and C lie right of the ridge, D far below the flat roof and C a little. The numbers are in "
    "the table of the exercise."
)


@styled
def diagnose_roofline() -> Axes:
    """A roof and six runs under it, or over it."""
    axes = new_axes(7.5, 5.2)
    low, high = 1 / 16, 4096
    corners = [low, ACCELERATOR.ridge, high]
    axes.plot(corners, [ACCELERATOR.attainable(x) for x in corners], color="black", zorder=2)
    for place, (letter, what, intensity, flops) in enumerate(RUNS):
        style = {"marker": MARKERS[place], "color": COLOURS[place], "markeredgecolor": "black", "linestyle": ""}
        axes.plot([intensity], [flops], label=f"{letter}  {what}", zorder=4, **style)
        axes.annotate(letter, (intensity, flops), xytext=(8, -12), textcoords="offset points", fontsize=11)
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(0.5e11, 2e15))
    axes.xaxis.set_major_locator(LogLocator(base=4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value >= 1 else f"1/{1 / value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: si(value, "")))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.set(title="Six runs on one accelerator: 400 TFLOP/s in bfloat16, 2 TB/s")
    axes.set(xlabel="arithmetic intensity (FLOP per byte)", ylabel="FLOP/s")
    axes.legend(loc="lower right")
    rows = [(letter, what, intensity, flops / 1e12) for letter, what, intensity, flops in RUNS]
    describe(axes, ALT, ("point", "what ran", "FLOP/byte", "TFLOP/s"), rows)
    return axes


PICTURES = {"diagnose_roofline": diagnose_roofline}


def main() -> int:
    for name, drawing in PICTURES.items():
        axes = drawing()
        for path in (save_svg(axes, EXERCISES / f"{name}.svg"), save_png(axes, EXERCISES / f"{name}.png")):
            print(f"{path.relative_to(EXERCISES.parent.parent)}  {path.stat().st_size / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
