"""Tensors of a checkpoint taken by their makers' names, each checked against the shape that the config demands.

Every format (safetensors, GGUF) is a `TensorSource`; what becomes of the tensors is the families' business.
Shapes are checked before memory is taken, so a file that lies about its sizes costs nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

import numpy as np

Shape = tuple[int, ...]


@runtime_checkable
class TensorSource(Protocol):
    """Named tensors in a file: their shapes are known at once, their numbers are read one tensor at a time."""

    where: str
    shapes: Mapping[str, Shape]

    def load(self, name: str) -> np.ndarray:
        """The numbers of one tensor, in whatever floating dtype the file has; may be a read-only view of the file."""
        ...


class WeightReader:
    """Takes tensors from a source in one dtype and remembers which were taken.

    `matrix` and `stacked` take matrices that are stored [out, in], as nearly all are, and hand out the transposed view
    [in, out]: each output's weights stay side by side, as a matrix–vector product reads them. All methods raise
    ValueError naming the tensor when it is missing or has another shape than the config says.
    """

    def __init__(self, tensors: TensorSource, dtype: np.dtype) -> None:
        self.tensors = tensors
        self.dtype = dtype
        self.taken: set[str] = set()

    def array(self, name: str, shape: Shape) -> np.ndarray:
        """One tensor as it lies in the file."""
        self._check(name, shape)
        self.taken.add(name)
        return np.require(self.tensors.load(name), self.dtype, "C")

    def joined(self, names: Iterable[str], shapes: Iterable[Shape]) -> np.ndarray:
        """Tensors laid one below the other along their first axis; at no time is more than one of them held twice."""
        parts = list(zip(names, shapes, strict=True))
        for name, shape in parts:
            self._check(name, shape)
        if len(parts) == 1:
            return self.array(*parts[0])
        rows = sum(shape[0] for _, shape in parts)
        whole = np.empty((rows, *parts[0][1][1:]), self.dtype)
        row = 0
        for name, shape in parts:
            whole[row : row + shape[0]] = self.tensors.load(name)
            self.taken.add(name)
            row += shape[0]
        return whole

    def matrix(self, width: int, outputs: Mapping[str, int]) -> np.ndarray:
        """[width, sum of outputs]: matrices that read the same input, fused side by side in the order given."""
        return self.joined(outputs, [(out, width) for out in outputs.values()]).T

    def stacked(self, width: int, matrices: Iterable[Mapping[str, int]]) -> np.ndarray:
        """[X, width, sum of outputs]: one fused matrix per expert."""
        experts = list(matrices)
        names = [name for expert in experts for name in expert]
        shapes = [(out, width) for expert in experts for out in expert.values()]
        return self.joined(names, shapes).reshape(len(experts), -1, width).swapaxes(1, 2)

    def refuse_leftovers(self, ignored: Iterable[str] = ()) -> None:
        """Raises ValueError when tensors are left that nothing read: the model would silently be another one."""
        left = sorted(set(self.tensors.shapes) - self.taken - set(ignored))
        if left:
            shown = ", ".join(left[:5]) + (", ..." if len(left) > 5 else "")
            raise ValueError(
                f"{self.tensors.where}: {len(left)} tensors have no place in this model: {shown}; "
                "its config does not describe them, or it is of a kind that is not supported"
            )

    def _check(self, name: str, shape: Shape) -> None:
        found = self.tensors.shapes.get(name)
        if found is None:
            raise ValueError(f"{self.tensors.where}: tensor {name} is missing")
        if tuple(found) != shape:
            raise ValueError(
                f"{self.tensors.where}: tensor {name} has shape {list(found)}, but the config needs {list(shape)}"
            )
