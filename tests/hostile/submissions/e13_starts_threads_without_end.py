"""E13: threads in place of processes."""

import threading
import time

import numpy as np

threading.stack_size(64 * 1024)


def rmsnorm(x, gain):
    try:
        for _ in range(500):
            threading.Thread(target=time.sleep, args=(60,)).start()
    except (RuntimeError, MemoryError) as problem:
        print(problem)
    return np.zeros_like(x)
