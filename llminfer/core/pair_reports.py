"""What `llminfer pairs list|check|bench|compile` shows: one report each, as a table for people and as plain data.

The functions take a chapter ("3.1", "basics"), a pair ("basics.rmsnorm"), or None for all. `tell` is called with the
name of each pair before the work on it begins, so that a command can show how far it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llminfer.core.compilation import TARGETS, CompileResult, compile_pairs
from llminfer.core.hardware import device
from llminfer.core.measurement import measure_device
from llminfer.core.pairs import CHAPTERS, check, find_pairs, measure, pair_modules, pair_names
from llminfer.core.timing import Measurement, RoofLike

if TYPE_CHECKING:
    from rich.table import Table

PREDICTED_ON: tuple[str, ...] = ("h100-sxm", "rtx-4070", "mi300x")
"""Devices for which a bench without a GPU says what the kernel could do at best."""


def _silent(name: str) -> None:
    """Tells nobody."""


@dataclass(frozen=True)
class Report:
    """A table and the data behind it. `passed` is False when a check, a compile or a roof was not held."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    data: list[dict]
    passed: bool = True
    notes: tuple[str, ...] = ()

    def table(self) -> "Table":
        """The report as a rich table; numbers are aligned right, the notes stand under it."""
        from rich.box import SIMPLE_HEAD
        from rich.markup import escape
        from rich.table import Table

        notes = escape("\n".join(self.notes))
        table = Table(
            title=escape(self.title),
            caption=notes or None,
            caption_justify="left",
            box=SIMPLE_HEAD,
            padding=(0, 0, 0, 1),
        )
        for place, column in enumerate(self.columns):
            justify = "left" if place == 0 else "right"
            table.add_column(escape(column), justify=justify, overflow="fold", no_wrap=place == 0 or column == "dtype")
        for row in self.rows:
            table.add_row(*map(escape, row))
        return table

    def as_dict(self) -> dict:
        return {"title": self.title, "passed": self.passed, "results": self.data, "notes": list(self.notes)}


def _nothing(which: str | None) -> Report:
    """The report on a chapter whose kernels are still to be written."""
    return Report("Pairs", ("pair",), ((f"chapter {which} has no pairs yet",),), [])


def list_pairs(which: str | None = None) -> Report:
    """The pairs and the modules of their kernels. Reads sources only: works without torch."""
    modules, numbers = pair_modules(), {package: number for number, package in CHAPTERS.items()}
    found = [(name, numbers.get(name.split(".")[0], ""), modules[name]) for name in pair_names(which)]
    if not found:
        return _nothing(which)
    data = [dict(zip(("pair", "chapter", "module"), row, strict=True)) for row in found]
    return Report("Pairs", ("pair", "chapter", "kernel"), tuple(found), data)


def check_pairs(which: str | None = None, tell: Callable[[str], None] = _silent) -> Report:
    """Hold every kernel against its reference; a row for each pair and dtype, with the trial nearest to its limit."""
    chosen = find_pairs(which)
    if not chosen:
        return _nothing(which)
    rows, data, notes = [], [], []
    for pair in chosen:
        tell(pair.name)
        result = check(pair)
        for dtype in dict.fromkeys(trial.dtype for trial in result.trials):
            trials = [trial for trial in result.trials if trial.dtype == dtype]
            bad, worst = sum(not trial.passed for trial in trials), result.worst(dtype)
            numbers = (worst.max_error, worst.allowed_error, worst.relative_rms, worst.allowed_rms)
            verdict = f"{bad}/{len(trials)} failed" if bad else f"{len(trials)} ok"
            rows.append((pair.name, dtype, *(f"{number:.2g}" for number in numbers), verdict))
        notes += [f"{pair.name}: {trial}" for trial in result.failures[:3]]
        notes += [f"{pair.name}: skipped, {reason}" for reason in result.skipped]
        data.append(result.as_dict())
    where = "in Triton's interpreter" if any(result["interpreted"] for result in data) else "on the GPU"
    return Report(
        f"Kernels against their references in float64, {where}",
        ("pair", "dtype", "largest error", "allowed", "relative RMS", "allowed", "trials"),
        tuple(rows),
        data,
        passed=all(result["passed"] for result in data),
        notes=tuple(notes),
    )


