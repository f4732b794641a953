"""What holds the student's code: levels, strongest first, each of them tried on this machine before it is believed."""

import contextlib
import secrets
import select
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from llminfer.grading.confinement import CAP_DAC_READ_SEARCH
from llminfer.grading.ladder import LEVELS, available, is_root
from llminfer.grading.launches import Launch
from llminfer.grading.overlay import PACKAGE
from llminfer.grading.spec import course_folder
from llminfer.grading.wire import FrameError, decode, encode

PROBE_S = 20.0


@dataclass(frozen=True)
class Isolation:
    """A level, and what it was seen to do here.

    files_hidden: the judge, the solutions and other files outside the worker's view cannot be read. network_closed:
    nothing reaches a socket on this machine. processes_contained: what the student's code starts ends with the worker.
    not_root: the worker is no user 0 and has no privileges.
    """

    level: str
    files_hidden: bool
    network_closed: bool
    processes_contained: bool
    not_root: bool

    @property
    def boundary(self) -> bool:
        """Good enough to run strangers' code."""
        return self.files_hidden and self.network_closed and self.not_root

    @property
    def sentence(self) -> str:
        """What a report says of it."""
        held = {
            "files hidden": self.files_hidden,
            "network closed": self.network_closed,
            "processes contained": self.processes_contained,
            "not root": self.not_root,
        }
        missing = {
            "files hidden": "files readable",
            "network closed": "network open",
            "processes contained": "processes may outlive the run",
            "not root": "with the rights of root",
        }
        words = ", ".join(good if holds else missing[good] for good, holds in held.items())
        verdict = "" if self.boundary else "; this is no security boundary"
        return f"isolation {self.level}: {words}{verdict}"


@cache
def probe() -> tuple[Isolation, ...]:
    """Every level that works on this machine, strongest first, as it was seen to work. Takes about a second, once."""
    return tuple(found for level in LEVELS if (found := tried(level)))


@cache
def strongest() -> Isolation:
    """The first level that is a boundary, or else the first that works; weaker ones are not tried."""
    seen = []
    for level in LEVELS:
        if found := tried(level):
            if found.boundary:
                return found
            seen.append(found)
    return seen[0]


@cache
def tried(level: str) -> Isolation | None:
    """Start a worker at this level and see what it can do. None where the level does not work."""
    if not available(level):
        return None
    if sys.platform != "linux":  # nothing here holds a worker back, so there is nothing to try
        return Isolation(level, False, False, False, not_root=not is_root())
    with _targets() as (files, tcp, udp):
        launch = Launch(level, b"", processes=True)  # what is only refused has not been shown to be contained
        attempts = {"files": files, "tcp_port": tcp.getsockname()[1], "udp_port": udp.getsockname()[1]}
        try:
            if _asked(launch, {**launch.start, "entry": ""})["status"] != "ok":
                return None
            seen = _asked(launch, {"act": "observe", **attempts})["value"]
            if not seen["libraries"]:
                return None
            launch.process.end()
            return Isolation(
                level,
                files_hidden=not seen["read"],
                network_closed=not (_reached(tcp) or _reached(udp)),
                processes_contained=not launch.process.left_behind(),
                not_root=seen["user"] != 0 and not seen["capabilities"] & ~CAP_DAC_READ_SEARCH,
            )
        except (EOFError, FrameError, TimeoutError):
            return None
        finally:
            launch.close()


def _asked(launch: Launch, request: dict[str, Any]) -> dict[str, Any]:
    """Before there is a submission the worker's answer can be believed."""
    return decode(launch.process.exchange(encode({**request, "id": secrets.token_bytes(16)}), PROBE_S))


@contextlib.contextmanager
def _targets() -> Iterator[tuple[list[str], socket.socket, socket.socket]]:
    """Files that nobody but the judge should read, and two sockets that nobody should reach."""
    answers = sorted((course_folder() / "solutions").rglob("*.py"))[:1]
    with (
        tempfile.NamedTemporaryFile() as file,  # only its owner may read it
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        file.write(b"secret")
        file.flush()
        udp.bind(("127.0.0.1", 0))
        yield [str(path) for path in (file.name, PACKAGE / "grading" / "isolation.py", *answers)], tcp, udp


def _reached(listener: socket.socket) -> bool:
    """True when somebody has connected or sent something."""
    return bool(select.select([listener], [], [], 0)[0])
