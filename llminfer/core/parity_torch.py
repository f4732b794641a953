"""Check a pair: every implementation, dtype and case against the reference in float64, in memory that tells on it.

Inputs are rounded to the dtype under test first and widened then, so that only the arithmetic is judged. Each case runs
twice: as it is, and with the next scale of core/tolerances.py in strided memory. Knows nothing of any chapter.
"""

import dataclasses
import math
import zlib
from collections.abc import Callable, Iterator

import numpy as np
import torch

from llminfer.core.guarded_memory_torch import Guarded, PoisonedAllocations, guarded_arguments
from llminfer.core.pairs import Pair, argument_names
from llminfer.core.parity import CheckResult, Trial, Verdict, judge
from llminfer.core.tensors_torch import dtype_name, to_torch
from llminfer.core.tolerances import SCALES, is_floating
from llminfer.core.triton_environment import DEVICE, INTERPRETED
from llminfer.core.watched_addresses_triton import watched_addresses

SIZES: tuple[str, ...] = ("tiny", "odd", "bench")


def check(pair: Pair, dtypes: tuple[str, ...] | None = None, sizes: tuple[str, ...] = ("tiny", "odd")) -> CheckResult:
    """Try all implementations of `pair` on its cases; the same inputs every time.

    A failure is a trial in the result, not an exception; an exception of the kernel is a failed trial.
    Raises ValueError for a dtype that the pair does not have or an unknown size.
    """
    dtypes = pair.dtypes if dtypes is None else dtypes
    if not set(dtypes) <= set(pair.dtypes):
        raise ValueError(f"{pair.name} has the dtypes {pair.dtypes}, got {dtypes}")
    if not set(sizes) <= set(SIZES):
        raise ValueError(f"sizes must be some of {SIZES}, got {sizes}")
    trials, skipped = [], []
    for name, function in pair.implementations.items():
        for dtype in dtypes:
            try:
                trials += [_try(pair, name, function, dtype, *case) for case in planned_cases(pair, dtype, sizes)]
            except NotImplementedError as reason:
                skipped.append(f"{name} at {dtype} does not run here: {reason}")
    return CheckResult(pair.name, INTERPRETED, tuple(trials), tuple(skipped))


def cases_of(pair: Pair, size: str, dtype: str) -> list[dict]:
    """The cases of one size as a list, from a generator seeded by the names alone."""
    seed = zlib.crc32(f"{pair.name} {size} {dtype}".encode())
    cases = pair.cases(np.random.default_rng(seed), size, dtype)
    return [cases] if isinstance(cases, dict) else list(cases)


def planned_cases(pair: Pair, dtype: str, sizes: tuple[str, ...]) -> Iterator[tuple[str, dict, float, bool]]:
    """(size, arguments, scale, strided) of every trial: each case plain, then scaled and strided."""
    turn = 0
    for size in sizes:
        for case in cases_of(pair, size, dtype):
            yield size, case, 1.0, False
            scale = SCALES[turn % len(SCALES)]
            yield size, scaled(pair, case, scale), scale, True
            turn += 1


def scaled(pair: Pair, case: dict, scale: float) -> dict:
    """`case` with its floating arrays, or those that `pair.scaled` names, multiplied by `scale` in their own dtype."""
    chosen = argument_names(pair.reference) if pair.scaled is None else pair.scaled
    return {
        name: (value.astype(np.float64) * scale).astype(value.dtype)
        if name in chosen and isinstance(value, np.ndarray) and is_floating(value.dtype)
        else value
        for name, value in case.items()
    }


def _try(
    pair: Pair, name: str, function: Callable, dtype: str, size: str, case: dict, scale: float, strided: bool
) -> Trial:
    layout, verdict = "contiguous", None
    if strided:
        layout, verdict = "strided", _verdict(pair, function, dtype, case, strided=True)
    if verdict is None:
        layout = "strided refused" if strided else layout
        verdict = _verdict(pair, function, dtype, case, strided=False)
    return Trial(name, dtype, size, shapes_of(case), scale, layout, verdict)


