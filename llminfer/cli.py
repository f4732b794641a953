"""`llminfer ...`: a thin shell. Each command reads its options, calls one importable function and prints the result."""

import json
import os
import sys
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Every idea of LLM inference, in NumPy and in Triton.",
)
pairs = typer.Typer(no_args_is_help=True, help="The kernels beside their references: list, check, bench, compile.")
app.add_typer(pairs, name="pairs")

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
MARKS = {"ok": "[green]ok[/]", "missing": "[yellow]missing[/]", "problem": "[red]problem[/]"}


def _console() -> Console:
    return Console(highlight=False)  # rich honours NO_COLOR and pipes by itself


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2, default=str))


@app.command()
def doctor(as_json: Json = False) -> None:
    """What this machine has, what is missing, and what to do; paste it into a bug report."""
    from llminfer.doctor import examine

    findings = examine()
    if as_json:
        return _print_json([asdict(finding) for finding in findings])
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        remedy = f"[dim]-> {finding.remedy}[/]" if finding.remedy else ""
        table.add_row(finding.subject, MARKS[finding.state], f"{finding.detail} {remedy}".strip())
    _console().print(table)


@app.command()
def where(
    asked: Annotated[str, typer.Argument(help="A section such as 3.1.4, or a name such as rmsnorm.")] = "3",
    as_json: Json = False,
    as_map: Annotated[bool, typer.Option("--map", help="Print the whole map as Markdown.")] = False,
) -> None:
    """Which section of the book a name belongs to, and which names a section has."""
    from llminfer.core.public_names import map_page
    from llminfer.core.public_names import where as find

    if as_map:
        return print(map_page(), end="")
    places = find(asked)
    if as_json:
        return _print_json([asdict(place) for place in places])
    table = Table(box=None, show_header=False, pad_edge=False)
    for place in places:
        table.add_row(place.section, place.title, place.name, f"[dim]{place.module}[/]")
    _console().print(table)


def main() -> None:
    """Run the command line. A mistake of the user's ends in one line that says what to do, not in a traceback."""
    try:
        app(standalone_mode=True)
    except (ValueError, FileNotFoundError) as mistake:
        if os.environ.get("LLMINFER_TRACEBACK"):
            raise
        print(f"error: {mistake}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
