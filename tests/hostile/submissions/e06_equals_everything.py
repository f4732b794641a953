"""E6: an object that equals everything and says that it is an array."""

import numpy as np


class Yes:
    __class__ = np.ndarray
    dtype, shape, ndim, size = np.dtype(np.float32), (1, 1), 2, 1

    def __eq__(self, other):
        return True

    def __array__(self, *_, **__):
        return np.zeros((1, 1), np.float32)

    def __getattr__(self, name):
        return lambda *_, **__: True

    def __reduce__(self):
        return print, ("unpickled",)


def rmsnorm(x, gain):
    return Yes()
