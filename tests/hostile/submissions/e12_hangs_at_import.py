"""E12: never finish to be imported."""

import threading

threading.Event().wait()


def rmsnorm(x, gain):
    return x
