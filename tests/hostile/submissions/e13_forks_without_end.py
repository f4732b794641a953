"""E13: a fork bomb, with a fuse, because it may go off."""

import os
import time

import numpy as np

MOST = 60


def rmsnorm(x, gain):
    for _ in range(MOST):
        try:
            if os.fork() == 0:
                os.setsid()
                time.sleep(60)
                os._exit(0)
        except OSError as problem:
            print(problem)
            break
    return np.zeros_like(x)
