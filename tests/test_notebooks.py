"""Stored notebooks: what a reader sees before running anything is whole, from the present cells, and read by all."""

import importlib
import importlib.util
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("jupyter_cache")
pytest.importorskip("nbclient")

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted(path for path in (ROOT / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def run_notebooks():
    spec = importlib.util.spec_from_file_location("run_notebooks", ROOT / "tools" / "run_notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Pictures(HTMLParser):
    """The alternative text of each picture in a piece of HTML, and the number of tables to unfold under pictures."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.alts: list[str] = []
        self.unfolded = self.tables = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        if tag == "img":
            self.alts.append(dict(attributes).get("alt") or "")
        self.unfolded += tag == "details"
        self.tables += tag == "table" and self.unfolded > self.tables


def outputs(path: Path) -> list:
    return [o for cell in nbformat.read(path, 4).cells if cell.cell_type == "code" for o in cell.outputs]


def shown(path: Path) -> str:
    """Everything that the outputs of a notebook write, as text or HTML; pictures without their bytes."""
    pieces = []
    for output in outputs(path):
        pieces += [output.get("text", ""), *(str(data) for data in output.get("data", {}).values())]
    return re.sub(r"base64,[A-Za-z0-9+/=]+", "", "\n".join(pieces))


def notebook_id(path: Path) -> str:
    return path.stem


def test_there_is_a_notebook_for_each_chapter_text():
    assert {path.stem for path in (ROOT / "chapters").glob("*.md")} <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path.parent.name == "notebooks"], ids=notebook_id)
def test_a_chapters_notebook_goes_through_all_its_sections_in_order(path):
    package = importlib.import_module("llminfer." + path.stem.split("-", 1)[1].replace("-", "_"))
    words = "\n".join(cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown")
    assert re.findall(r"^## (\d\.\d\.\d) ", words, re.MULTILINE) == [section.number for section in package.SECTIONS]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=notebook_id)
def test_outputs_are_of_the_present_cells_whole_and_small(run_notebooks, path):
    assert run_notebooks.complaints(path) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=notebook_id)
def test_cells_ran_once_from_top_to_bottom(path):
    counts = [cell.execution_count for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=notebook_id)
def test_every_picture_has_words_and_a_table(path):
    pictures = [Pictures(output.data["text/html"]) for output in outputs(path) if "text/html" in output.get("data", {})]
    alts = [alt for found in pictures for alt in found.alts]
    assert alts, "a chapter's notebook draws something"
    assert [alt for alt in alts if len(alt) < 40] == []
    assert sum(found.tables for found in pictures) == len(alts)
    assert not any(kind.startswith("image/") for output in outputs(path) for kind in output.get("data", {}))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=notebook_id)
def test_nothing_went_to_standard_error(path):
    assert [output.text for output in outputs(path) if output.get("name") == "stderr"] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=notebook_id)
def test_outputs_name_no_folder_of_the_machine_they_were_made_on(path):
    assert re.findall(r"(?:/home/|/root/|/Users/|/work/|/tmp/|[A-Z]:\\)\S*", shown(path)) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=notebook_id)
def test_links_of_a_notebook_lead_to_files_of_the_repository(path):
    words = "\n".join(cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown")
    local = [target for target in LINK.findall(words) if "://" not in target]
    assert [target for target in local if not (path.parent / target).is_file()] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=notebook_id)
def test_all_pairs_passed_when_the_notebook_was_stored(path):
    assert "FAILED" not in shown(path)


# The check of stored notebooks is itself checked.


def a_notebook(run_notebooks, path: Path, source="print(1)", text="1\n", error=False) -> Path:
    cell = nbformat.v4.new_code_cell(source, outputs=[nbformat.v4.new_output("stream", text=text)])
    if error:
        cell.outputs.append(nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=[]))
    run_notebooks.store(path, nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# One"), cell]), 0.0)
    return path


def test_a_stored_notebook_has_nothing_to_complain_of(run_notebooks, tmp_path):
    assert run_notebooks.complaints(a_notebook(run_notebooks, tmp_path / "a.ipynb")) == []


@pytest.mark.parametrize("cell", [0, 1])
def test_a_cell_changed_after_the_run_is_noticed(run_notebooks, tmp_path, cell):
    path = a_notebook(run_notebooks, tmp_path / "a.ipynb")
    changed = nbformat.read(path, 4)
    changed.cells[cell].source += " "
    nbformat.write(changed, path)
    assert run_notebooks.complaints(path) == ["its outputs are not from its present cells"]


def test_an_error_in_the_outputs_is_noticed(run_notebooks, tmp_path):
    assert run_notebooks.complaints(a_notebook(run_notebooks, tmp_path / "a.ipynb", error=True)) == [
        "it holds an error"
    ]


def test_a_notebook_without_outputs_is_noticed(run_notebooks, tmp_path):
    path = a_notebook(run_notebooks, tmp_path / "a.ipynb")
    empty = nbformat.read(path, 4)
    empty.cells[1].outputs = []
    nbformat.write(empty, path)
    assert run_notebooks.complaints(path) == ["it has no outputs"]


def test_a_notebook_that_is_too_big_is_noticed(run_notebooks, tmp_path):
    [complaint] = run_notebooks.complaints(a_notebook(run_notebooks, tmp_path / "a.ipynb", text="x" * 1_500_000))
    assert "more than 1500000" in complaint


def test_a_kernel_that_dies_is_a_failure_with_the_name_of_its_notebook(run_notebooks, monkeypatch, capsys):
    def die(path):
        raise run_notebooks.DeadKernelError("Kernel died")

    monkeypatch.setattr(run_notebooks, "execute", die)
    assert run_notebooks.run([ROOT / "notebooks" / "some.ipynb"], keep=None) == 1
    assert "some.ipynb: a cell failed.\nKernel died" in capsys.readouterr().err
