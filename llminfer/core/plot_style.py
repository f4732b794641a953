"""One look for all pictures, and what a picture owes to a reader who cannot see it: words, and the numbers as a table.

Nothing is told by colour alone: lines differ in dashes, points in shape, areas in hatching, so that a picture survives
a grey printer and colour-blind eyes. Colours: Okabe and Ito 2008, "Color Universal Design", the darker ones first.
"""

import base64
import functools
import html
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (9, 3)), (0, (2, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
HATCHES = ("", "///", "\\\\\\", "...", "xxx", "ooo", "---")

STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture on every machine
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.8,
    "lines.markersize": 7,
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.handlelength": 3.2,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.hashsalt": "llminfer",  # otherwise the ids in an SVG are drawn at random
    "svg.fonttype": "path",
}
LEAST_ALT = 40


@dataclass(frozen=True)
class DataTable:
    """The numbers of a picture: what each column is, and a row for each thing drawn."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def markdown(self) -> str:
        """As a Markdown table, numbers to four digits."""
        lines = [self.columns, ("---",) * len(self.columns), *(tuple(map(_plain, row)) for row in self.rows)]
        return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)

    def html(self) -> str:
        """As an HTML table; "dataframe" is the class that notebooks and sites know how to set."""
        head = "".join(f"<th>{html.escape(column)}</th>" for column in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_plain(cell))}</td>" for cell in row) + "</tr>" for row in self.rows
        )
        return f'<table class="dataframe"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


@dataclass(frozen=True)
class Picture:
    """A finished picture with its alternative text and its numbers; a notebook shows all three."""

    svg: str
    alt: str
    table: DataTable

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.svg.encode()).decode()
        return (
            f'<img alt="{html.escape(self.alt, quote=True)}" src="data:image/svg+xml;base64,{data}" '
            f'style="max-width: 100%; background: white"/>'
            f"<details><summary>Data of this picture</summary>{self.table.html()}</details>"
        )

    def __repr__(self) -> str:
        return self.alt


def styled(draw: Callable) -> Callable:
    """Decorator: the function draws in our style, and the reader's own matplotlib settings stay as they were."""

    @functools.wraps(draw)
    def drawn_in_style(*args: object, **kwargs: object) -> object:
        with matplotlib.rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn_in_style


@styled
def new_axes(width: float = 7.5, height: float = 4.4, dpi: float = 110) -> Axes:
    """Empty axes in our style, in inches. The figure is not pyplot's: nothing is kept alive, nothing shows twice."""
    figure = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def describe(axes: Axes, alt: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Attach to axes what they show, in words and in numbers.

    Raises ValueError when the words are too few to stand for the picture.
    """
    check_alt(alt)
    axes.llminfer_alt = " ".join(alt.split())
    axes.llminfer_table = DataTable(tuple(columns), tuple(map(tuple, rows)))


def check_alt(alt: str) -> None:
    """Raise ValueError unless `alt` can stand for a picture: at least a short sentence, not a file name or a title."""
    if len(alt.split()) < 5 or len(alt.strip()) < LEAST_ALT:
        raise ValueError(
            f"alt must say in a sentence or two what the picture shows and what follows from it, got {alt!r}; "
            'for example "Roofline of an H100. Decoding lies on the slanted roof: memory limits it"'
        )


def alt_text(drawn: Axes | Figure) -> str:
    """The alternative text of axes, or of all axes of a figure, in order."""
    return " ".join(axes.llminfer_alt for axes in _described(drawn))


def data_table(drawn: Axes | Figure) -> DataTable:
    """The numbers that axes, or a figure, drawn by this library show. Raises ValueError for others."""
    return _described(drawn)[0].llminfer_table


def save_svg(drawn: Axes | Figure, path: str | Path) -> Path:
    """Write an SVG that names and describes itself to screen readers, the same bytes every time."""
    path = Path(path)
    path.write_text(_svg(drawn), encoding="utf-8", newline="\n")
    return path


@styled
def save_png(drawn: Axes | Figure, path: str | Path, dpi: float = 150) -> Path:
    """Write a PNG with the alternative text in its "Description" field."""
    _figure(drawn).savefig(path, dpi=dpi, metadata={"Description": alt_text(drawn), "Software": None})
    return Path(path)


def show(drawn: Axes | Figure) -> Picture:
    """The picture for a notebook: put it on the last line of a cell."""
    return Picture(_svg(drawn), alt_text(drawn), data_table(drawn))


def si(value: float, unit: str, digits: int = 3) -> str:
    """A number with a prefix a reader can say: si(3.35e12, "B/s") is "3.35 TB/s"."""
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m")):
        if abs(value) >= factor * (1 - 0.5 * 10**-digits):
            return f"{_digits(value / factor, digits)} {prefix}{unit}"
    return f"{_digits(value * 1e6, digits)} µ{unit}" if value else f"0 {unit}"


def _digits(value: float, digits: int) -> str:
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:.0f}" if abs(rounded) >= 10 ** (digits - 1) else f"{rounded:.{digits}g}"


def _plain(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _figure(drawn: Axes | Figure) -> Figure:
    return drawn.figure if isinstance(drawn, Axes) else drawn


def _described(drawn: Axes | Figure) -> list[Axes]:
    candidates = [drawn] if isinstance(drawn, Axes) else drawn.axes
    described = [axes for axes in candidates if hasattr(axes, "llminfer_alt")]
    if not described:
        raise ValueError("these axes carry no description; draw them with core.plots, or call describe(axes, alt, ...)")
    return described


@styled
def _svg(drawn: Axes | Figure) -> str:
    """SVG whose title and description screen readers read; without a date or a version, so that it stays the same."""
    figure = _figure(drawn)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    title = next(filter(None, titles), "Picture").replace("\n", " ")
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None, "Title": title})
    description = f"</title>\n <desc>{html.escape(alt_text(figure))}</desc>"
    return stream.getvalue().replace("<svg ", '<svg role="img" ', 1).replace("</title>", description, 1)
