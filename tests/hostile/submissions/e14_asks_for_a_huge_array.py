"""E14: one array beyond all memory."""

import numpy as np


def rmsnorm(x, gain):
    return np.ones(1 << 36)
