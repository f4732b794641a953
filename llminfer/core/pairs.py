"""A pair: one idea as a NumPy reference and as a Triton kernel, with its cost and the inputs that try it.

Everything said of a kernel (parity test, benchmark, roofline point, compile matrix, table in the docs) is derived from
its pair. This module holds the pair itself and finds all of them; it imports neither torch nor triton.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Pair:
    """One idea, twice. Named "<chapter>.<idea>", such as "basics.rmsnorm".

    reference: NumPy arrays in, NumPy array (or tuple of arrays) out; computes in the dtype it is given.
    kernel:    torch tensors in and out; same argument names and order as the reference.
    baseline:  plain torch of the same idea, at the same dtype: the yardstick for error and for time.
    cases:     (rng, size, dtype) -> keyword arguments as NumPy arrays; size is "tiny", "odd" or "bench".
    cost:      same keyword arguments -> Cost, the least that any version must do.
    """

    name: str
    reference: Callable
    kernel: Callable
    baseline: Callable
    cases: Callable
    cost: Callable
    dtypes: tuple[str, ...]
    mutates: tuple[str, ...] = ()
    compare: str = "float"
    variants: tuple[Callable, ...] = ()
