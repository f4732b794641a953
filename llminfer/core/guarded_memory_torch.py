"""Memory that tells on a kernel: guards around every tensor, poison in every fresh one.

A kernel that reads past its input reads NaN; one that leaves part of its output unwritten returns NaN; one that writes
outside of what it was given changes a guard. Every buffer has a NaN of its own kind (its payload bits), because a
kernel that runs past both its input and its output writes NaN over NaN. Integers cannot be NaN: their poison is a small
negative number, which a wild read may take for an index without leaving the guards of the table it looks into.
"""

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from llminfer.core.tensors_torch import dtype_name, to_torch

GUARD = 8192
"""Elements on each side of a tensor: more than one block or row, so that an error by one lands inside; two of them are
few enough that torch fills them in one thread."""
ROW_GAP = 16
"""Elements between the rows of a strided tensor, or a multiple, so that rows stay 16-byte aligned, which tensor
descriptors need. Arguments after one another have different multiples: a kernel must not take the stride of another."""

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
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_QUIET_NAN = {
    "float16": (0x7E00, 0),
    "bfloat16": (0x7FC0, 0),
    "float32": (0x7FC00000, 16),
    "float64": (0x7FF8 << 48, 45),
}
"""Bits of a quiet NaN, and how far up the payload goes so that it survives conversion between these types."""


def poison(tensor: torch.Tensor, kind: int) -> torch.Tensor:
    """Fill a contiguous tensor with NaN of a kind from 0 to 31, or with what stands for it among integers."""
    name, bits = dtype_name(tensor), tensor.view(_BITS[tensor.itemsize])
    if name in _QUIET_NAN:
        nan, shift = _QUIET_NAN[name]
        bits.fill_(nan | (1 + kind) << shift)
    elif name.startswith("float8"):
        bits.fill_((0x7F, 0xFF)[kind % 2])  # has no other NaN
    elif name == "bool":
        bits.fill_(1)
    elif tensor.itemsize == 1:
        bits.fill_(85 + kind)
    else:
        bits.fill_(-1 - kind)
    return tensor


class Guarded:
    """A tensor inside a larger poisoned buffer that remembers how it was.

    `tensor` has the given shape and, when fresh, holds poison. Strided, each row is followed by 1 to 3 ROW_GAPs of
    poisoned elements, as `kind` has it, and each further axis by one poisoned slice; otherwise it is contiguous. `kind`
    is that of the poison.
    """

    def __init__(self, shape: tuple[int, ...], like: torch.Tensor, kind: int, strided: bool = False) -> None:
        self.shape = tuple(shape)
        row_gap = ROW_GAP * (1 + kind % 3)
        gaps = [1] * (len(self.shape) - 1) + [row_gap] if strided and len(self.shape) > 1 else [0] * len(self.shape)
        self._padded = tuple(length + gap for length, gap in zip(self.shape, gaps, strict=True))
        size = int(np.prod(self._padded, dtype=np.int64))
        self._buffer = poison(torch.empty(GUARD + size + GUARD, dtype=like.dtype, device=like.device), kind)
        self.tensor = self._inside(self._buffer)
        self._before = self._buffer.clone()
        belongs = torch.zeros(self._buffer.numel(), dtype=torch.bool)
        self._inside(belongs).fill_(True)
        self._is_tensor = belongs.numpy()

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

    def is_missed_by(self, addresses: np.ndarray) -> bool:
        """True when one of the addresses lies in the buffer but is not that of an element of the tensor."""
        start, size = self._buffer.data_ptr(), self._buffer.itemsize
        places = (addresses[(addresses >= start) & (addresses < start + self._buffer.nbytes)] - start) // size
        return not self._is_tensor[places].all()

    def _inside(self, buffer: torch.Tensor) -> torch.Tensor:
        padded = buffer[GUARD : buffer.numel() - GUARD].view(self._padded)
        return padded[tuple(slice(0, length) for length in self.shape)]


def guarded_arguments(arguments: dict, device: str, strided: bool = False) -> dict[str, Guarded]:
    """The arrays among `arguments` as guarded tensors on `device`, each with its own kind of poison."""
    arrays = {name: to_torch(value, device) for name, value in arguments.items() if isinstance(value, np.ndarray)}
    return {
        name: Guarded(values.shape, values, kind % 16, strided).fill(values)
        for kind, (name, values) in enumerate(arrays.items())
    }


class PoisonedAllocations(TorchFunctionMode):
    """While entered, `torch.empty` and its kin give poison between guards, `torch.zeros` and its kin zeros there.

    Only contiguous tensors with elements are replaced: what launchers allocate (Triton itself makes empty ones).
    """

    def __init__(self) -> None:
        super().__init__()
        self.allocated: list[Guarded] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func not in _UNINITIALISED + _INITIALISED or not result.is_contiguous() or not result.numel():
            return result
        guarded = Guarded(result.shape, result, 16 + len(self.allocated) % 16)  # never a kind of an argument
        if func in _INITIALISED:
            guarded.fill(result)
        self.allocated.append(guarded)
        return guarded.tensor
