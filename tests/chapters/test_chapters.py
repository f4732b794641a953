"""What holds for every chapter: its examples run, its links lead somewhere, its pictures are what the code draws."""

import ast
import doctest
import importlib.util
import re
import sys
from pathlib import Path

import matplotlib
import pytest

from llminfer.core.public_names import written_chapters

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted((ROOT / "chapters").glob("*.md"))
TOOLS = ROOT / "tools"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def draw_figures():
    spec = importlib.util.spec_from_file_location("draw_figures", TOOLS / "draw_figures.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))
        spec.loader.exec_module(module)
        yield module
    for name in [name for name in sys.modules if name.startswith("figures_")]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def pictures(draw_figures) -> dict[str, dict]:
    return {chapter: draw_figures.drawings(chapter) for chapter in draw_figures.modules()}


def chapter_id(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", CHAPTERS, ids=chapter_id)
def test_the_examples_of_a_chapter_print_what_they_say(path):
    text = path.read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"^```pycon\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, path.name, str(path), 0)
    assert test.examples
    printed = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=printed.append)
    assert result.failed == 0, "".join(printed)


@pytest.mark.parametrize("path", CHAPTERS, ids=chapter_id)
def test_links_of_a_chapter_lead_to_files_of_the_repository(path):
    targets = [target for _, _, target in LINK.findall(path.read_text(encoding="utf-8"))]
    assert targets
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (path.parent / target).is_file()] == []


@pytest.mark.parametrize("path", CHAPTERS, ids=chapter_id)
def test_every_link_to_code_names_only_what_is_there(path):
    for _, words, target in LINK.findall(path.read_text(encoding="utf-8")):
        if target.endswith(".py"):
            source = (path.parent / target).read_text(encoding="utf-8")
            for name in re.findall(r"`([^`]+)`", words):
                assert re.search(rf"^(class |def |)({re.escape(name)})\b", source, re.MULTILINE), f"{name} in {target}"


@pytest.mark.parametrize("path", CHAPTERS, ids=chapter_id)
def test_a_chapter_has_at_least_five_pictures_and_words_for_each(path):
    pictures = [(words, target) for mark, words, target in LINK.findall(path.read_text(encoding="utf-8")) if mark]
    assert len(pictures) >= 5
    for words, target in pictures:
        assert len(words) >= 40, f"{target} needs words that stand for it, has {words!r}"
        assert target.endswith(".svg")


@pytest.mark.parametrize("path", CHAPTERS, ids=chapter_id)
def test_a_chapter_has_at_least_six_questions_with_answers_to_unfold(path):
    text = path.read_text(encoding="utf-8")
    unfolding = re.findall(r"<details>\n<summary>(.+?)</summary>\n\n.+?\n\n</details>", text, flags=re.DOTALL)
    assert len(unfolding) == text.count("<details>") == text.count("</details>")
    answers = unfolding.count("Answer")
    assert answers >= 6
    assert answers == len(re.findall(r"^\*\*\d+\.\*\* ", text, flags=re.MULTILINE))


@pytest.mark.parametrize("path", CHAPTERS, ids=chapter_id)
def test_maths_has_no_backslash_that_markdown_would_eat(path):
    """GitHub reads a backslash before punctuation as an escape, inside of $...$ too."""
    for maths in re.findall(r"\$\$?[^$]+\$\$?", path.read_text(encoding="utf-8")):
        assert not re.search(r"\\[^A-Za-z]", maths), maths


def test_pictures_are_those_that_chapters_show(draw_figures):
    shown = {
        (path.parent / target).resolve()
        for path in CHAPTERS
        for mark, _, target in LINK.findall(path.read_text(encoding="utf-8"))
        if mark
    }
    drawn = {
        path.resolve() for chapter in draw_figures.modules() for path in (draw_figures.FIGURES / chapter).iterdir()
    }
    assert drawn == shown


@pytest.mark.slow
@pytest.mark.parametrize("path", CHAPTERS, ids=chapter_id)
def test_below_each_picture_are_its_numbers(draw_figures, pictures, path):
    text = path.read_text(encoding="utf-8")
    chapter = path.name.split("-")[0]
    assert draw_figures.with_tables(text, pictures[chapter]) == text, f"run tools/draw_figures.py {chapter}"
    assert text.count("Data of this picture") == len(re.findall(r"^!\[", text, re.MULTILINE))


@pytest.mark.parametrize("path", CHAPTERS, ids=chapter_id)
def test_sections_are_those_of_the_package_and_point_into_it(read_parts, path):
    number = path.name.split("-")[0]
    found = {name: part for name, part in read_parts(path).items() if name.startswith(f"{number}.")}
    titles = [part.split("\n")[0].removeprefix("## ") for part in found.values()]
    assert titles == [f"{section.number} {section.title}" for section in written_chapters()[number].SECTIONS]
    for name, part in found.items():
        assert re.search(rf"^\*In the library:\* [^*]+`llminfer where {re.escape(name)}`$", part, re.MULTILINE), name


@pytest.mark.parametrize("path", CHAPTERS, ids=chapter_id)
def test_the_numbers_of_every_part_of_a_chapter_are_looked_at(read_parts, path):
    """Each part is named in PARTS of exactly one test file of the chapter."""
    files = Path(__file__).parent.glob(f"test_{path.name.split('-')[0].replace('.', '_')}_*.py")
    lines = [re.search(r"^PARTS = (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE) for file in files]
    named = [name for line in lines for name in ast.literal_eval(line[1])]
    assert sorted(named) == sorted(read_parts(path))


def skeleton(svg: str) -> tuple[str, list[float]]:
    """An SVG as its text without numbers, and its numbers; names that are hashes of numbers are left out."""
    svg = re.sub(r'(id="|href="#|url\(#)[^")]*', r"\1", svg)
    number = r"-?\d+\.?\d*(?:e-?\d+)?"
    return re.sub(number, "0", svg), [float(found) for found in re.findall(number, svg)]


@pytest.mark.slow
def test_pictures_are_what_the_code_draws(draw_figures, pictures, tmp_path):
    """To a twentieth of a point, as another processor may round otherwise. Another matplotlib draws other lines."""
    pinned = re.search(r"^matplotlib==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    if not pinned or pinned[1] != matplotlib.__version__:
        pytest.skip(f"the stored pictures are of the matplotlib in constraints.txt, here is {matplotlib.__version__}")
    for chapter, drawn in pictures.items():
        for path in draw_figures.save(drawn, tmp_path / chapter):
            stored = draw_figures.FIGURES / chapter / path.name
            text, numbers = skeleton(stored.read_text(encoding="utf-8"))
            drawn_text, drawn_numbers = skeleton(path.read_text(encoding="utf-8"))
            assert text == drawn_text, f"{stored.name} is outdated; run tools/draw_figures.py {chapter}"
            assert drawn_numbers == pytest.approx(numbers, abs=0.05), f"{stored.name}: tools/draw_figures.py {chapter}"
