"""`llminfer doctor`: one line for each thing that matters on this machine, and what to do about what is missing."""

import importlib.metadata
import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

State = Literal["ok", "missing", "problem"]


@dataclass(frozen=True)
class Finding:
    """One line of the report. `remedy` says what to do, and is empty when nothing needs doing."""

    subject: str
    state: State
    detail: str
    remedy: str = ""


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _python() -> Finding:
    detail = f"{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    return Finding("Python", "ok", detail)


def _llminfer() -> Finding:
    return Finding("llminfer", "ok", _version("llminfer") or "not installed as a package")


def _numpy() -> Finding:
    import numpy as np

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    threads = next((f"{name}={os.environ[name]}" for name in BLAS_THREAD_VARIABLES if name in os.environ), None)
    threads = threads or f"threads as {blas['name']} chooses, at most {os.cpu_count()}"
    return Finding("NumPy", "ok", f"{np.__version__}, BLAS {blas['name']} {blas['version']}, {threads}")


BLAS_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS")


def _torch() -> Finding:
    version = _version("torch")
    if version is None:
        return Finding("torch", "missing", "not installed", "only kernels need it: pip install torch==2.13.0")
    try:
        import torch
    except (ImportError, OSError) as error:
        return Finding("torch", "problem", f"{version} does not import: {error}", "install it again: make setup")
    build = (
        f"CUDA {torch.version.cuda}"
        if torch.version.cuda
        else f"ROCm {torch.version.hip}"
        if torch.version.hip
        else "CPU build"
    )
    return Finding("torch", "ok", f"{torch.__version__}, {build}")


def _triton() -> Finding:
    version = _version("triton")
    if version:
        return Finding("triton", "ok", version)
    if platform.system() != "Linux":
        return Finding("triton", "missing", "exists for Linux only", "kernels run under WSL2 or in a Linux container")
    return Finding("triton", "missing", "not installed", "only kernels need it: pip install triton==3.7.1")


def _gpu() -> Finding:
    if _version("torch"):
        import torch

        if torch.cuda.is_available():
            names = sorted({torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())})
            return Finding("GPU", "ok", f"{torch.cuda.device_count()} x {', '.join(names)}")
    if shutil.which("nvidia-smi"):
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20)
        if listed.returncode == 0 and listed.stdout.strip():
            first = listed.stdout.splitlines()[0]
            return Finding("GPU", "problem", f"{first}, which torch cannot use", "install a CUDA build of torch")
    return Finding(
        "GPU", "missing", "none found", "not needed: kernels are interpreted, recorded GPU results are shown"
    )


def _kernels() -> Finding:
    if not (_version("torch") and _version("triton")):
        return Finding(
            "kernels", "missing", "torch or triton is not installed", "the NumPy side is complete without them"
        )
    from llminfer.core.triton_environment import INTERPRETED

    if INTERPRETED:
        return Finding(
            "kernels", "ok", "interpreted on the CPU: correct and slow; their time is never shown as a latency"
        )
    return Finding("kernels", "ok", "compiled for the GPU")


def _cache() -> Finding:
    from llminfer.core.cache_folder import cache_folder

    folder = cache_folder()
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(nearest, os.W_OK):
        return Finding(
            "cache", "problem", f"{_shown(folder)} cannot be written", "set LLMINFER_CACHE to a folder of yours"
        )
    free = shutil.disk_usage(nearest).free / 1e9
    return Finding("cache", "ok", f"{_shown(folder)}, {free:.0f} GB free")


def _shown(path: Path) -> str:
    """A path as a bug report may show it: the home folder as ~."""
    home = Path.home()
    return str(Path("~") / path.relative_to(home)) if path.is_relative_to(home) else str(path)


def _models() -> list[Finding]:
    from llminfer.basics import available_models

    return [
        Finding(
            f"model {model.name}",
            "ok" if model.present else "missing",
            model.description,
            "" if model.present else model.remedy,
        )
        for model in available_models()
    ]


CHECKS: tuple[Callable[[], Finding | list[Finding]], ...] = (
    *(_python, _llminfer, _numpy, _torch, _triton, _gpu, _kernels, _cache, _models),
)


def examine() -> list[Finding]:
    """Look at everything that decides how llminfer runs here. A check that breaks becomes a finding of its own."""
    findings: list[Finding] = []
    for check in CHECKS:
        try:
            found = check()
        except Exception as error:  # the doctor must answer on the machines where something is broken
            found = Finding(
                check.__name__.strip("_"), "problem", f"{type(error).__name__}: {error}", "report this line"
            )
        findings += found if isinstance(found, list) else [found]
    return findings
