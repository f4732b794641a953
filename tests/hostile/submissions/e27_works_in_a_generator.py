"""E27: do the work when a limiter around the call is gone."""

import numpy as np


def rmsnorm(x, gain):
    yield np.ones(1 << 30, np.uint8)
