"""Landlock through ctypes: a process gives up every file that is not on its list, and TCP, for good.

It needs neither privileges nor namespaces, so it works inside containers. What it does not cover, sockets other than
TCP and changes of modes and times, is refused by `system_calls`. Source: the kernel's userspace-api/landlock.rst.
"""

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION_FLAG = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_BIND_AND_CONNECT_TCP = 3
_ABSTRACT_SOCKETS_AND_SIGNALS = 3

LIST = _READ_DIR
READ = _EXECUTE | _READ_FILE | _READ_DIR
WRITE = READ | _WRITE_FILE | _REMOVE_AND_MAKE | _REFER | _TRUNCATE
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("access", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def restrict(rules: Iterable[tuple[str, int]]) -> None:
    """Allow LIST, READ or WRITE at and below each path, and nothing elsewhere. Paths that are not there are skipped.

    The caller has set no_new_privs. Raises OSError where the kernel has no Landlock.
    """
    version = _call(_CREATE_RULESET, None, 0, _VERSION_FLAG)
    handled = WRITE & ~(0 if version >= 2 else _REFER) & ~(0 if version >= 3 else _TRUNCATE)
    attributes = _Ruleset(handled, _BIND_AND_CONNECT_TCP, _ABSTRACT_SOCKETS_AND_SIGNALS)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _call(_CREATE_RULESET, ctypes.byref(attributes), size, 0)
    try:
        for path, access in rules:
            _allow(ruleset, path, access & handled)
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        allowed = access if Path(path).is_dir() else access & _OF_A_FILE
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(_PathBeneath(allowed, place)), 0)
    finally:
        os.close(place)


def _call(number: int, *arguments: object) -> int:
    result = ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return result
