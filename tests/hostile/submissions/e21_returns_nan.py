"""E21: NaN, which equals itself in some comparisons."""

import numpy as np


def rmsnorm(x, gain):
    return np.full_like(x, np.nan)
