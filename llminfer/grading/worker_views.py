"""Which files a worker needs: the interpreter, its libraries, the overlay, the submission. All others stay hidden."""

import os
import site
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from llminfer.grading import landlock
from llminfer.grading.overlay import PACKAGE
from llminfer.grading.spec import course_folder

_OF_A_PREFIX = ("bin", "lib", "lib64", "include", "pyvenv.cfg")
"""Not all of it: an environment may have been made in the folder where the course lies."""
_OF_THE_SYSTEM = (
    *("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/bin", "/lib", "/lib64", "/nix/store"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives"),
    *("/etc/localtime", "/usr/share/zoneinfo"),
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_FOR_A_GPU = ("/usr/include", "/usr/local/cuda", "/opt/rocm", "/sys", "/etc/passwd")
_OF_PROC_FOR_A_GPU = ("/proc/self", "/proc/driver", "/proc/devices", "/proc/modules", "/proc/cpuinfo", "/proc/meminfo")


@dataclass(frozen=True)
class WorkerView:
    """readable: files and whole folders. hidden: places in them that are not to be seen. devices: read and written."""

    readable: tuple[Path, ...]
    hidden: tuple[Path, ...]
    work: Path
    devices: tuple[Path, ...]

    def bwrap_arguments(self) -> list[str]:
        """Mounts for an empty file system that has a /dev already; what leads to them any user may pass."""
        places = {parent for path in (*self.readable, self.work) for parent in path.parents}
        folders = [("--perms", "0755", "--dir", place) for place in sorted(places)]
        mounts = [("--ro-bind-try", path, path) for path in self.readable]
        masks = [
            ("--tmpfs", path / hidden.relative_to(path.resolve()))  # by the name under which it is mounted
            for path in self.readable
            for hidden in self.hidden
            if hidden.is_relative_to(path.resolve())
        ]
        devices = [("--dev-bind-try", path, path) for path in self.devices if str(path) not in _DEVICES]
        return [str(word) for mount in (*folders, *mounts, *masks, *devices) for word in mount]

    def landlock_rules(self) -> list[tuple[str, int]]:
        """Landlock only allows: around what is hidden, everything else is allowed one by one."""
        rules = [rule for path in self.readable for rule in self._allowed(path.resolve())]
        if set(map(str, self.devices)) - set(_DEVICES):
            rules += [(path, landlock.READ) for path in _OF_PROC_FOR_A_GPU]
        written = [(str(path), landlock.WRITE) for path in (*self.devices, self.work)]
        return rules + written

    def _allowed(self, path: Path) -> Iterator[tuple[str, int]]:
        if path in self.hidden:
            return
        if not any(hidden.is_relative_to(path) for hidden in self.hidden):
            yield str(path), landlock.READ
            return
        yield str(path), landlock.LIST  # import looks into folders; so the names of hidden files can be seen
        for entry in path.iterdir():
            if not entry.is_symlink():  # what it leads to is allowed or not by itself
                yield from self._allowed(entry)

    @property
    def open_to_all(self) -> bool:
        """True when any user of this machine may read it."""
        parents = {parent for path in self.readable for parent in path.resolve().parents if path.exists()}
        return all(parent.stat().st_mode & 0o001 for parent in parents)


def worker_view(overlay: Path, submission: Path, work: Path, gpu: bool = False) -> WorkerView:
    """What a worker may see that runs `submission` in the folder `work`."""
    graphics = graphics_devices() if gpu else ()
    also = [Path(path) for path in _FOR_A_GPU] if graphics else []
    return WorkerView(
        (*_interpreter(), *also, overlay, submission),
        _hidden(),
        work,
        (*map(Path, _DEVICES), *graphics),
    )


def graphics_devices() -> tuple[Path, ...]:
    """The device files of the GPUs here."""
    return tuple(path for pattern in ("nvidia*", "kfd", "dri") for path in sorted(Path("/dev").glob(pattern)))


def user_packages() -> list[str]:
    """Where `pip install --user` puts packages, if this process uses it; -s would leave it out."""
    return [site.getusersitepackages()] if site.getusersitepackages() in sys.path else []


@cache
def _interpreter() -> tuple[Path, ...]:
    prefixes = {Path(sys.prefix), Path(sys.base_prefix)}
    link = Path(sys.executable)
    while link.is_symlink():  # from an environment's python to the real one, by the names that the links use
        link = link.parent / os.readlink(link)
        prefixes.add(Path(os.path.normpath(link)).parent.parent)
    prefixes -= {Path("/"), Path("/usr")}
    within = [prefix / part for prefix in sorted(prefixes) for part in _OF_A_PREFIX]
    system = [Path(path) for path in _OF_THE_SYSTEM]
    return tuple(path for path in (*within, *system, *map(Path, user_packages())) if path.exists())


@cache
def _hidden() -> tuple[Path, ...]:
    """The library with its exercises, this copy and those of other Pythons in sight."""
    visible = [path.resolve() for path in _interpreter()]
    ours = {path.resolve() for path in (PACKAGE, course_folder())}
    in_sight = {path for path in ours if any(path.is_relative_to(place) for place in visible)}
    others = {path.resolve() for place in visible for path in place.glob("python*/*-packages/llminfer")}
    return tuple(sorted(in_sight | others))
