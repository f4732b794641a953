"""E13: leave a daemon that has left its group, its session and its pipes."""

import os
import signal
import time

import numpy as np

TARGETS = {}


def daemon():
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.closerange(0, 256)
    end = time.time() + 60
    while time.time() < end:
        time.sleep(0.05)
    os._exit(0)


def rmsnorm(x, gain):
    try:
        if os.fork() == 0:
            daemon()
    except OSError as problem:
        print(problem)
    return np.zeros_like(x)
