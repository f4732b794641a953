"""Make `.venv`: choose the build of torch, say what will be downloaded and how much disk it takes, then install.

Runs on the system's Python with nothing installed. `make setup` calls it; the README gives the same as plain pip lines.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
CPU_BUILDS = "https://download.pytorch.org/whl/cpu"  # torch's own index: PyPI's Linux build is the CUDA one

# Measured with `du` and pip's report on Linux x86-64; rounded up. [download GB, disk GB]
SIZES_GB = {"library, notebooks, docs and tests": (0.35, 1.2), "cpu": (0.4, 1.5), "cuda": (3.5, 8.0)}


def has_nvidia_gpu() -> bool:
    """Whether this machine has an NVIDIA driver with at least one device behind it."""
    return Path("/proc/driver/nvidia/gpus").is_dir() or shutil.which("nvidia-smi") is not None


def has_amd_gpu() -> bool:
    """Whether this machine has AMD's compute driver."""
    return Path("/dev/kfd").exists()


def pinned(package: str) -> str:
    """The requirement for `package` as constraints.txt pins it, such as "torch==2.13.0"."""
    for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{package}=="):
            return line.strip()
    raise SystemExit(f"constraints.txt does not pin {package}; add a line {package}==VERSION")


def pip(python: Path, *arguments: str, **options) -> subprocess.CompletedProcess:
    """Run pip of the environment that `python` belongs to; ends the set-up with pip's own message if it fails."""
    finished = subprocess.run([str(python), "-m", "pip", "--disable-pip-version-check", *arguments], **options)
    if finished.returncode:
        print(finished.stderr or "", file=sys.stderr)
        raise SystemExit(
            f"pip failed: pip {' '.join(arguments)}\nMend the cause it names above and run make setup again."
        )
    return finished


def plain_torch_is_cpu_build(python: Path, requirement: str) -> bool:
    """Ask pip, without installing, which file plain `pip install torch` would take here."""
    report = pip(
        python,
        *("install", "--dry-run", "--quiet", "--no-deps", "--ignore-installed", "--report", "-", requirement),
        capture_output=True,
        text=True,
    )
    url = json.loads(report.stdout)["install"][0]["download_info"]["url"]
    return sys.platform != "linux" or "%2Bcpu" in url or "+cpu" in url


def torch_arguments(python: Path, mode: str) -> tuple[list[str], str]:
    """What to hand to pip for torch, and the build's name: "cpu", "cuda", "kept" or "none"."""
    if mode == "none":
        return [], "none"
    if mode == "keep":
        found = subprocess.run(
            [str(python), "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True
        )
        if found.returncode:
            raise SystemExit(
                "TORCH=keep leaves an installed torch alone, but this Python has none: "
                f"{sys.executable}\nInstall one (your CUDA or ROCm build) or use TORCH=auto or TORCH=none."
            )
        print(f"Keeping torch {found.stdout.strip()}.")
        return [], "kept"
    requirement = pinned("torch")
    if has_nvidia_gpu():
        return [requirement], "cuda"
    if has_amd_gpu():
        print("An AMD GPU is here: install a ROCm build of torch and run `make setup TORCH=keep` to use it.")
    if plain_torch_is_cpu_build(python, requirement):
        return [requirement], "cpu"
    return [f"{requirement}+cpu", "--extra-index-url", CPU_BUILDS], "cpu"


def announce(folder: Path, build: str) -> None:
    """Print what will be downloaded and written; stop before the first byte if the disk is too small."""
    parts = ["library, notebooks, docs and tests"] + [build] * (build in SIZES_GB)
    download, disk = (sum(SIZES_GB[part][column] for part in parts) for column in (0, 1))
    free = shutil.disk_usage(folder).free / 1e9
    print(f"torch: {build}. To download: about {download:.1f} GB, less what pip has cached.")
    print(f"Disk in {folder}: about {disk:.1f} GB.")
    if free < disk:
        raise SystemExit(
            f"Only {free:.1f} GB are free there. Free some, or use TORCH=none (needs {SIZES_GB[parts[0]][1]} GB)."
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", choices=("auto", "keep", "none"), default="auto")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    options = parser.parse_args()
    if sys.version_info < (3, 11):
        raise SystemExit(
            f"llminfer needs Python 3.11 or newer, this is {sys.version.split()[0]}; try make setup PYTHON=python3.12"
        )

    # Links as `python -m venv` makes them, so that an environment made by hand can be set up again.
    builder = venv.EnvBuilder(with_pip=True, symlinks=os.name != "nt", system_site_packages=options.torch == "keep")
    builder.create(options.venv)
    python = options.venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    arguments, build = torch_arguments(python, options.torch)
    announce(options.venv, build)

    if arguments:
        pip(python, "install", "--progress-bar", "on", "-c", str(CONSTRAINTS), *arguments)
    extras = "notebooks,docs,test" + (",kernels" if build in ("cpu", "cuda") else "")
    # A kept torch is whatever the reader has: the pin of torch, and of the triton that belongs to it, must not apply.
    limits = [
        line
        for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines()
        if build != "kept" or not line.startswith(("torch==", "triton=="))
    ]
    limits_file = options.venv / "constraints.txt"
    limits_file.write_text("\n".join(limits) + "\n", encoding="utf-8")
    pip(python, "install", "--progress-bar", "on", "-c", str(limits_file), "-e", f"{ROOT}[{extras}]")
    print(f"Ready: {options.venv}. Try `make book`, or activate it and type `llminfer tour`.")


if __name__ == "__main__":
    main()
