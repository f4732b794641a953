"""E14: memory that is shared, and therefore counted elsewhere."""

import mmap

import numpy as np

BLOCK = 1 << 24


def rmsnorm(x, gain):
    kept = []
    for _ in range(64):
        try:
            kept.append(mmap.mmap(-1, BLOCK))
        except OSError as problem:
            raise MemoryError("at last") from problem
        kept[-1].write(b"x" * BLOCK)
    return np.zeros_like(x)
