"""E27: raise every limit again, then use what it was to forbid."""

import contextlib
import resource

import numpy as np

NAMES = [name for name in dir(resource) if name.startswith("RLIMIT_")]


def rmsnorm(x, gain):
    for name in NAMES:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(getattr(resource, name), (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return np.ones(1 << 30, np.uint8)
