"""E15: a result larger than any frame."""

import numpy as np


def rmsnorm(x, gain):
    return np.zeros(80 << 20, np.uint8)