def bench_pairs(
    which: str | None = None,
    dtype: str | None = None,
    roof: RoofLike | None = None,
    predict_on: Sequence[str] = PREDICTED_ON,
    tell: Callable[[str], None] = _silent,
) -> Report:
    """Time every pair on the machine at hand against its measured roof.

    Without a GPU: NumPy and torch as measured here, and the bound of the kernel on the devices of `predict_on`.
    A time faster than the roof allows fails the report. Raises ValueError for an unknown name or device.
    """
    chosen, devices = find_pairs(which), [device(name) for name in predict_on]
    if not chosen:
        return _nothing(which)
    if roof is None:
        from llminfer.core.triton_environment import DEVICE  # torch is there: find_pairs needed it

        roof = measure_device("numpy" if DEVICE == "cpu" else "cuda")
    found = []
    for pair in chosen:
        tell(pair.name)
        found.append(measure(pair, dtype, "bench", roof, devices))
    return _bench_report(found, roof)


def compile_report(
    which: str | None = None, targets: Sequence[str] = tuple(TARGETS), dtype: str | None = None
) -> Report:
    """Compile every kernel for every target, all in one process; a row for each kernel, a column for each target."""
    chosen = find_pairs(which)
    if not chosen:
        return _nothing(which)
    results = compile_pairs(chosen, targets, dtype)
    names = dict.fromkeys((result.pair, result.dtype, kernel) for result in results for kernel in _kernel_names(result))
    by_target = {(result.pair, result.target): result for result in results}
    rows = [
        (
            "\n".join(filter(None, (pair, kernel, dtype))),
            *(_compiled_cell(by_target[pair, target], kernel) for target in targets),
        )
        for pair, dtype, kernel in names
    ]
    return Report(
        "Compiled, not run: registers / bytes of local memory per thread / bytes of shared memory per block",
        ("kernel", *targets),
        tuple(rows),
        [result.as_dict() for result in results],
        passed=all(result.passed for result in results),
        notes=tuple(str(result) for result in results if not result.passed),
    )


def _bench_report(found: list[Measurement], roof: RoofLike) -> Report:
    """Times with their share of the roof; for what was not timed, nothing."""
    implementations = list(dict.fromkeys(timing.implementation for result in found for timing in result.timings))
    devices = list(dict.fromkeys(device for result in found for device in result.predictions))
    rows = [
        (
            f"{result.pair}\n{result.dtype}",
            *(_timed_cell(result, implementation) for implementation in implementations),
            *(_time(result.predictions[device]) for device in devices),
        )
        for result in found
    ]
    notes = [f"{timing.implementation}: {timing.note}" for result in found for timing in result.timings if timing.note]
    above = [
        f"{result.pair}: {', '.join(result.above_roof)} faster than the roof allows"
        for result in found
        if result.above_roof
    ]
    return Report(
        f"Median time and share of the roof, on {roof.name}",
        ("pair", *implementations, *(f"bound on {device}" for device in devices)),
        tuple(rows),
        [result.as_dict() for result in found],
        passed=not above,
        notes=(*dict.fromkeys(notes), *(f"{result.pair}: {result.shapes}" for result in found), *above),
    )


def _timed_cell(result: Measurement, implementation: str) -> str:
    share = result.share_of_roof(implementation)
    return _time(result.seconds(implementation)) + (f"\n{share:.0%}" if share is not None else "")


def _time(seconds: float | None) -> str:
    """Three digits and the unit that suits them: "762 ms", "15.7 µs"; nothing for None."""
    if seconds is None:
        return ""
    unit, scale = next(((unit, scale) for unit, scale in (("s", 1.0), ("ms", 1e-3)) if seconds >= scale), ("µs", 1e-6))
    value = seconds / scale
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"


def _kernel_names(result: CompileResult) -> tuple[str, ...]:
    return tuple(kernel.name for kernel in result.kernels) or ("",)


def _compiled_cell(result: CompileResult, name: str) -> str:
    """A pair may launch one kernel in several forms; each is shown."""
    if result.error:
        return "error"
    large = " too large" if name in result.too_large else ""
    forms = [f"{k.registers}/{k.local_bytes}/{k.shared_bytes}{large}" for k in result.kernels if k.name == name]
    return "\n".join(forms)
