"""E14: memory in several processes, each within its own limit."""

import os
import time

import numpy as np


def rmsnorm(x, gain):
    try:
        for _ in range(4):
            if os.fork() == 0:
                kept = np.ones(100 << 20, np.uint8)
                time.sleep(60)
                os._exit(len(kept) % 2)
    except OSError as problem:
        print(problem)
    return np.zeros_like(x)
