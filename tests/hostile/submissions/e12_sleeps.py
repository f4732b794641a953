"""E12: sleep."""

import time


def rmsnorm(x, gain):
    time.sleep(600)
