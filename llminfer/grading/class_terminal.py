"""What the class commands show on a terminal."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from llminfer.grading.course import Course, GradescopeSettings, Homework
from llminfer.grading.diff import Change
from llminfer.grading.explaining import explained
from llminfer.grading.gradescope_trial import Trial
from llminfer.grading.pack import Packed
from llminfer.grading.publishing import Run
from llminfer.grading.release import Check
from llminfer.grading.results import ExerciseResult, Status

NOT_THERE = (Status.MISSING, Status.NOT_DONE, Status.IMPORT_ERROR, Status.FORBIDDEN_IMPORT)
"""Statuses of an exercise that cannot earn anything as it is."""


def console() -> Console:
    return Console(highlight=False)  # rich honours NO_COLOR and pipes by itself


@contextmanager
def show_progress() -> Iterator[Callable[[int, int, str], None]]:
    """A bar on a terminal, a line for every tenth elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    errors = Console(stderr=True, highlight=False)
    columns = (
        TextColumn("judging"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("")

        def tell(done: int, total: int, whose: str) -> None:
            bar.update(task, completed=done, total=total, description=escape(whose))
            if not errors.is_terminal and done * 10 // total > (done - 1) * 10 // total:
                print(f"judged {done} of {total}", file=sys.stderr)

        yield tell


def show_json(value: object) -> None:
    print(json.dumps(value, indent=2, default=str, ensure_ascii=False))


def run_ending(run: Run) -> int:
    """The exit code: 1 where points fall and nothing was published, 2 where the grader itself failed."""
    return 1 if not run.published else 2 if run.failed_judging else 0


def show_run(run: Run, as_json: bool) -> None:
    """The class in a table, and what needs the teacher."""
    if as_json:
        changes = [asdict(change) for change in run.changes]
        return show_json({"folder": run.folder, "published": run.published, "changes": changes, "run": run.record})
    table = Table(box=None, pad_edge=False)
    for heading in ("student", "name", "points", "", "not full"):
        table.add_column(heading, justify="right" if heading == "points" else "left", overflow="fold")
    for grade in run.grades:
        lacking = [
            f"{score.exercise.split('/')[1]} {score.points:g}/{score.max_points:g} {score.status.value}"
            for score in grade.scores
            if score.points < score.max_points
        ]
        points = f"{grade.total:g}/{grade.max_points:g}"
        table.add_row(escape(grade.student.id), escape(grade.student.name), points, grade.status, ", ".join(lacking))
    console().print(table)
    if run.intake.notes:
        print(f"{len(run.intake.notes)} notes on files that were renamed, refused or nobody's: intake.csv")
    if run.undecided:
        print(
            f"a person must look at: {', '.join(grade.student.id for grade in run.undecided)} (to-mark.csv, grades.csv)"
        )
    if run.changes:
        show_changes(run.changes)
    if not run.published:
        print(f"{len(run.drops)} scores fall, and nothing was published: see {run.folder / 'changes.csv'}.")
        return print("If that is right, repeat the command with --accept-drops.")
    print(f"grades.csv, canvas.csv, moodle.csv, items.csv and a page for each student: {run.folder}")
    if run.failed_judging:
        print("the grader itself failed somewhere: those rows say `check`. Run the command again; nobody lost points")


def show_changes(changes: Iterable[Change], as_json: bool = False) -> None:
    """Whose points differ, and why."""
    if as_json:
        return show_json([asdict(change) for change in changes])
    table = Table(box=None, pad_edge=False)
    for heading in ("student", "exercise", "before", "after", "why"):
        table.add_column(heading, justify="right" if heading in ("before", "after") else "left", overflow="fold")
    for change in changes:
        after = f"[red]{change.after:g}[/]" if change.falls else f"{change.after:g}"
        table.add_row(escape(change.student), change.exercise, f"{change.before:g}", after, escape(change.why))
    console().print(table)


def show_checks(checks: Sequence[Check], path: Path, as_json: bool) -> None:
    """What was proved of a hand-out, and what was not."""
    if as_json:
        return show_json({"path": path, "checks": [asdict(check) for check in checks]})
    for check in checks:
        mark = "[green]ok[/]" if check.holds else "[red]no[/]"
        detail = f" [dim]{escape(check.detail)}[/]" if check.detail else ""
        console().print(f"{mark}  {escape(check.statement)}{detail}")
    proved = all(check.holds for check in checks)
    print(path if proved else f"{path} must not be handed out; `release` writes nothing that is not proved")


def show_explained(course: Course, homework: Homework, as_json: bool) -> None:
    """Every value that holds, and where it comes from."""
    if as_json:
        return show_json(
            [dict(zip(("what", "value", "from"), row, strict=True)) for row in explained(course, homework)]
        )
    table = Table(box=None, pad_edge=False, show_header=False)
    for what, value, origin in explained(course, homework):
        table.add_row(escape(what), escape(value), f"[dim]{escape(origin)}[/]")
    console().print(table)


def packed_ending(results: Sequence[ExerciseResult]) -> int:
    """The exit code: 1 where something is missing or does not run."""
    return int(any(result.status in NOT_THERE for result in results))


def show_packed(packed: Packed, results: Sequence[ExerciseResult], as_json: bool) -> None:
    """What is in the zip, and what it does here."""
    if as_json:
        return show_json({**asdict(packed), "results": [result.to_json() for result in results]})
    table = Table(box=None, pad_edge=False, show_header=False)
    for result in results:
        visible = [group for group in result.groups if group.visible]
        right = sum(group.status in (Status.OK, Status.COLLECTED) for group in visible)
        colour = "red" if result.status in NOT_THERE else "green" if result.visible_right else "yellow"
        said = "" if result.status in NOT_THERE else f"visible {right}/{len(visible)}, hidden: run by your teacher"
        table.add_row(result.exercise, f"[{colour}]{result.status.value}[/]", said)
    console().print(table)
    print(f"{packed.path} holds {len(packed.files)} of {len(results)} files, read back as your teacher will read them.")
    print(f"SHA-256 {packed.sha256}")
    if packed_ending(results):
        print("Something is missing or does not run, as shown above: as it is, that earns nothing.")


def show_trial(trial: Trial, settings: GradescopeSettings, as_json: bool) -> None:
    """What Gradescope would show, and what it would stumble over."""
    if as_json:
        return show_json({**asdict(trial), "score": trial.score})
    table = Table(box=None, pad_edge=False)
    for heading in ("", "test", "points", "shown"):
        table.add_column(heading, justify="right" if heading == "points" else "left")
    for test in trial.results.get("tests", ()):
        points = f"{test['score']:g}/{test['max_score']:g}"
        table.add_row(test["number"], escape(test["name"]), points, test["visibility"])
    console().print(table)
    console().print(escape(trial.results.get("output", "")), style="dim")
    print(
        f"score {trial.score:g}; {trial.seconds:.0f} s of {60 * settings.minutes:.0f}; "
        f"{trial.peak_mb:.0f} MB of {settings.memory_mb} at most; setup.sh was not run"
    )
    for problem in trial.problems:
        console().print(f"[red]{escape(problem)}[/]")
    if trial.problems and trial.printed:
        console().print(escape(trial.printed[-2000:]), style="dim")
