"""Memory that tells on a kernel: guards around every tensor, poison in every fresh one.

A kernel that reads past its input reads NaN; one that leaves part of its output unwritten returns NaN; one that writes
outside of what it was given changes a guard. Integers cannot be NaN: their poison is -1 (85 in one byte), a value that
a wild read may take for an index without leaving the guards of the table it looks into.
"""

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from llminfer.core.tensors_torch import dtype_name, to_torch

GUARD = 16384
"""Elements on each side of a tensor: more than one block or row, so that an error by one lands inside."""
ROW_GAP = 16
"""Elements between the rows of a strided tensor; keeps rows 16-byte aligned, which tensor descriptors need."""

_UNINITIALISED = (torch.empty, torch.empty_like, torch.Tensor.new_empty)
_INITIALISED = (
    torch.zeros,
    torch.zeros_like,
    torch.Tensor.new_zeros,
    torch.ones,
    torch.ones_like,
    torch.full,
    torch.full_like,
    torch.Tensor.new_full,
)


def poison(tensor: torch.Tensor) -> torch.Tensor:
    """Fill a contiguous tensor with NaN, or with what stands for it among integers."""
    name = dtype_name(tensor)
    if name.startswith("float8"):
        tensor.view(torch.uint8).fill_(0x7F)
    elif tensor.is_floating_point():
        tensor.fill_(float("nan"))
    elif tensor.dtype == torch.bool:
        tensor.fill_(True)
    elif tensor.itemsize == 1:
        tensor.fill_(85)
    else:
        tensor.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.itemsize]).fill_(-1)
    return tensor


class Guarded:
    """A tensor inside a larger poisoned buffer that remembers how it was.

    `tensor` has the given shape and, when fresh, holds poison. Strided, each row is followed by ROW_GAP poisoned
    elements and each further axis by one poisoned slice; otherwise it is contiguous.
    """

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device | str, strided: bool = False):
        self.shape = tuple(shape)
        gaps = [1] * (len(self.shape) - 1) + [ROW_GAP] if strided and len(self.shape) > 1 else [0] * len(self.shape)
        self._padded = tuple(length + gap for length, gap in zip(self.shape, gaps, strict=True))
        size = int(np.prod(self._padded, dtype=np.int64))
        self._buffer = poison(torch.empty(GUARD + size + GUARD, dtype=dtype, device=device))
        self.tensor = self._inside(self._buffer)
        self._before = self._buffer.clone()

    def fill(self, values: torch.Tensor) -> "Guarded":
        """Copy `values` in and take this as the state that must not change."""
        self.tensor.copy_(values)
        self._before = self._buffer.clone()
        return self

    @property
    def unchanged(self) -> bool:
        """True while neither the tensor nor anything around it has been written."""
        return torch.equal(self._buffer.view(torch.uint8), self._before.view(torch.uint8))

    @property
    def guards_intact(self) -> bool:
        """True while nothing around the tensor has been written; the tensor itself may have been."""
        expected = self._before.clone()
        self._inside(expected).copy_(self.tensor)
        return torch.equal(self._buffer.view(torch.uint8), expected.view(torch.uint8))

    def _inside(self, buffer: torch.Tensor) -> torch.Tensor:
        padded = buffer[GUARD : buffer.numel() - GUARD].view(self._padded)
        return padded[tuple(slice(0, length) for length in self.shape)]


def guarded_array(array: np.ndarray, device: str, strided: bool = False) -> Guarded:
    """The values of `array` as a guarded tensor on `device`."""
    values = to_torch(array, device)
    return Guarded(array.shape, values.dtype, device, strided).fill(values)


class PoisonedAllocations(TorchFunctionMode):
    """While entered, `torch.empty` and its kin give poison between guards, `torch.zeros` and its kin zeros there.

    Only contiguous tensors with elements are replaced: what launchers allocate (Triton itself makes empty ones).
    """

    def __init__(self) -> None:
        super().__init__()
        self._allocated: list[Guarded] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func not in _UNINITIALISED + _INITIALISED or not result.is_contiguous() or not result.numel():
            return result
        guarded = Guarded(result.shape, result.dtype, result.device)
        if func in _INITIALISED:
            guarded.fill(result)
        self._allocated.append(guarded)
        return guarded.tensor

    @property
    def guards_intact(self) -> bool:
        """True while no allocation's surroundings have been written."""
        return all(guarded.guards_intact for guarded in self._allocated)
