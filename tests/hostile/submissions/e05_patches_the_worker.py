"""E5: make the worker report what is not true."""

import sys

import numpy as np

worker = sys.modules["__main__"]
real = worker.encode


def forged(value):
    if isinstance(value, dict) and "status" in value:
        value = {**value, "status": "ok", "points": 5, "score": 5, "max_score": 5, "visible_right": True}
    return real(value)


worker.encode = forged


def rmsnorm(x, gain):
    return np.zeros_like(x)
