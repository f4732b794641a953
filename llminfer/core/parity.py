"""Judge outputs: is what a kernel gave near enough to the reference in float64? Knows arrays only, no torch."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from llminfer.core.tolerances import (
    BASELINE_FACTOR,
    CODES_OFF_BY_ONE,
    epsilon,
    is_floating,
    smallest_subnormal,
    tolerance,
)


@dataclass(frozen=True)
class Verdict:
    """How one output compares with the float64 oracle; `failure` says in words what is wrong, or is None."""

    max_error: float = 0.0
    allowed_error: float = 0.0
    relative_rms: float = 0.0
    allowed_rms: float = 0.0
    failure: str | None = None


@dataclass(frozen=True)
class Trial:
    """One call of one implementation: on which input, and the verdict on its worst output."""

    implementation: str
    dtype: str
    size: str
    shapes: str
    scale: float
    layout: str  # "contiguous", "strided", or "strided refused"
    verdict: Verdict

    @property
    def passed(self) -> bool:
        return self.verdict.failure is None

    def __str__(self) -> str:
        what = (
            f"{self.implementation} at {self.dtype}, {self.size} ({self.shapes}), {self.layout}, scale {self.scale:g}"
        )
        return f"{what}: {self.verdict.failure or 'passed'}"


@dataclass(frozen=True)
class CheckResult:
    """All trials of a pair. `interpreted` says that Triton's interpreter ran them, not a GPU."""

    pair: str
    interpreted: bool
    trials: tuple[Trial, ...]
    skipped: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return bool(self.trials) and all(trial.passed for trial in self.trials)

    @property
    def failures(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if not trial.passed)

    def worst(self, dtype: str) -> Verdict:
        """The verdict nearest to its limit, or past it, among the trials at `dtype`."""
        verdicts = [trial.verdict for trial in self.trials if trial.dtype == dtype]
        return max(verdicts, key=lambda v: (v.failure is not None, _share(v.max_error, v.allowed_error)))

    def as_dict(self) -> dict:
        """Plain data for JSON; errors that are not finite become None."""
        trials = [asdict(trial) | {"verdict": _finite(asdict(trial.verdict))} for trial in self.trials]
        return {
            "pair": self.pair,
            "passed": self.passed,
            "interpreted": self.interpreted,
            "trials": trials,
            "skipped": list(self.skipped),
        }

    def __str__(self) -> str:
        where = "interpreter" if self.interpreted else "GPU"
        head = f"{self.pair}: {len(self.trials) - len(self.failures)} of {len(self.trials)} trials passed ({where})"
        return "\n  ".join([head, *map(str, self.failures), *(f"skipped: {reason}" for reason in self.skipped)])


def judge(
    got: np.ndarray,
    baseline: np.ndarray,
    oracle: np.ndarray,
    dtype: str,
    output_dtype: str,
    compare: str = "float",
    interpreted: bool = False,
    nan_allowed: bool = False,
) -> Verdict:
    """Compare one output of a kernel (`got`) with the oracle; `baseline` is plain torch's at the same dtype.

    Floating outputs come widened to float64. `dtype` is that of the check, `output_dtype` what the kernel returned.
    NaN passes only where `nan_allowed` (arguments written in place, which may hold NaN in slots nobody uses) and the
    oracle has it too; infinities must be the oracle's. Integers are exact, except in "codes".
    """
    if got.shape != oracle.shape:
        return Verdict(math.inf, failure=f"shape {got.shape}, the reference gives {oracle.shape}")
    if baseline.shape != oracle.shape:
        return Verdict(math.inf, failure=f"the baseline gives shape {baseline.shape}, the reference {oracle.shape}")
    if not is_floating(output_dtype) or compare == "exact":
        return _judge_integers(got, baseline, oracle, compare, nan_allowed)
    finite = np.isfinite(oracle)
    stray = _not_finite(got, oracle, finite, nan_allowed)
    if stray:
        return Verdict(math.inf, failure=stray)
    got, baseline, oracle = got[finite], baseline[finite], oracle[finite]
    if oracle.size == 0:
        return Verdict()
    limit, step = tolerance(dtype, output_dtype, interpreted), smallest_subnormal(output_dtype)
    error, magnitude = np.abs(got - oracle), np.abs(oracle).max()
    precision = max(epsilon(dtype), epsilon(output_dtype))
    floor = limit.floor_ulps * precision * magnitude + step
    baseline_error = np.nan_to_num(np.abs(baseline - oracle), nan=0.0, posinf=0.0).max()  # a NaN excuses nothing
    allowed = BASELINE_FACTOR * baseline_error + floor
    rms, oracle_rms = _rms(error), _rms(oracle)
    allowed_rms = limit.relative_rms + (step / oracle_rms if oracle_rms else 0.0)
    relative = rms / oracle_rms if oracle_rms else (math.inf if rms > step else 0.0)
    failure = None
    if not error.max() <= allowed:
        at = tuple(int(i) for i in np.argwhere(finite)[error.argmax()])
        failure = (
            f"largest error {error.max():.3g} at {at} is over {allowed:.3g} (the baseline has {baseline_error:.3g})"
        )
    elif not relative <= allowed_rms:
        failure = f"relative RMS error {relative:.3g} is over the budget of {allowed_rms:.3g}"
    return Verdict(float(error.max()), float(allowed), float(relative), float(allowed_rms), failure)


def _judge_integers(
    got: np.ndarray, baseline: np.ndarray, oracle: np.ndarray, compare: str, nan_allowed: bool
) -> Verdict:
    if compare != "codes":
        wrong = (got != oracle) & ~(nan_allowed & np.isnan(got) & np.isnan(oracle))
        if not wrong.any():
            return Verdict()
        return Verdict(math.inf, failure=f"{wrong.sum()} of {wrong.size} elements differ, the first at {_first(wrong)}")
    distance = np.abs(got.astype(np.int64) - oracle.astype(np.int64))
    if distance.size == 0:
        return Verdict()
    baseline_off = np.count_nonzero(baseline.astype(np.int64) != oracle.astype(np.int64))
    allowed = max(1.0, CODES_OFF_BY_ONE * distance.size, BASELINE_FACTOR * baseline_off)
    off, failure = np.count_nonzero(distance), None
    if distance.max() > 1:
        failure = f"code off by {distance.max()} at {_first(distance > 1)}; ties move a code by one"
    elif off > allowed:
        failure = f"{off} of {distance.size} codes off by one, {allowed:g} allowed: that is a bias, not rounding ties"
    return Verdict(float(distance.max()), 1.0, off / distance.size, allowed / distance.size, failure)


def _not_finite(got: np.ndarray, oracle: np.ndarray, finite: np.ndarray, nan_allowed: bool) -> str | None:
    if np.isnan(oracle).any() and not nan_allowed:
        return f"the reference itself gives NaN, first at {_first(np.isnan(oracle))}: mend the reference or the case"
    wrong = np.where(finite, ~np.isfinite(got), ~((got == oracle) | (np.isnan(got) & np.isnan(oracle))))
    if not wrong.any():
        return None
    at = _first(wrong)
    return f"{got[at]} where the reference has {oracle[at]:.6g}, at {at} and {wrong.sum() - 1} more places"


def _first(mask: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(mask)[0])


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _share(value: float, limit: float) -> float:
    return value / limit if limit else (math.inf if value else 0.0)


def _finite(numbers: dict) -> dict:
    return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in numbers.items()}
