"""What a result was found with: versions, platform, and a hash of the package, to tell two machines apart."""

import hashlib
import platform
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import llminfer

PACKAGES = ("llminfer", "numpy", "torch", "triton")


@cache
def fingerprint() -> dict[str, str]:
    """Versions by name. Found without importing anything: the judge has no torch and no triton."""
    found = {"python": platform.python_version(), "platform": f"{sys.platform} {platform.machine()}"}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found | {"sources": _hash(Path(llminfer.__file__).parent)}


def differences(here: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    """Where two fingerprints differ: "numpy 2.3.1 here, 2.1.0 there"."""
    return [
        f"{name} {here.get(name, 'unknown')} here, {there.get(name, 'unknown')} there"
        for name in sorted(here.keys() | there.keys())
        if here.get(name) != there.get(name)
    ]


def _hash(folder: Path) -> str:
    """Of all sources of the package, and of the exercises where they lie inside it."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        total.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()[:12]
