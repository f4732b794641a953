"""What is said of a result, and that what a student wrote stands in it as text and nothing else."""

import html
import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from rich.console import Console

from llminfer.grading import report
from llminfer.grading.explanations import WORDS, headline, parts, plain, verdict
from llminfer.grading.results import ExerciseResult, Failure, GroupResult, Status
from llminfer.grading.terminal import show

GROUPS = (
    GroupResult("small", True, 2.0, 2.0, 3, 3, Status.OK, "two rows"),
    GroupResult("large", True, 0.0, 1.0, 1, 2, Status.WRONG, "many rows"),
    GroupResult("any", False, 0.0, 3.0, 0, 0, Status.NOT_RUN, "run by your teacher"),
)
RUN = replace(GROUPS[2], status=Status.OK, points=3.0)
FAILURE = Failure(
    group="large",
    status=Status.WRONG,
    message="2 of 4 elements are wrong",
    label="case 2: many",
    reproduction="from f import f\nf(x=" + "1, " * 60 + "1)",
    expected="[[1. 2.]\n [3. 4.]]",
    got="[[1. 0.]\n [3. 0.]]",
    worst_index=(1, 1),
    expected_at="4",
    got_at="0",
    mismatch_map="   0\n0  .x\n1  .x",
    error=4.0,
    allowed=4e-5,
    cause="Whose mean is it?",
    section="3.1.2",
    shrunk=True,
)
RESULT = ExerciseResult(
    "3.1/f", "A title", 2, Status.WRONG, 2.0, 6.0, GROUPS, FAILURE, 0.1, "isolation: x", {"numpy": "2"}
)
EVIL = "<script>alert(1)</script> [link](javascript:x) `` ``` ``` \x1b[2J\x1b]0;title\x07 | \u202egnp.exe \ud800 & \"'"


def on_a_terminal(results: list[ExerciseResult], width: int) -> str:
    out = io.StringIO()
    show(Console(file=out, width=width, highlight=False), results)
    return out.getvalue()


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (GROUPS, "visible 4/5 (2 of 3 points), hidden: run by your teacher (3 points)"),
        (GROUPS[:1] + GROUPS[2:], "visible 3/3 (2 of 2 points), hidden: run by your teacher (3 points)"),
        ((*GROUPS[:2], RUN), "visible 4/5 (2 of 3 points), hidden groups 1/1 (3 of 3 points)"),
        ((replace(GROUPS[0], status=Status.COLLECTED, points=0.0),), "collected: read by your teacher (2 points)"),
        ((replace(GROUPS[1], passed=0, total=0, status=Status.NOT_DONE),), "visible (0 of 1 point)"),
    ],
)  # fmt: skip
def test_a_verdict_counts_what_was_run_and_says_who_runs_the_rest(groups, words):
    assert verdict([replace(RESULT, groups=groups)]) == words


def test_nothing_ever_says_that_all_tests_passed():
    everything = replace(RESULT, groups=GROUPS[:1], status=Status.OK, failure=None)
    for shown in (on_a_terminal([everything], 80), report.html([everything]), report.markdown([everything])):
        assert not re.search(r"\b(all|tests?) (tests )?passed", shown, re.IGNORECASE)


def test_every_status_has_its_words():
    assert set(WORDS) == set(Status)
    assert len(set(WORDS.values())) == len(Status)


def test_a_failure_is_told_in_the_order_in_which_it_is_read():
    assert headline(FAILURE) == "large, case 2: many (made smaller)"
    assert [part.title for part in parts(FAILURE)] == [
        "Try it", "Expected", "Got", "Worst", "Map", "Likely cause", "Read"
    ]  # fmt: skip
    worst = next(part.text for part in parts(FAILURE) if part.title == "Worst")
    assert worst == "at [1, 1]: expected 4, got 0; off by 4, allowed is 4e-05"


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_breaks_no_line_that_is_to_be_copied(width):
    shown = on_a_terminal([RESULT], width)
    for line in FAILURE.reproduction.splitlines():
        assert f"    {line}\n" in shown
    others = [line for line in shown.splitlines() if "1, 1, 1" not in line]
    assert max(map(len, others)) <= width


def test_several_exercises_are_a_line_each_and_one_failure():
    shown = on_a_terminal([replace(RESULT, exercise="3.1/a"), RESULT, replace(RESULT, exercise="3.1/b")], 80)
    assert len(re.findall(r"^3\.1/. +wrong +4/5 +2 of 3 +A title", shown, re.MULTILINE)) == 3
    assert shown.count("Whose mean is it?") == 1
    assert "visible 12/15 (6 of 9 points), hidden: run by your teacher (9 points)" in shown


class Page(HTMLParser):
    """Tags with their attributes, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def evil_result() -> ExerciseResult:
    fields = ("group", "message", "label", "reproduction", "expected", "got", "cause", "traceback", "printed", "limit")
    failure = replace(FAILURE, **dict.fromkeys((*fields, "mismatch_map", "section"), EVIL))
    groups = (replace(GROUPS[1], name=EVIL, note=EVIL),)
    return replace(
        RESULT, exercise=EVIL, title=EVIL, groups=groups, failure=failure, isolation=EVIL, fingerprint={EVIL: EVIL}
    )


def test_a_page_is_text_whatever_a_student_wrote():
    page = Page(report.html([evil_result(), RESULT], heading=EVIL, lines=[EVIL]))
    allowed = "html head meta title style body h1 h2 h3 ul li p strong br pre table tr th td a span div footer"
    assert {tag for tag, _ in page.tags} <= set(allowed.split())
    assert all(re.fullmatch(r"#e\d+", about["href"]) for tag, about in page.tags if tag == "a")
    assert not any(name.startswith("on") or name == "src" for _, about in page.tags for name in about)
    assert page.text.count("<script>alert(1)</script>") > 10
    assert "\x1b" not in page.text
    assert "\u202e" not in page.text


def test_a_page_lets_a_browser_run_and_fetch_nothing_and_its_own_style_alone():
    page = report.html([RESULT])
    policy = next(about["content"] for tag, about in Page(page).tags if about.get("http-equiv"))
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in page.replace("http-equiv", "")
    assert report.STYLE in html.unescape(page)


def test_markdown_holds_what_a_student_wrote_in_fences_and_escapes():
    page = report.markdown([evil_result()], heading=EVIL, lines=[EVIL])
    outside = re.sub(r"^(`{3,})\n.*?\n\1$", "", page, flags=re.DOTALL | re.MULTILINE)
    assert "<script>" not in outside.replace("\\<", "")
    assert "[link]" not in outside.replace("\\[", "").replace("\\]", "")
    assert "\x1b" not in page
    fences = re.findall(r"^`{3,}$", page, re.MULTILINE)
    assert len(fences) % 2 == 0
    assert min(map(len, fences)) > 3  # the text has a fence of three


@pytest.mark.parametrize("text", [EVIL, "a\r\nb", "\x00\x7f\x9b", "日本 ✓ é"])
def test_plain_text_moves_no_cursor_and_turns_no_line(text):
    shown = plain(text)
    assert all(letter.isprintable() or letter in "\n\t" for letter in shown)
    assert shown.encode("utf-8")
    if text.isprintable():
        assert shown == text
