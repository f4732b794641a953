"""The model's third door: what may stand on the right of `@`.

The model asks a matrix for products, for rows (the embedding) and for nothing else, so that a quantized, a sharded or a
remote matrix can take the place of a dense one. A dense weight is whatever its array is, NumPy's or torch's.
"""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from llminfer.basics.config import ModelConfig
from llminfer.basics.parameters import weight_shapes


@runtime_checkable
class Weight(Protocol):
    """A matrix [N, M] that multiplies from the right.

    `__array_ufunc__ = None` makes `ndarray @ weight` come here; a torch tensor comes of itself. Book section 3.1.2.
    """

    __array_ufunc__: None = None
    shape: tuple[int, int]
    nbytes: int  # as stored: what one product must read

    @property
    def T(self) -> "Weight":  # noqa: N802 (the name that NumPy and torch have)
        """The transpose [M, N] of the same memory. A tied head is the transpose of the embedding."""
        ...

    def __rmatmul__(self, x: Float[Any, "T N"]) -> Float[Any, "T M"]:
        """x @ weight, in the dtype of x."""
        ...

    def rows(self, ids: Int[Any, "R"]) -> Float[Any, "R M"]:
        """Some of the N rows, in the order asked for and as numbers; ids must lie in 0..N-1, which is not checked."""
        ...

    def shard(self, axis: int, rank: int, world: int) -> "Weight":
        """Part `rank` of `world` equal parts along an axis. Raises ValueError if the axis does not divide."""
        ...


class DenseWeight:
    """A weight that is a plain two-dimensional array, NumPy's or torch's, in any memory order. Book section 3.1.2."""

    __array_ufunc__ = None
    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        if len(array.shape) != 2:
            raise ValueError(f"a weight has two axes, [in, out], got shape {tuple(array.shape)}")
        self.array = array

    def __repr__(self) -> str:
        return f"DenseWeight({self.shape}, {self.array.dtype})"

    @property
    def shape(self) -> tuple[int, int]:
        return tuple(self.array.shape)

    @property
    def nbytes(self) -> int:
        return self.array.nbytes

    @property
    def T(self) -> "DenseWeight":  # noqa: N802
        return DenseWeight(self.array.T)

    def __rmatmul__(self, x: Float[Any, "T N"]) -> Float[Any, "T M"]:
        if isinstance(x, np.ndarray) and 1 < len(x) <= 64:  # the same transposed: up to a quarter faster
            return (self.array.T @ x.T).T
        return x @ self.array

    def rows(self, ids: Int[Any, "R"]) -> Float[Any, "R M"]:
        return self.array[ids]

    def shard(self, axis: int, rank: int, world: int) -> "DenseWeight":
        """A view of the part, no copy. Fused matrices (q|k|v, gate|up) must be cut apart before they are sharded."""
        if axis not in (0, 1):
            raise ValueError(f"axis must be 0 (inputs) or 1 (outputs), got {axis}")
        if not 0 <= rank < world:
            raise ValueError(f"rank must lie in 0..{world - 1}, got {rank}")
        size = self.shape[axis]
        if size % world:
            raise ValueError(f"{world} ranks cannot share axis {axis} of a weight {self.shape} equally")
        part = slice(rank * size // world, (rank + 1) * size // world)
        return DenseWeight(self.array[part] if axis == 0 else self.array[:, part])


def as_weight(array: Any) -> Weight:
    """The array as a Weight; what is one already stays as it is."""
    return array if isinstance(array, Weight) else DenseWeight(array)


def checked_weights(config: ModelConfig, weights: Mapping[str, Any]) -> dict[str, Any]:
    """The weights of a model, each matrix as a Weight; vectors, and stacks of matrices (experts, MLA), stay arrays.

    Raises ValueError naming weights that are missing, that the config has no place for, or whose shape is wrong.
    """
    expected = weight_shapes(config)
    missing = [name for name in expected if name not in weights]
    unknown = [name for name in weights if name not in expected]
    if missing or unknown:
        raise ValueError(
            f"the weights of {config.name!r} lack {_listed(missing)} and have {_listed(unknown)} too many; "
            "parameters.weight_shapes(config) lists what is expected"
        )
    for name, shape in expected.items():
        if tuple(weights[name].shape) != shape:
            raise ValueError(
                f"weight {name} of {config.name!r} has shape {tuple(weights[name].shape)}, its config needs {shape}"
            )
    matrices = {name for name, shape in expected.items() if len(shape) == 2 and not name.endswith(".bias")}
    return {name: as_weight(weights[name]) if name in matrices else weights[name] for name in expected}


def _listed(names: list[str]) -> str:
    return f"{len(names)} ({', '.join(names[:4])}{', ...' if len(names) > 4 else ''})" if names else "none"
