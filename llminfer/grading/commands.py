"""`llminfer grade` and `llminfer exercises`: each reads its options, calls what does the work, and shows the result."""

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:  # what judges is imported when a command runs, so that `llminfer --help` does not wait for it
    from llminfer.grading.results import ExerciseResult
    from llminfer.grading.spec import Exercise

exercises = typer.Typer(no_args_is_help=True, help="The exercises: list, copy, show.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Student = Annotated[str, typer.Option(help="Your student id, for exercises whose numbers are your own.")]
Which = Annotated[str | None, typer.Argument(help="A chapter (3.1), an exercise (3.1/top_p) or a homework (hw1).")]
POLL_S = 0.3


def grade(
    which: Which = None,
    watch: Annotated[bool, typer.Option("--watch", help="Grade again whenever a file is saved.")] = False,
    as_json: Json = False,
    hint: Annotated[bool, typer.Option("--hint", help="A hint for the exercise, one more each time.")] = False,
    student: Student = "",
    seed: Annotated[int, typer.Option(help="Other inputs of the same kind; 0 are the ones that count.")] = 0,
    log: Annotated[bool, typer.Option("--log", help="Keep attempts.jsonl here from now on. It goes nowhere.")] = False,
) -> None:
    """Grade your exercises: what is right, and of what is not the smallest input that shows it."""
    from llminfer.grading import attempts, workplace

    here = Path.cwd()
    meant = workplace.meant(which, here)
    if hint:
        return _show_hint(meant, here)
    results = _graded(meant, here, as_json, student=student, seed=seed)
    attempts.keep(results, here, begin=log)
    if watch:
        _watch(meant, here, student=student, seed=seed)
    raise typer.Exit(exit_code(results))


def exit_code(results: Sequence["ExerciseResult"]) -> int:
    """0 only where all visible groups are right; 2 for a mistake of the grader's."""
    from llminfer.grading.results import Status

    if any(result.status is Status.GRADER_ERROR for result in results):
        return 2
    return 0 if all(result.visible_right for result in results) else 1


def _graded(meant: Sequence["Exercise"], here: Path, as_json: bool, **options: object) -> list["ExerciseResult"]:
    """Grade, with a line on the terminal that says how far it is, and show the results."""
    from llminfer.grading.isolation import strongest

    done: list[str] = []
    with (
        TemporaryDirectory() as scratch,
        Console(stderr=True, highlight=False).status("grading") as status,
        ThreadPoolExecutor(1) as pool,
    ):
        found = pool.submit(strongest)  # which waits for a worker while the judge is imported
        from llminfer.grading import workplace
        from llminfer.grading.judge import grade_many
        from llminfer.grading.terminal import show

        def tell(result: "ExerciseResult") -> None:
            done.append(result.exercise)
            status.update(f"grading: {len(done)} of {len(meant)}, {result.exercise}")

        jobs = [(exercise, workplace.submission(exercise, here, Path(scratch))) for exercise in meant]
        results = list(grade_many(jobs, tell, isolation=found.result(), **options))
    if as_json:
        print(json.dumps([result.to_json() for result in results], indent=2))
    else:
        show(Console(highlight=False), results)
        _say_next(meant, results)
    return results


def _say_next(meant: Sequence["Exercise"], results: Sequence["ExerciseResult"]) -> None:
    """What to type next, where something is to be done."""
    from llminfer.grading.results import Status

    for exercise, result in zip(meant, results, strict=True):
        if result.status is Status.MISSING:
            return print(f"\n{exercise.file_name} is not here: llminfer exercises copy {exercise.chapter}")
        if not result.visible_right and result.status not in (Status.NOT_DONE, Status.GRADER_ERROR):
            return print(f"\nStuck? llminfer grade {exercise.id} --hint") if exercise.hints else None


def _watch(meant: Sequence["Exercise"], here: Path, **options: object) -> None:
    """Grade what was saved, until Ctrl-C."""
    from llminfer.grading import workplace

    def saved(exercise: "Exercise") -> float:
        file = workplace.source_file(exercise, here)
        return file.stat().st_mtime if file else 0.0

    seen = {exercise.id: saved(exercise) for exercise in meant}
    try:
        while True:
            time.sleep(POLL_S)
            changed = [exercise for exercise in meant if saved(exercise) != seen[exercise.id]]
            if changed:
                seen |= {exercise.id: saved(exercise) for exercise in changed}
                Console().rule()
                _graded(changed, here, as_json=False, **options)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _show_hint(meant: Sequence["Exercise"], here: Path) -> None:
    from llminfer.grading.hints import next_hint

    if len(meant) != 1:
        raise ValueError(f"a hint is for one exercise; say which, as in: llminfer grade {meant[0].id} --hint")
    Console(highlight=False).print(Text(next_hint(meant[0], here)))


@exercises.command("list")
def list_(which: Which = None, as_json: Json = False) -> None:
    """The exercises in the order in which they are meant to be done."""
    from llminfer.grading.spec import all_exercises
    from llminfer.grading.workplace import meant

    found = meant(which, Path.cwd()) if which else all_exercises()
    if as_json:
        return print(json.dumps([_described(exercise) for exercise in found], indent=2))
    table = Table(box=None, pad_edge=False)
    for heading, side in (("exercise", "left"), ("", "left"), ("minutes", "right"), ("", "left"), ("points", "right")):
        table.add_column(heading, justify=side)
    for exercise in found:
        table.add_row(
            Text(exercise.id, no_wrap=True),
            Text(exercise.title),
            str(exercise.minutes),
            Text("*" * exercise.difficulty),
            f"{exercise.points:g}",
        )
    Console(highlight=False).print(table)


@exercises.command()
def copy(
    which: Annotated[str, typer.Argument(help="A chapter (3.1), an exercise (3.1/top_p) or a homework (hw1).")],
    folder: Annotated[Path, typer.Option(help="Where to put them.")] = Path("exercises"),
    as_json: Json = False,
) -> None:
    """Bring starters here, to be filled in. A file that is there already is left as it is."""
    from llminfer.grading.workplace import copy_starters, meant

    done = copy_starters(meant(which, Path.cwd()), folder)
    if as_json:
        return print(json.dumps([{"path": str(each.path), "written": each.written} for each in done], indent=2))
    for each in done:
        print(f"{'wrote' if each.written else 'kept '} {each.path}")
    print("nothing to copy: these are the originals" if not done else f"\nNow: llminfer grade {which}")


@exercises.command()
def show(
    which: Annotated[str, typer.Argument(help="An exercise, as 3.1/top_p.")],
    student: Student = "",
    as_json: Json = False,
) -> None:
    """One exercise: its task, its groups and points, and the numbers drawn for a student."""
    from llminfer.grading.questions import drawn_numbers
    from llminfer.grading.workplace import meant

    found = meant(which, Path.cwd())
    if len(found) != 1:
        raise ValueError(f"{which} is {len(found)} exercises; show takes one, such as {found[0].id}")
    [exercise] = found
    drawn = drawn_numbers(exercise, student) if exercise.kind == "number" else {}
    if as_json:
        return print(json.dumps({**_described(exercise), "student": student, "numbers": drawn}, indent=2))
    print(_task(exercise))
    print(f"\n{exercise.id}: {exercise.minutes} minutes, section {exercise.section}")
    for group in exercise.groups:
        told = group.about if group.visible else f"hidden: {group.about}"
        print(f"  {group.points:g} {'point ' if group.points == 1 else 'points'}  {group.name}: {told}")
    if drawn:
        print(f"\nYour numbers, {student}:" if student else "\nNobody's numbers; --student YOUR-ID prints yours:")
        print(json.dumps(drawn, indent=4).replace(": true", ": True").replace(": false", ": False"))


def _described(exercise: "Exercise") -> dict[str, object]:
    names = ("id", "title", "kind", "section", "minutes", "difficulty", "points")
    groups = [{"name": group.name, "points": group.points, "visible": group.visible} for group in exercise.groups]
    return {name: getattr(exercise, name) for name in names} | {"groups": groups}


def _task(exercise: "Exercise") -> str:
    """The task as the starter tells it: its docstring, read and not run, or a short answer's whole text."""
    import ast

    text = exercise.starter.read_text(encoding="utf-8")
    return text.rstrip() if exercise.kind == "short-answer" else ast.get_docstring(ast.parse(text)) or exercise.title
