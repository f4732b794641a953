"""What a confined worker can still do; the probe asks it before there is any submission."""

import contextlib
import ctypes
import importlib
import os
import socket
import time
from collections.abc import Mapping
from typing import Any

from llminfer.grading.confinement import CAPABILITY_VERSION


def observe(attempts: Mapping[str, Any]) -> dict[str, Any]:
    """Try to read the `files`, to reach `tcp_port` and `udp_port`, and to leave a process behind. Linux only."""
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", attempts["tcp_port"]), timeout=1.0).close()
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"here", ("127.0.0.1", attempts["udp_port"]))
    with contextlib.suppress(OSError):
        leave_a_process()
    return {
        "read": [path for path in attempts["files"] if can_read(path)],
        "libraries": can_import("numpy.ma") and can_import("llminfer.basics.norms"),
        "user": os.getuid(),
        "capabilities": capabilities(),
    }


def can_read(path: str) -> bool:
    """True when any byte of the file can be had."""
    try:
        with open(path, "rb") as file:
            return bool(file.read(1))
    except OSError:
        return False


def can_import(name: str) -> bool:
    """True when a module that is not loaded yet can be: a worker without its libraries is of no use."""
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def leave_a_process() -> None:
    """A daemon in the usual way, out of its group and its session. It holds the reply pipe open while it lives."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)


def capabilities() -> int:
    """The first 32 of the effective ones, as a mask."""
    header, data = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    ctypes.CDLL(None).capget(header, data)
    return data[0]
