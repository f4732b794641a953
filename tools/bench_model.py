"""Time the NumPy model against the roof of this machine, and against transformers where that is installed.

    make bench                                         SmolLM2, or `tiny` where it was not fetched
    python tools/bench_model.py --model tiny --json    any model that `load_model` takes; numbers for programs

All that is compared takes turns, round after round, the roofs too, so that whatever else the machine does meets all of
it. Every time and rate is a median.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from importlib.metadata import version
from math import prod
from statistics import median, quantiles
from time import perf_counter, sleep, thread_time

import numpy as np
from bench_sides import Case, NumPySide, Side, cases, gemm, gemm_shape, gemv, products
from contiguous_cache import ContiguousCache
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from llminfer.basics.checkpoints import available_models, load_model
from llminfer.basics.config import ModelConfig
from llminfer.basics.steps import step_cost
from llminfer.basics.transformer import Transformer
from llminfer.core import host
from llminfer.core.cost import Cost

OURS, THEIRS, PRODUCTS, GEMV, GEMM = "numpy", "transformers", "products", "gemv", "gemm"
AGREEMENT = 1e-3  # of two sets of logits, relative to the largest: float32, with sums in different orders
PAUSE_S = 0.05  # threads of one library wait for more work a while, before they leave the cores to another's
SECONDS = 15.0  # for each case
ROUNDS = 3  # at least
QUIET = 0.95  # of a core, for the main thread
WIDTH = 116  # the table is not folded
COLUMNS = ("step", "NumPy, ms", "tokens/s", "roof", "of roof", "products, ms", "transformers, ms", "theirs / ours")


@dataclass(frozen=True)
class Result:
    """What the rounds of one case gave. seconds: of each step, by what took it. gemm_flops: of one GEMM.

    share: how much of a core our main thread got while it worked, 1 on a quiet machine. difference: of our logits and
    transformers', relative to the largest; None without transformers.
    """

    case: Case
    cost: Cost
    seconds: dict[str, list[float]]
    gemm_flops: float
    share: float
    difference: float | None

    @property
    def bandwidth(self) -> float:
        """Bytes/s of a GEMV over as many bytes as the step must move."""
        return self.cost.bytes / median(self.seconds[GEMV])

    @property
    def rate(self) -> float:
        """FLOP/s of the GEMM."""
        return self.gemm_flops / median(self.seconds[GEMM])

    @property
    def roof_s(self) -> float:
        """The least a step can take: all bytes as fast as a GEMV reads, or all FLOPs as fast as a GEMM computes."""
        return max(self.cost.bytes / self.bandwidth, self.cost.flops / self.rate)

    @property
    def share_of_roof(self) -> float:
        return self.roof_s / median(self.seconds[OURS])

    def as_dict(self) -> dict:
        return {
            "case": self.case.name,
            "tokens": self.case.tokens,
            "flops": self.cost.flops,
            "bytes": self.cost.bytes,
            "gemv_bytes_per_s": self.bandwidth,
            "gemm_flops_per_s": self.rate,
            "roof_s": self.roof_s,
            "share_of_roof": self.share_of_roof,
            "processor_share": self.share,
            "logit_difference": self.difference,
            "median_s": {name: median(times) for name, times in self.seconds.items()},
            "seconds": self.seconds,
        }


def bench(
    model: Transformer, theirs: Side | None, seconds: float = SECONDS, tell: Callable[[str], object] = print
) -> list[Result]:
    """Measure all cases, some `seconds` each. Raises ValueError when the two sides do not compute the same."""
    ours = NumPySide(model)
    sides: dict[str, Side] = {OURS: ours} if theirs is None else {OURS: ours, THEIRS: theirs}
    todo = cases(model.config)
    stored = ours.store(max(case.context for case in todo))
    results = []
    for case in todo:
        tell(case.name)
        results.append(measure(model, sides, case, stored, seconds))
    return results


def measure(model: Transformer, sides: dict[str, Side], case: Case, stored: ContiguousCache, seconds: float) -> Result:
    """Rounds in which each side, the products alone and both roofs take their turns."""
    difference = compare(sides, case, stored)
    cost = step_cost(model.config, case.segments, weights="float32", kv="float32")
    shape = gemm_shape(model.config)
    opened: dict[str, Callable[[], Callable[[], object]]] = {
        **{name: partial(side.open, case, stored) for name, side in sides.items()},
        PRODUCTS: partial(products, model, case),
        GEMV: partial(gemv, int(cost.bytes)),
        GEMM: partial(gemm, *shape),
    }
    times, shares, start = defaultdict(list), [], perf_counter()
    while len(times[GEMM]) < ROUNDS * case.steps or perf_counter() - start < seconds:
        for name, open_step in opened.items():
            taken = take_turn(open_step(), case.steps)
            times[name] += [wall for wall, _ in taken]
            if name == OURS:
                shares += [busy / wall for wall, busy in taken]
    return Result(case, cost, dict(times), 2.0 * prod(shape), median(shares), difference)


def take_turn(step: Callable[[], object], steps: int) -> list[tuple[float, float]]:
    """(seconds, seconds that the main thread was on a processor) of each step, after one that warms up."""
    sleep(PAUSE_S)
    step()
    taken = []
    for _ in range(steps):
        start, busy = perf_counter(), thread_time()
        step()
        taken.append((perf_counter() - start, thread_time() - busy))
    return taken


def compare(sides: dict[str, Side], case: Case, stored: ContiguousCache) -> float | None:
    """How far the logits of two sides lie apart, relative to the largest; None if there is but one side."""
    if len(sides) == 1:
        return None
    ours, theirs = (side.open(case, stored)() for side in sides.values())
    difference = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    if not difference < AGREEMENT:
        raise ValueError(
            f"{case.name}: the logits of {' and '.join(sides)} differ by {difference:.2g} of the largest, where "
            f"{AGREEMENT:g} is allowed; to compare the times of different computations would say nothing"
        )
    return difference


def table(results: list[Result]) -> Table:
    """A row for each case. Beside a median stands the middle half of the times."""
    found = Table(box=SIMPLE, padding=(0, 1), caption_justify="left")
    for place, column in enumerate(COLUMNS):
        found.add_column(column, justify="left" if place == 0 else "right", no_wrap=True)
    for result in results:
        ours, theirs = median(result.seconds[OURS]), result.seconds.get(THEIRS)
        found.add_row(
            result.case.name,
            milliseconds(result.seconds[OURS]),
            f"{result.case.tokens / ours:,.0f}",
            f"{result.case.tokens / result.roof_s:,.0f}",
            f"{result.share_of_roof:.0%}",
            f"{1e3 * median(result.seconds[PRODUCTS]):.1f}",
            milliseconds(theirs) if theirs else "",
            f"{median(theirs) / ours:.2f}" if theirs else "",
        )
    return found


def notes(config: ModelConfig, results: list[Result]) -> list[str]:
    """What one must know to read the table."""
    rows, inputs, outputs = gemm_shape(config)
    bandwidths = [1e-9 * result.bandwidth for result in results]
    rates = [1e-9 * result.rate for result in results]
    differences = [result.difference for result in results if result.difference is not None]
    share = min(result.share for result in results)
    said = [
        "decode B x S: a token for each of B sequences, S stored; prefill T: T tokens and the logits of the last.",
        f"roof: the longer of bytes / ({min(bandwidths):.1f} to {max(bandwidths):.1f} GB/s, a GEMV over as many bytes) "
        f"and FLOPs / ({min(rates):.0f} to {max(rates):.0f} GFLOP/s, [{rows}, {inputs}] @ [{inputs}, {outputs}]).",
        "products: the weights' products of the step by themselves; times are medians, with the middle half of them.",
    ]
    if differences:
        said.append(f"the logits of both agree within {max(differences):.0e} of the largest.")
    if share < QUIET:
        said.append(
            f"Other programs were busy: our main thread had {share:.0%} of a core. Threads that wait for each other "
            "suffer most; measure again on a quiet machine."
        )
    return said


def machine(threads: int) -> dict[str, str | int]:
    """Where this is, in the words of those who would measure it again."""
    found = {
        "cpu": host.cpu_name(),
        "threads": threads,
        "numpy": np.__version__,
        "blas": blas(),
        "date": date.today().isoformat(),
    }
    return found | {name: version(name) for name in ("torch", "transformers") if name in sys.modules}


def blas() -> str:
    """The library behind `@`, and the kernels it chose for this processor where threadpoolctl is there to ask it."""
    built = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    name = f"{built['name']} {built['version']}"
    with suppress(ModuleNotFoundError):
        from threadpoolctl import threadpool_info

        kernels = [library.get("architecture") for library in threadpool_info() if library["user_api"] == "blas"]
        return f"{name}, kernels for {kernels[0]}" if kernels and kernels[0] else name
    return name


def milliseconds(times: list[float]) -> str:
    """The median, and between which two the middle half lies."""
    low, middle, high = (1e3 * time for time in quantiles(times, n=4))
    digits = 1 if middle < 100 else 0
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def other_side(model: Transformer, threads: int, tell: Callable[[str], object]) -> Side | None:
    """transformers with our weights; None, and a word about it, where it is missing or has no such model."""
    try:
        from bench_transformers import TransformersSide

        return TransformersSide(model, threads)
    except ModuleNotFoundError as error:
        tell(f"{error.name} is not installed, so there is nothing to compare with")
    except ValueError as error:
        tell(f"{error}; NumPy alone")
    return None


def chosen(name: str | None, tell: Callable[[str], object]) -> str:
    """The model that was asked for, or SmolLM2, or in its place `tiny`."""
    smollm2 = next(model for model in available_models() if model.name == "smollm2")
    if name is None and not smollm2.present:
        tell(f"SmolLM2 is not on this machine: run `{smollm2.remedy}`. Meanwhile, with the bundled model:")
        return "tiny"
    return name or "smollm2"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a name or path that load_model takes; without it smollm2")
    parser.add_argument("--json", action="store_true", help="all times and rates as JSON")
    arguments = parser.parse_args()
    console = Console(stderr=arguments.json, highlight=False, width=max(Console().width, WIDTH))
    try:
        model = load_model(chosen(arguments.model, console.print))
    except (FileNotFoundError, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    threads = host.blas_threads()
    theirs = other_side(model, threads, console.print)
    with console.status("measuring") as status:
        results = bench(model, theirs, tell=lambda name: status.update(f"measuring {name}"))
    if arguments.json:
        report = {"model": model.config.name, "machine": machine(threads), "results": [r.as_dict() for r in results]}
        print(json.dumps(report, indent=1))
        return
    console.print(f"{model.config.name}, float32")
    console.print(escape(", ".join(f"{name} {value}" for name, value in machine(threads).items())))
    console.print(table(results))
    for note in notes(model.config, results):
        console.print(escape(note))


if __name__ == "__main__":
    main()
