"""Draw the pictures of the chapters into docs/figures/: the same lines every time, as nothing in them is measured.

The drawings of chapter 3.1 are in the modules `figures_3_1_*.py` beside this one. Each offers FIGURES: name of the
file -> function that draws it and returns what `save_svg` takes.
"""

import argparse
import importlib
import sys
from pathlib import Path

from llminfer.core.plots import save_svg

TOOLS = Path(__file__).resolve().parent
FIGURES = TOOLS.parent / "docs" / "figures"


def modules() -> dict[str, list[str]]:
    """The modules with drawings, by chapter."""
    found: dict[str, list[str]] = {}
    for path in sorted(TOOLS.glob("figures_*.py")):
        part, chapter, _what = path.stem.removeprefix("figures_").split("_", 2)
        found.setdefault(f"{part}.{chapter}", []).append(path.stem)
    return found


def draw(chapter: str, folder: Path) -> list[Path]:
    """Draw all pictures of a chapter into `folder`, which is made if it is not there; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawings = {}
    for name in modules()[chapter]:
        drawings |= importlib.import_module(name).FIGURES
    return [save_svg(make(), folder / f"{name}.svg") for name, make in drawings.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="such as 3.1; all when none is named")
    asked = parser.parse_args().chapters
    unknown = set(asked) - set(modules())
    if unknown:
        parser.error(f"no drawings for {', '.join(sorted(unknown))}; there are {', '.join(modules())}")
    for chapter in asked or modules():
        for path in draw(chapter, FIGURES / chapter):
            print(f"{path.relative_to(TOOLS.parent)}  {path.stat().st_size / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
