"""Draw the pictures of the chapters into docs/figures/, and their numbers into the chapters, to unfold below them.

The same lines every time, as nothing in the pictures is measured. The drawings of chapter 3.1 are in the modules
`figures_3_1_*.py` beside this one. Each offers FIGURES: name of the file -> function that draws it and returns what
`save_svg` takes.
"""

import argparse
import importlib
import re
import sys
from math import floor, log10
from pathlib import Path

from llminfer.core.plots import DataTable, data_table, save_svg

TOOLS = Path(__file__).resolve().parent
FIGURES = TOOLS.parent / "docs" / "figures"
CHAPTERS = TOOLS.parent / "chapters"
DATA = "<details>\n<summary>Data of this picture</summary>\n"
PICTURE = re.compile(rf"^(!\[[^\]]*\]\([^)]*/(\w+)\.svg\)\n)(?:\n{DATA}.*?</details>\n)?", re.MULTILINE | re.DOTALL)


def modules() -> dict[str, list[str]]:
    """The modules with drawings, by chapter."""
    found: dict[str, list[str]] = {}
    for path in sorted(TOOLS.glob("figures_*.py")):
        part, chapter, _what = path.stem.removeprefix("figures_").split("_", 2)
        found.setdefault(f"{part}.{chapter}", []).append(path.stem)
    return found


def drawings(chapter: str) -> dict[str, object]:
    """All pictures of a chapter, drawn: name -> axes or figure."""
    functions = {}
    for name in modules()[chapter]:
        functions |= importlib.import_module(name).FIGURES
    return {name: make() for name, make in functions.items()}


def save(pictures: dict[str, object], folder: Path) -> list[Path]:
    """Write pictures into `folder`, which is made if it is not there; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    return [save_svg(drawn, folder / f"{name}.svg") for name, drawn in pictures.items()]


def with_tables(text: str, pictures: dict[str, object]) -> str:
    """The text of a chapter with the numbers of each picture in a table to unfold below it."""

    def unfolding(found: re.Match) -> str:
        return f"{found[1]}\n{DATA}\n{as_markdown(data_table(pictures[found[2]]))}\n\n</details>\n"

    return PICTURE.sub(unfolding, text)


def as_markdown(table: DataTable) -> str:
    """A table as GitHub's Markdown has it; columns of numbers stand to the right."""
    numeric = [all(isinstance(row[i], int | float | None) for row in table.rows) for i in range(len(table.columns))]
    lines = [table.columns, ["---:" if right else "---" for right in numeric], *table.rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(value: object) -> str:
    """Four digits of a number, as powers of ten where it is very large or small; nothing for None."""
    if value is None:
        return ""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    if value == 0 or 1e-2 <= abs(value) < 1e6:
        return f"{float(f'{value:.4g}'):,.10g}"
    power = floor(log10(abs(value)))
    return f"{value / 10**power:.4g} × 10{str(power).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="such as 3.1; all when none is named")
    asked = parser.parse_args().chapters
    unknown = set(asked) - set(modules())
    if unknown:
        parser.error(f"no drawings for {', '.join(sorted(unknown))}; there are {', '.join(modules())}")
    for chapter in asked or modules():
        pictures = drawings(chapter)
        for path in save(pictures, FIGURES / chapter):
            print(f"{path.relative_to(TOOLS.parent)}  {path.stat().st_size / 1e3:.0f} kB")
        for path in CHAPTERS.glob(f"{chapter}-*.md"):
            path.write_text(with_tables(path.read_text(encoding="utf-8"), pictures), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
