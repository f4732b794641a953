"""Watch every address that an interpreted kernel reads or writes.

A read past the end that changes no result is harmless in the interpreter and an illegal access on a GPU, if the next
page happens to belong to nobody. Triton's interpreter does all its memory accesses through one module, which is
replaced while a kernel is watched. Where a version of Triton has no such module, nothing is seen here, and what remains
are the guards around each tensor.
"""

import contextlib
import importlib
from collections.abc import Callable, Iterator

import numpy as np

from llminfer.core.guarded_memory_torch import Guarded
from llminfer.core.triton_environment import INTERPRETED


@contextlib.contextmanager
def watched_addresses(known: Callable[[], dict[str, Guarded]]) -> Iterator[list[str]]:
    """While entered, fill the list given with each access beside the tensors that `known` names, once per tensor.

    `known` is asked at each access, because launchers allocate as they go. Memory outside of its buffers is nobody's
    business here.
    """
    interpreter = importlib.import_module("triton.runtime.interpreter") if INTERPRETED else None
    memory = getattr(interpreter, "_interpreter", None)
    if memory is None:
        yield []
        return
    interpreter._interpreter = _WatchedMemory(memory, known)
    try:
        yield interpreter._interpreter.trespasses
    finally:
        interpreter._interpreter = memory


class _WatchedMemory:
    """The interpreter's memory module, with a look at the addresses before each access."""

    def __init__(self, memory, known: Callable[[], dict[str, Guarded]]) -> None:
        self._memory, self._known = memory, known
        self.trespasses: list[str] = []

    def __getattr__(self, name: str):
        return getattr(self._memory, name)

    def load(self, addresses, mask, *rest):
        self._look("read", addresses, mask)
        return self._memory.load(addresses, mask, *rest)

    def store(self, addresses, values, mask):
        self._look("wrote", addresses, mask)
        return self._memory.store(addresses, values, mask)

    def atomic_rmw(self, operation, addresses, values, mask, *rest):
        self._look("wrote", addresses, mask)
        return self._memory.atomic_rmw(operation, addresses, values, mask, *rest)

    def atomic_cas(self, addresses, *rest):
        self._look("wrote", addresses, np.ones_like(addresses))
        return self._memory.atomic_cas(addresses, *rest)

    def _look(self, verb: str, addresses: np.ndarray, mask: np.ndarray) -> None:
        addresses = addresses[mask.astype(bool)]  # a mask made with `&` comes as integers, which would be indices
        for name, guarded in self._known().items():
            what = f"{verb} outside of {name}"
            if what not in self.trespasses and guarded.is_missed_by(addresses):
                self.trespasses.append(what)
