"""What is said of a result, in words, for whatever shows it: a terminal, Markdown, a page.

Never "all tests passed": it says what was run, and who runs the rest.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from llminfer.grading.results import ExerciseResult, Failure, GroupResult, Status

WORDS = {
    Status.OK: "right",
    Status.WRONG: "wrong",
    Status.SHAPE: "wrong shape",
    Status.DTYPE: "wrong type",
    Status.NONFINITE: "NaN or infinite",
    Status.MUTATED_INPUT: "changes its input",
    Status.EXCEPTION: "raises",
    Status.TIMEOUT: "out of time",
    Status.MEMORY: "out of memory",
    Status.KILLED: "crashed",
    Status.EXIT: "ended itself",
    Status.IMPORT_ERROR: "cannot be imported",
    Status.MISSING: "missing",
    Status.NOT_DONE: "not begun",
    Status.FORBIDDEN_IMPORT: "not your own",
    Status.BAD_REPLY: "no usable answer",
    Status.OUTPUT_LIMIT: "too much output",
    Status.GRADER_ERROR: "grader failed",
    Status.COLLECTED: "collected",
    Status.NOT_RUN: "later",
}
OURS = "This is a mistake of the grader's, not yours. Please report it, with the line above."


@dataclass(frozen=True)
class Part:
    """A piece of an explanation. verbatim: shown letter by letter, as code is."""

    title: str
    text: str
    verbatim: bool = False


def parts(failure: Failure) -> list[Part]:
    """A failure in the order in which it is read; what there is nothing to say about is left out."""
    worst = ""
    if failure.worst_index is not None and failure.expected_at:
        index = f"[{', '.join(map(str, failure.worst_index))}]"
        worst = f"at {index}: expected {failure.expected_at}, got {failure.got_at}"
    off = ""
    if failure.error is not None and failure.allowed is not None:
        off = f"off by {failure.error:.3g}, allowed is {failure.allowed:.3g}"
    told = [
        Part("Limit", failure.limit),
        Part("Try it", failure.reproduction, verbatim=True),
        Part("Expected", failure.expected, verbatim=True),
        Part("Got", failure.got, verbatim=True),
        Part("Worst", "; ".join(words for words in (worst, off) if words)),
        Part("Map", failure.mismatch_map, verbatim=True),
        Part("Your lines", failure.traceback.rstrip(), verbatim=True),
        Part("You printed", failure.printed.rstrip(), verbatim=True),
        Part("Likely cause", failure.cause),
        Part("Read", f"section {failure.section}" if failure.section and failure.group else ""),
        Part("Note", OURS if failure.status is Status.GRADER_ERROR else ""),
    ]
    return [Part(part.title, plain(part.text), part.verbatim) for part in told if part.text]


def headline(failure: Failure) -> str:
    """Which case failed: "ten thousand, case 1: a row at 10,000 (made smaller)"."""
    small = " (made smaller)" if failure.shrunk else ""
    return plain(", ".join(words for words in (failure.group, failure.label) if words) + small)


def cases(group: GroupResult) -> str:
    """How many of a group's cases are right: "3/4", or nothing where that is not for students or was not asked."""
    return f"{group.passed}/{group.total}" if group.visible and group.total else ""


def verdict(results: Iterable[ExerciseResult]) -> str:
    """In one line: "visible 12/12 (4 of 4 points), hidden: run by your teacher (3 points)"."""
    groups = [group for result in results for group in result.groups]
    read = [group for group in groups if group.status is Status.COLLECTED]
    visible = [group for group in groups if group.visible and group not in read]
    run = [group for group in groups if not group.visible and group.status is not Status.NOT_RUN]
    later = [group for group in groups if group.status is Status.NOT_RUN]
    told = []
    if visible:
        total = sum(group.total for group in visible)
        asked = f" {sum(group.passed for group in visible)}/{total}" if total else ""
        told.append(f"visible{asked} ({_points(visible)})")
    if run:
        told.append(f"hidden groups {sum(group.status is Status.OK for group in run)}/{len(run)} ({_points(run)})")
    if read:
        told.append(f"collected: read by your teacher ({counted(sum(group.max_points for group in read), 'point')})")
    if later:
        told.append(f"hidden: run by your teacher ({counted(sum(group.max_points for group in later), 'point')})")
    return ", ".join(told)


def counted(number: float, what: str) -> str:
    """ "1 point", "2 points"."""
    return f"{number:g} {what}{'' if number == 1 else 's'}"


def plain(text: str) -> str:
    """Text that a student may have made, with control characters written out: none moves a cursor or turns a line."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else letter.encode("unicode_escape", "replace").decode()
        for letter in text
    )


def _points(groups: Iterable[GroupResult]) -> str:
    groups = list(groups)
    return f"{sum(group.points for group in groups):g} of {counted(sum(g.max_points for g in groups), 'point')}"
