"""E21: the right numbers in another dtype."""

import numpy as np


def rmsnorm(x, gain):
    return (x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * gain).astype(np.float64)
