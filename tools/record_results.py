"""Record what the kernels do on this machine's GPU, and fold such a record into docs/results/.

    python tools/record_results.py --out run.json        on the machine with the GPU; needs nobody to watch
    python tools/record_results.py --fold run.json       in a checkout; then look at the file and commit it

The first checks every pair, then times what agreed. The file is written anew after each pair, so that a run that is cut
short still holds what it had; a pair that fails to run is named and passed over.
"""

import argparse
import json
import platform
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np
import torch

from llminfer.core.measurement import measure_device
from llminfer.core.pairs import check, find_pairs, measure
from llminfer.core.parity import CheckResult
from llminfer.core.results import Point, RecordedRun, fold
from llminfer.core.timing import Measurement
from llminfer.core.triton_environment import INTERPRETED, triton

ROOT = Path(__file__).parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--out", type=Path, help="run all pairs on the GPU of this machine and write this file")
    action.add_argument("--fold", type=Path, help="check a file that --out wrote and put it into docs/results/")
    parser.add_argument("--pairs", help="only a chapter (3.1, basics) or a pair (basics.rmsnorm)")
    arguments = parser.parse_args()
    try:
        if arguments.fold:
            print(fold(arguments.fold))
        else:
            record(arguments.out, arguments.pairs)
    except (ValueError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


def record(out: Path, which: str | None) -> None:
    """Parity of all pairs, then their timings, into `out`. Raises ValueError where no GPU would run the kernels."""
    if INTERPRETED or not torch.cuda.is_available():
        raise ValueError("no GPU here, or TRITON_INTERPRET=1 is set: results are recorded on a GPU only")
    pairs = find_pairs(which)
    checks = {}
    for pair in pairs:
        checks[pair.name] = check(pair)
        print(checks[pair.name], flush=True)
    roof, points = measure_device("cuda"), []
    for pair in pairs:
        for dtype in pair.dtypes:
            try:
                points += points_of(measure(pair, dtype, roof=roof), checks[pair.name])
            except RuntimeError as error:  # out of memory, say: the others go on
                print(f"{pair.name} at {dtype} was not timed: {error}", flush=True)
            write(out, points)
        print(f"timed {pair.name}", flush=True)


def points_of(measured: Measurement, checked: CheckResult) -> list[Point]:
    """The points of one pair at one dtype; no time is kept of what did not agree or came out above the roof."""
    dtype, points = measured.dtype, []
    for name in measured.above_roof:
        print(f"{measured.pair} at {dtype}: {name} came out above the roof, so its time is not kept", flush=True)
    for timing in measured.timings:
        trials = [t for t in checked.trials if (t.implementation, t.dtype) == (timing.implementation, dtype)]
        worst = max((t.verdict for t in trials), key=lambda v: v.max_error / (v.allowed_error or 1.0), default=None)
        agreed = all(trial.passed for trial in trials)
        points.append(
            Point(
                pair=measured.pair,
                implementation=timing.implementation,
                dtype=dtype,
                shapes=measured.shapes,
                passed=agreed,
                error=worst.max_error if worst and np.isfinite(worst.max_error) else None,
                allowed_error=worst.allowed_error if worst else None,
                seconds=timing.seconds if agreed and timing.implementation not in measured.above_roof else None,
                flops=measured.cost.flops,
                bytes=measured.cost.bytes,
            )
        )
    return points


def write(out: Path, points: list[Point]) -> None:
    run = RecordedRun(
        device=torch.cuda.get_device_name(),
        driver=driver_version(),
        versions={
            "torch": torch.__version__,
            "triton": triton.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            **({"cuda": torch.version.cuda} if torch.version.cuda else {"hip": str(torch.version.hip)}),
        },
        date=date.today().isoformat(),
        commit=answer("git", "-C", str(ROOT), "describe", "--always", "--dirty") or "unknown",
        interpreted=INTERPRETED,
        points=tuple(points),
    )
    out.write_text(json.dumps(run.as_dict(), indent=1, allow_nan=False) + "\n", encoding="utf-8")


def driver_version() -> str:
    if torch.version.cuda:
        return answer("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").split("\n")[0] or "unknown"
    return answer("cat", "/sys/module/amdgpu/version") or platform.release()


def answer(*command: str) -> str:
    """What a command prints; nothing where it fails or does not exist."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


if __name__ == "__main__":
    main()
