"""E21: the right numbers, written into the caller's array."""

import numpy as np


def rmsnorm(x, gain):
    x /= np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5)
    x *= gain
    return x
