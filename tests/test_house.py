"""Rules of the house that no single module can hold by itself."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from llminfer.core.public_names import CHAPTERS, all_places, map_page, where, written_chapters

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "llminfer").rglob("*.py"))


def imported_at_any_depth(path: Path) -> set[str]:
    """The top-level packages that a file imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_torch_and_triton_stay_in_kernel_files(path):
    allowed = path.stem.endswith(("_triton", "_torch")) or path.stem in ("triton_environment", "doctor")
    assert allowed or not imported_at_any_depth(path) & {"torch", "triton"}


def test_importing_the_package_loads_nothing_heavy():
    program = (
        "import sys, llminfer, llminfer.basics; print([m for m in ('torch','triton','matplotlib') if m in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_every_public_name_loads_and_has_a_docstring():
    for chapter in written_chapters().values():
        for name in chapter.__all__:
            value = getattr(chapter, name)
            assert getattr(value, "__doc__", None), f"{chapter.__name__}.{name} has no docstring"


def test_where_answers_both_ways():
    [place] = where("rmsnorm")
    assert place.module == "llminfer.basics.norms"
    assert place.name in {found.name for found in where(place.section)}
    assert {found.name for found in where("3.1")} >= {found.name for found in where("3.1.4")}


def test_where_names_what_comes_closest():
    with pytest.raises(ValueError, match="rmsnorm"):
        where("rmsnrom")


def test_a_section_is_not_a_prefix_of_a_longer_number():
    assert all(place.section.split(".")[:2] == ["3", "1"] for place in where("3.1"))


def test_sections_belong_to_their_chapter():
    numbers = {package: number for number, package in CHAPTERS.items()}
    for place in all_places():
        package = place.module.split(".")[1]
        assert package == "core" or place.section.startswith(numbers[package] + ".")


def test_every_docstring_names_the_section_that_the_map_names():
    for place in all_places():
        value = getattr(importlib.import_module(place.module), place.name)
        if not inspect.isroutine(value) and not inspect.isclass(value):
            continue  # a table: its docstring is that of dict
        named = re.findall(r"Book section (3\.\d+(?:\.\d+)?)\.(?!\d)", value.__doc__ or "")
        assert named == [place.section], f"{place.module}.{place.name} must say: Book section {place.section}."


def test_the_map_in_the_docs_is_the_present_one():
    assert (ROOT / "docs" / "map.md").read_text(encoding="utf-8") == map_page(), (
        "run: llminfer where --map > docs/map.md"
    )


def test_the_map_of_the_grader_names_each_of_its_files():
    import llminfer.grading as grading

    files = {path.stem for path in Path(grading.__file__).parent.glob("*.py")} - {"__init__"}
    assert set(re.findall(r"`(\w+)`", grading.__doc__)) == files
