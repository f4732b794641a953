"""The files in a folder or an archive, without ever unpacking it: names are looked at, and what is wanted is read.

Nothing is written where an archive says, no link is followed, and no more is read than the caller allows.
"""

import gzip
import io
import os
import re
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_MEMBERS = 5_000
MAX_ARCHIVE_BYTES = 16 << 20
MAX_TAR_BYTES = 64 << 20
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
NOISE = ("__MACOSX", "__pycache__", "node_modules")


class RefusedError(ValueError):
    """A file that is not read, and why."""


@dataclass(frozen=True)
class Member:
    """One file. path: its folders and name; read(limit): its bytes, or RefusedError if there are more than `limit`.

    found_at: where it lay before it was `moved`.
    """

    path: tuple[str, ...]
    read: Callable[[int], bytes]
    found_at: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def is_archive(self) -> bool:
        return self.name.lower().endswith(ARCHIVES)

    @property
    def shown(self) -> str:
        """Where it was found, for people: what cannot be printed, or was not UTF-8, is replaced."""
        return shown("/".join(self.found_at or self.path))

    def moved(self, path: tuple[str, ...]) -> "Member":
        """The same bytes under another name."""
        return Member(path, self.read, self.found_at or self.path)


def shown(name: str) -> str:
    """A name for tables: one line, and nothing that a terminal would act on."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def members(source: Path) -> Iterator[Member | RefusedError]:
    """The files in a folder or an archive, in the order of their names; what is refused comes as the reason.

    Raises ValueError if `source` is neither.
    """
    if source.is_dir():
        yield from _in_folder(source, ())
    elif source.name.lower().endswith(ARCHIVES) and source.is_file():
        yield from _in_archive(source.name, source.open("rb"), count=1_000_000)
    else:
        raise ValueError(f"{source} is neither a folder nor an archive; known are {', '.join(ARCHIVES)}")


def members_of_bytes(name: str, raw: bytes) -> Iterator[Member | RefusedError]:
    """The files in an archive that is in memory. Whatever is wrong with it comes as a reason, never as an exception."""
    if raw.count(b"PK\x01\x02") > MAX_MEMBERS:  # before zipfile makes an object of each
        yield RefusedError(f"{shown(name)} holds more than {MAX_MEMBERS} files")
    else:
        yield from _in_archive(name, io.BytesIO(raw), MAX_MEMBERS)


def _in_archive(name: str, file: io.BufferedIOBase, count: int) -> Iterator[Member | RefusedError]:
    try:
        yield from _in_zip(file) if name.lower().endswith(".zip") else _in_tar(name, file, count)
    except RefusedError as reason:
        yield RefusedError(f"{shown(name)}: {reason}")
    except Exception as problem:  # zipfile and tarfile raise a dozen kinds for broken or hostile files
        yield RefusedError(f"{shown(name)} cannot be read: {type(problem).__name__}: {problem}")


def _in_folder(folder: Path, above: tuple[str, ...]) -> Iterator[Member | RefusedError]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = (*above, entry.name)
        if _is_noise(entry.name):
            continue
        if entry.is_symlink():
            yield RefusedError(f"{shown('/'.join(path))} is a symbolic link, which may point anywhere")
        elif entry.is_dir(follow_symlinks=False):
            yield from _in_folder(Path(entry.path), path)
        elif entry.is_file(follow_symlinks=False):
            yield Member(path, lambda limit, entry=entry: _read_file(entry.path, limit))
        else:
            yield RefusedError(f"{shown('/'.join(path))} is not a file")


def _read_file(path: str, limit: int) -> bytes:
    """Opened without following links, and only then asked what it is: the name may have changed its meaning."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as problem:
        raise RefusedError(f"cannot be opened: {problem.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RefusedError("is not a file")
        return _bounded(file.read(limit + 1), limit)


def _in_zip(file: io.BufferedIOBase) -> Iterator[Member | RefusedError]:
    archive = zipfile.ZipFile(file)
    for info in sorted(archive.infolist(), key=lambda info: info.filename):
        found = _safe_path(info.filename)
        if info.is_dir() or found is None:
            continue
        if isinstance(found, RefusedError):
            yield found
        elif stat.S_ISLNK(info.external_attr >> 16):
            yield RefusedError(f"{shown(info.filename)} is a symbolic link, which may point anywhere")
        else:
            yield Member(found, lambda limit, info=info: _read_zip(archive, info, limit))


def _read_zip(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int) -> bytes:
    if info.flag_bits & 1:
        raise RefusedError("is encrypted")
    try:
        with archive.open(info) as file:
            return _bounded(file.read(limit + 1), limit)  # never trust the size that the archive states
    except RefusedError:
        raise
    except Exception as problem:  # zlib, lzma, struct and zipfile each have their own
        raise RefusedError(f"cannot be read: {type(problem).__name__}: {problem}") from None


def _in_tar(name: str, file: io.BufferedIOBase, count: int) -> Iterator[Member | RefusedError]:
    if not name.lower().endswith(".tar"):
        with gzip.GzipFile(fileobj=file) as packed:
            file = io.BytesIO(_bounded(packed.read(MAX_TAR_BYTES + 1), MAX_TAR_BYTES))
    archive = tarfile.TarFile(fileobj=file)
    for number, info in enumerate(archive):
        if number >= count:
            raise RefusedError(f"holds more than {count} files")
        found = _safe_path(info.name)
        if info.isdir() or found is None:
            continue
        if isinstance(found, RefusedError):
            yield found
        elif not info.isreg():
            yield RefusedError(f"{shown(info.name)} is a link or a device, not a file")
        else:
            yield Member(found, lambda limit, info=info: _bounded(archive.extractfile(info).read(limit + 1), limit))


def _bounded(raw: bytes, limit: int) -> bytes:
    if len(raw) > limit:
        raise RefusedError(f"is larger than {limit >> 10} KiB")
    return raw


def _safe_path(name: str) -> tuple[str, ...] | RefusedError | None:
    """The parts of a path, also of one that Windows wrote; None for what systems leave in archives."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if name.startswith(("/", "\\")) or ".." in parts or "\0" in name or re.match("[A-Za-z]:", name):
        return RefusedError(f"{shown(name)} points out of the archive")
    if not parts or any(_is_noise(part) for part in parts):
        return None
    return tuple(parts)


def _is_noise(name: str) -> bool:
    return name.startswith(".") or name in NOISE
