"""The process that compiles: `python -m llminfer.core.compilation_triton REQUEST ANSWER`, started by compilation.py.

Triton is given a driver that does nothing but name a target, and the ordinary launchers are run with every launch
turned into a warm-up. What they would have launched is compiled, in the very form in which a GPU would get it.
"""

import contextlib
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from llminfer.core.compilation import TARGETS, CompiledKernel, CompileResult
from llminfer.core.pairs import Pair
from llminfer.core.parity_torch import cases_of
from llminfer.core.tensors_torch import to_torch

CUOBJDUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"


class TargetDriver:
    """As much of a Triton driver as compiling asks for: the name of the target, and a device to file kernels under."""

    def __init__(self, name: str) -> None:
        target = TARGETS[name]
        self._name, self._target = name, GPUTarget(target.backend, target.arch, target.warp_size)

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> str:
        return self._name

    def get_current_stream(self, device: str) -> int:
        return 0


@contextlib.contextmanager
def launches_compile_only() -> Iterator[list]:
    """Turn every kernel launch into a warm-up, which compiles and does not run; gives the list of what was compiled."""
    compiled, launch = [], JITFunction.run

    def warm_up(self, *args, grid, warmup, **kwargs):
        compiled.append(launch(self, *args, grid=grid, warmup=True, **kwargs))
        return compiled[-1]

    JITFunction.run = warm_up
    try:
        yield compiled
    finally:
        JITFunction.run = launch


def compile_one(pair: Pair, arguments: dict, dtype: str, target: str) -> CompileResult:
    """Compile for `target` what the implementations of `pair` launch on `arguments`; what goes wrong is the result."""
    driver.set_active(TargetDriver(target))
    try:
        with launches_compile_only() as compiled:
            pair.kernel(**arguments)
            for variant in pair.variants:
                with contextlib.suppress(NotImplementedError):  # not a Triton kernel
                    variant(**arguments)
        kernels = {kernel.hash: resources(kernel) for kernel in compiled}
    except Exception as error:  # a target's failure must not take the others along
        return CompileResult(pair.name, target, dtype, error=f"{type(error).__name__}: {_first_line(error)}")
    return CompileResult(pair.name, target, dtype, tuple(kernels.values()))


def resources(kernel) -> CompiledKernel:
    """Registers and spills from the compiled object, shared memory and warps from Triton's metadata."""
    read = _amd_resources if kernel.metadata.target.backend == "hip" else _nvidia_resources
    registers, local_bytes = read(kernel)
    return CompiledKernel(kernel.name, registers, local_bytes, kernel.metadata.shared, kernel.metadata.num_warps)


def _nvidia_resources(kernel) -> tuple[int, int]:
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder, "kernel.cubin")
        cubin.write_bytes(kernel.asm["cubin"])
        usage = subprocess.run([CUOBJDUMP, "-res-usage", cubin], capture_output=True, text=True, check=True).stdout
    field = dict(re.findall(r"\b(REG|STACK|LOCAL):(\d+)", usage.split(f"Function {kernel.name}:")[1]))
    return int(field["REG"]), int(field["STACK"]) + int(field["LOCAL"])


def _amd_resources(kernel) -> tuple[int, int]:
    field = dict(re.findall(r"\.(vgpr_count|private_segment_fixed_size):\s+(\d+)", kernel.asm["amdgcn"]))
    return int(field["vgpr_count"]), int(field["private_segment_fixed_size"])


def _first_line(error: Exception) -> str:
    """Triton's messages quote the source around the fault; the last line that says something is the reason."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" ^")]
    return lines[-1] if lines else "no message"


def _load_pair(job: dict) -> Pair:
    """By module name inside the package; from the file elsewhere (exercises, tests)."""
    if job["module"].startswith("llminfer."):
        module = importlib.import_module(job["module"])
    else:
        specification = importlib.util.spec_from_file_location(Path(job["file"]).stem, job["file"])
        module = importlib.util.module_from_spec(specification)
        sys.modules[specification.name] = module  # Triton reads the source of kernels through it
        specification.loader.exec_module(module)
    found = [value for value in vars(module).values() if isinstance(value, Pair) and value.name == job["pair"]]
    if not found:
        raise ValueError(f"{job['file']} holds no pair called {job['pair']} at module level")
    return found[0]


def main(request: str, answer: str) -> None:
    """Work through the jobs, one line of JSON for each result as soon as it is there."""
    with open(answer, "w", encoding="utf-8") as lines:
        for job in json.loads(Path(request).read_text(encoding="utf-8")):
            pair = _load_pair(job)
            [case, *_] = cases_of(pair, "bench", job["dtype"])
            arguments = {name: to_torch(v) if isinstance(v, np.ndarray) else v for name, v in case.items()}
            for target in job["targets"]:
                result = compile_one(pair, arguments, job["dtype"], target)
                print(json.dumps(asdict(result)), file=lines, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
