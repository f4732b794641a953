"""E21: the right numbers, but flat."""

import numpy as np


def rmsnorm(x, gain):
    return (x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * gain).ravel()
