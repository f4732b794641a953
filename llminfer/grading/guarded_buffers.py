"""Arrays for kernels, inside larger buffers whose borders only the judge knows."""

import math
from dataclasses import dataclass

import numpy as np

BORDER = 1024
"""Elements on each side: more than a block of an exercise's kernel, so that an error by one block lands inside."""


@dataclass(frozen=True, eq=False)
class Guarded:
    """A contiguous array of `shape` inside the flat `buffer`, `border` elements after its beginning and before its end.

    The worker hands a kernel the memory in the middle and returns the whole buffer; the judge, who drew the borders at
    random, sees whether they are still what they were.
    """

    buffer: np.ndarray
    shape: tuple[int, ...]
    border: int

    def __post_init__(self) -> None:
        size = math.prod(self.shape)
        if type(self.border) is not int or self.border < 0:
            raise ValueError(f"border must be an integer from 0 on, got {self.border!r}")
        if self.buffer.shape != (size + 2 * self.border,):
            raise ValueError(
                f"a buffer for shape {self.shape} and two borders of {self.border} has {size + 2 * self.border} "
                f"elements, got shape {self.buffer.shape}"
            )

    @classmethod
    def around(cls, array: np.ndarray, rng: np.random.Generator, border: int = BORDER) -> "Guarded":
        """A copy of `array` between borders of random bytes."""
        outside = rng.integers(0, 256, 2 * border * array.itemsize, dtype=np.uint8)
        if array.dtype == bool:
            outside &= 1
        left, right = outside.view(array.dtype).reshape(2, border)
        return cls(np.concatenate([left, array.ravel(), right]), array.shape, border)

    @property
    def array(self) -> np.ndarray:
        """The array itself, as a view into the buffer."""
        return self.buffer[self.border : len(self.buffer) - self.border].reshape(self.shape)

    def same_borders(self, other: "Guarded") -> bool:
        """True when both have the same shape, and the same bytes around it."""
        if (self.shape, self.border, self.buffer.dtype) != (other.shape, other.border, other.buffer.dtype):
            return False
        return all(
            mine.tobytes() == theirs.tobytes() for mine, theirs in zip(self._borders, other._borders, strict=True)
        )

    @property
    def _borders(self) -> tuple[np.ndarray, np.ndarray]:
        return self.buffer[: self.border], self.buffer[len(self.buffer) - self.border :]
