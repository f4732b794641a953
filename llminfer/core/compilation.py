"""The compile matrix: every kernel for every target, on a machine that has none of them.

Compiling needs Triton with its interpreter off, which is decided when a kernel is decorated; so a process of its own
does it (compilation_triton.py) and answers in JSON, a line for each pair and target. Compiled is not run: that a kernel
compiles, without spilling and within the target's shared memory, says nothing of its results or its speed.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from llminfer.core.pairs import PACKAGE, Pair, usual_dtype

KIB = 2**10
CUDA_GUIDE = "NVIDIA, CUDA Programming Guide, Compute Capabilities: maximum shared memory per thread block"
ROCM_SPECS = "AMD, ROCm documentation, GPU specifications: LDS"


@dataclass(frozen=True)
class Target:
    """What Triton is told to compile for, and the most shared memory that one block may ask for there."""

    backend: str
    arch: int | str
    warp_size: int
    shared_limit_bytes: int
    source: str


TARGETS: dict[str, Target] = {
    "sm_80": Target("cuda", 80, 32, 163 * KIB, CUDA_GUIDE),
    "sm_89": Target("cuda", 89, 32, 99 * KIB, CUDA_GUIDE),
    "sm_90": Target("cuda", 90, 32, 227 * KIB, CUDA_GUIDE),
    "sm_100": Target("cuda", 100, 32, 227 * KIB, CUDA_GUIDE),
    "sm_120": Target("cuda", 120, 32, 99 * KIB, CUDA_GUIDE),
    "gfx942": Target("hip", "gfx942", 64, 64 * KIB, ROCM_SPECS),
}


@dataclass(frozen=True)
class CompiledKernel:
    """What one compiled kernel takes.

    registers:    per thread (AMD: vector registers per lane).
    local_bytes:  memory per thread that is private to it and slow: spilled registers, and the arrays of a few functions
                  (the reduction of large angles in `tl.sin` keeps one).
    shared_bytes: per block.
    """

    name: str
    registers: int
    local_bytes: int
    shared_bytes: int
    warps: int


@dataclass(frozen=True)
class CompileResult:
    """All kernels that one pair launches on its bench case at `dtype`, compiled for `target`, not run."""

    pair: str
    target: str
    dtype: str
    kernels: tuple[CompiledKernel, ...] = ()
    error: str | None = None

    @property
    def passed(self) -> bool:
        """True when everything compiled and fits the shared memory of the target."""
        return self.error is None and bool(self.kernels) and not self.too_large

    @property
    def too_large(self) -> tuple[str, ...]:
        """Kernels that compile but could not be launched: they ask for more shared memory than a block gets."""
        limit = TARGETS[self.target].shared_limit_bytes
        return tuple(kernel.name for kernel in self.kernels if kernel.shared_bytes > limit)

    def as_dict(self) -> dict:
        return asdict(self) | {"passed": self.passed, "too_large": list(self.too_large)}

    def __str__(self) -> str:
        head = f"{self.pair} at {self.dtype} for {self.target}, compiled, not run"
        if self.error:
            return f"{head}: {self.error}"
        kernels = [
            f"{k.name} {k.registers} registers, {k.local_bytes} B local, {k.shared_bytes} B shared"
            for k in self.kernels
        ]
        large = (
            f"; {', '.join(self.too_large)} over {TARGETS[self.target].shared_limit_bytes} B" if self.too_large else ""
        )
        return f"{head}: {'; '.join(kernels) or 'no kernel was launched'}{large}"


def compile_pairs(
    pairs: Sequence[Pair], targets: Sequence[str] = tuple(TARGETS), dtype: str | None = None
) -> tuple[CompileResult, ...]:
    """Compile what each pair launches for each target, in one process; an error stays with its pair and target.

    Without `dtype`, each pair's usual one. Raises ValueError for an unknown target or a dtype that a pair lacks.
    """
    unknown = [target for target in targets if target not in TARGETS]
    if unknown:
        raise ValueError(f"targets must be some of {', '.join(TARGETS)}, got {', '.join(unknown)}")
    jobs = [_job(pair, dtype or usual_dtype(pair), targets) for pair in pairs]
    with tempfile.TemporaryDirectory() as folder:
        request, answer = Path(folder, "request.json"), Path(folder, "answer.jsonl")
        request.write_text(json.dumps(jobs), encoding="utf-8")
        process = subprocess.run(
            [sys.executable, "-m", "llminfer.core.compilation_triton", str(request), str(answer)],
            env=_compiling_environment(),
            capture_output=True,
            text=True,
        )
        lines = answer.read_text(encoding="utf-8").splitlines() if answer.exists() else []
    results = {(result.pair, result.target): result for result in map(_read, lines)}
    last_words = process.stderr.strip().splitlines()[-1:] or ["no message"]
    lost = f"the compiling process ended with code {process.returncode}: {last_words[0]}"
    return tuple(
        results.get((job["pair"], target)) or CompileResult(job["pair"], target, job["dtype"], error=lost)
        for job in jobs
        for target in targets
    )


def _job(pair: Pair, dtype: str, targets: Sequence[str]) -> dict:
    if dtype not in pair.dtypes:
        raise ValueError(f"{pair.name} has the dtypes {', '.join(pair.dtypes)}, got {dtype!r}")
    module = sys.modules[pair.kernel.__module__]
    return {
        "pair": pair.name,
        "module": module.__name__,
        "file": str(module.__file__),
        "dtype": dtype,
        "targets": list(targets),
    }


def _compiling_environment() -> dict[str, str]:
    """No interpreter, and no GPU either, so that autotuning and launchers behave the same on every machine."""
    hidden = dict.fromkeys(("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"), "")
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    return os.environ | hidden | {"TRITON_INTERPRET": "0", "PYTHONPATH": path}


def _read(line: str) -> CompileResult:
    fields = json.loads(line)
    return CompileResult(**fields | {"kernels": tuple(CompiledKernel(**kernel) for kernel in fields["kernels"])})
