"""Results on a terminal: a line for each exercise, its groups, and the failure to begin with."""

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from llminfer.grading.explanations import WORDS, Part, cases, headline, parts, plain, verdict
from llminfer.grading.results import ExerciseResult, Failure, GroupResult, Status

COLOURS = {Status.OK: "green", Status.COLLECTED: "green", Status.NOT_RUN: "dim", Status.NOT_DONE: "dim"}
TITLES = 12


def show(console: Console, results: Sequence[ExerciseResult]) -> None:
    """One exercise in full; of several a line each, and in full the first that was begun and is wrong."""
    if len(results) == 1:
        return _show_one(console, results[0])
    console.print(_list(results))
    console.print()
    console.print(Text(verdict(results), style="bold"))
    begun = (result for result in results if result.failure and result.status not in (Status.NOT_DONE, Status.MISSING))
    if first := next(begun, None):
        console.print()
        _show_one(console, first)


def _show_one(console: Console, result: ExerciseResult) -> None:
    title = Text.assemble((result.exercise, "bold"), "  ", plain(result.title))
    console.print(title)
    if any(group.total or group.note for group in result.groups):
        console.print(Padding(_groups(result.groups), (0, 0, 0, 2)))
    if result.failure:
        console.print()
        _show_failure(console, result.failure)
    console.print()
    console.print(Text(verdict([result]), style="bold"))
    console.print(Text(plain(result.isolation), style="dim"))


def _list(results: Sequence[ExerciseResult]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for width in (max(len(result.exercise) for result in results), None, None, None):
        table.add_column(min_width=width)
    table.add_column(no_wrap=True, overflow="ellipsis", style="dim", ratio=1)
    for result in results:
        visible = [group for group in result.groups if group.visible]
        asked = sum(group.total for group in visible)
        table.add_row(
            Text(result.exercise, no_wrap=True),
            _status(result.status),
            Text(f"{sum(group.passed for group in visible)}/{asked}" if asked else "", justify="right"),
            Text(f"{result.points:g} of {result.max_points - result.hidden_points:g}", no_wrap=True),
            Text(plain(result.title)),
        )
    return table


def _groups(groups: Sequence[GroupResult]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for group in groups:
        note = group.note if group.visible else f"hidden: {group.note}" if group.note else "hidden"
        table.add_row(
            _status(group.status),
            Text(group.name, no_wrap=True),
            Text(cases(group), justify="right"),
            Text(f"{group.points:g} of {group.max_points:g}", no_wrap=True),
            Text(note, style="dim"),
        )
    return table


def _status(status: Status) -> Text:
    return Text(WORDS[status], style=COLOURS.get(status, "red"), no_wrap=True)


def _show_failure(console: Console, failure: Failure) -> None:
    if words := headline(failure):
        console.print(Text(words, style="bold red"))
    console.print(Text(plain(failure.message)))
    told = parts(failure)
    lines = Table.grid(padding=(0, 2, 0, 0))
    lines.add_column(min_width=TITLES, style="bold")
    for part in told:
        if not _is_block(part):
            lines.add_row(part.title, Text(part.text, overflow="fold"))
    blocks = {part.title: part for part in told if _is_block(part)}
    pair = [blocks[title] for title in ("Expected", "Got") if title in blocks]
    for part in blocks.values():
        if len(pair) == 2 and part in pair and _fits(console, *pair):
            if part is pair[0]:
                _print_beside(console, *pair)
            continue
        console.print()
        _print_block(console, part)
    if lines.row_count:
        console.print()
        console.print(lines)


def _is_block(part: Part) -> bool:
    return part.verbatim and (part.title == "Try it" or "\n" in part.text)


def _fits(console: Console, one: Part, other: Part) -> bool:
    """Whether two blocks can stand beside each other."""
    return sum(max(map(len, part.text.splitlines())) for part in (one, other)) + 16 < console.width


def _print_block(console: Console, part: Part) -> None:
    """A title and, indented, what it says; no line is broken or cut, so that it can be copied."""
    console.print(Text(part.title, style="bold"))
    for line in part.text.splitlines():
        console.print(Text(f"    {line}"), no_wrap=True, overflow="ignore", crop=False)


def _print_beside(console: Console, one: Part, other: Part) -> None:
    beside = Table.grid(padding=(0, 6, 0, 0))
    beside.add_row(*(Text(part.title, style="bold") for part in (one, other)))
    indented = ("\n".join(f"    {line}" for line in part.text.splitlines()) for part in (one, other))
    beside.add_row(*(Text(text) for text in indented))
    console.print()
    console.print(beside)