def _verdict(pair: Pair, function: Callable, dtype: str, case: dict, strided: bool) -> Verdict | None:
    """One call and what is to be said of it; None when it refused strided inputs with a ValueError."""
    guarded, allocations = guarded_arguments(case, DEVICE, strided), PoisonedAllocations()

    def known() -> dict[str, Guarded]:
        fresh = {f"tensor {place} that it allocated": each for place, each in enumerate(allocations.allocated)}
        return {f"its argument {name}": argument for name, argument in guarded.items()} | fresh

    try:
        with allocations, watched_addresses(known) as trespasses:
            returned = function(**(case | {name: argument.tensor for name, argument in guarded.items()}))
        if DEVICE != "cpu":
            torch.cuda.synchronize()
    except NotImplementedError:
        raise
    except Exception as error:  # whatever a broken kernel raises is its verdict
        if strided and isinstance(error, ValueError):
            return None
        return _failed(f"raised {type(error).__name__}: {error}")
    trespasses = trespasses or _trespasses(pair, guarded, known())
    if trespasses:
        return _failed(", ".join(trespasses))
    return _compare(pair, dtype, case, _outputs(returned) + [guarded[name].tensor for name in pair.mutates])


def _compare(pair: Pair, dtype: str, case: dict, got: list) -> Verdict:
    """The verdict on the worst of the outputs, of which the last are the arguments written in place."""
    oracle = _oracle(pair, case)
    arguments = {name: to_torch(v, DEVICE) if isinstance(v, np.ndarray) else v for name, v in case.items()}
    baseline = _outputs(pair.baseline(**arguments)) + [arguments[name] for name in pair.mutates]
    if not len(got) == len(baseline) == len(oracle):
        counts = f"{len(got)} outputs, the baseline {len(baseline)}, the reference {len(oracle)}"
        return _failed(f"{counts}; arguments written in place count too")
    returned = len(got) - len(pair.mutates)
    verdicts = [
        _judge_output(pair, dtype, *outputs, in_place=place >= returned)
        for place, outputs in enumerate(zip(got, baseline, oracle, strict=True))
    ]
    failed = [verdict for verdict in verdicts if verdict.failure]
    return failed[0] if failed else max(verdicts, key=lambda v: v.max_error / (v.allowed_error or 1.0))


def _failed(reason: str) -> Verdict:
    return Verdict(max_error=math.inf, failure=reason)


def _judge_output(
    pair: Pair, dtype: str, got: torch.Tensor, baseline: torch.Tensor, oracle: np.ndarray, in_place: bool
) -> Verdict:
    if not isinstance(got, torch.Tensor):
        return _failed(f"returned a {type(got).__name__} where a tensor was expected")
    if got.dtype != baseline.dtype or got.device.type != baseline.device.type:
        have, want = f"{dtype_name(got)} on {got.device}", f"{dtype_name(baseline)} on {baseline.device}"
        return _failed(f"returned {have}, the baseline {want}")
    return judge(
        _widened(got),
        _widened(baseline),
        oracle,
        dtype,
        dtype_name(got),
        pair.compare,
        INTERPRETED,
        nan_allowed=in_place,
    )


def _trespasses(pair: Pair, guarded: dict[str, Guarded], known: dict[str, Guarded]) -> list[str]:
    """What the guards tell after the call: writes beside a tensor, and into arguments that are not to be written."""
    changed = [name for name, argument in guarded.items() if name not in pair.mutates and not argument.unchanged]
    outside = [f"wrote outside of {name}" for name, each in known.items() if not each.guards_intact]
    return outside or [f"changed its argument {name}, which `mutates` does not name" for name in changed]


def _oracle(pair: Pair, case: dict) -> list[np.ndarray]:
    """Outputs of the reference in float64, then the arguments that it writes in place."""
    arguments = {
        name: value.astype(np.float64 if is_floating(value.dtype) else value.dtype)  # astype copies
        if isinstance(value, np.ndarray)
        else value
        for name, value in case.items()
    }
    outputs = _outputs(pair.reference(**arguments))
    return [np.asarray(output) for output in outputs] + [arguments[name] for name in pair.mutates]


def _outputs(returned) -> list:
    """What a function returned as a list of arrays: nothing, one, a tuple of them, or the fields of a dataclass."""
    if returned is None:
        return []
    if dataclasses.is_dataclass(returned):
        return [getattr(returned, field.name) for field in dataclasses.fields(returned)]
    return list(returned) if isinstance(returned, tuple | list) else [returned]


def _widened(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().cpu()
    return (tensor.to(torch.float64) if tensor.is_floating_point() else tensor).numpy()


def shapes_of(case: dict) -> str:
    """The shapes of a case for people: "x 3x16, gain 16"."""
    return ", ".join(f"{k} {'x'.join(map(str, v.shape))}" for k, v in case.items() if isinstance(v, np.ndarray))
