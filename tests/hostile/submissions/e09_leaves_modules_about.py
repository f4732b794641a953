"""E9: leave modules behind that others may import in place of the real ones."""

import contextlib
import pathlib
import sys

import numpy as np

TARGETS = {}
NAMES = ("numpy.py", "conftest.py", "sitecustomize.py", "usercustomize.py", "json.py", "llminfer.py", "random.py")
TRAP = f"open({TARGETS.get('trace')!r}, 'w').write('ran')"


def rmsnorm(x, gain):
    for folder in (".", "..", TARGETS["student"], sys.path[0]):
        for name in NAMES:
            place = pathlib.Path(folder, name)
            with contextlib.suppress(OSError):
                if not place.exists():
                    place.write_text(TRAP)
    return np.zeros_like(x)
