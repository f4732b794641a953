"""Between NumPy and torch, for every dtype of a pair: bytes are carried over, never converted."""

import ml_dtypes
import numpy as np
import torch

_BYTES_OF_SIZE = {1: np.uint8, 2: np.uint16}


def to_torch(array: np.ndarray, device: str = "cpu") -> torch.Tensor:
    """A tensor on `device` with the bytes, shape and dtype of `array` (ml_dtypes' bfloat16 and float8 included)."""
    array = np.ascontiguousarray(array).reshape(array.shape)  # ascontiguousarray makes a row of a scalar
    if _is_of_ml_dtypes(array.dtype.name):  # unknown to torch.from_numpy
        raw = torch.from_numpy(array.view(_BYTES_OF_SIZE[array.dtype.itemsize]).copy())
        return raw.view(getattr(torch, array.dtype.name)).to(device)
    return torch.from_numpy(array.copy()).to(device)


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """The array with the bytes, shape and dtype of `tensor`."""
    name = dtype_name(tensor)
    tensor = tensor.detach().cpu().contiguous()
    if _is_of_ml_dtypes(name):
        raw = tensor.view(torch.uint8 if tensor.itemsize == 1 else torch.uint16)
        return raw.numpy().view(getattr(ml_dtypes, name))
    return tensor.numpy()


def dtype_name(tensor: torch.Tensor) -> str:
    """ "bfloat16" for torch.bfloat16: the names are NumPy's and ml_dtypes' too."""
    return str(tensor.dtype).removeprefix("torch.")


def _is_of_ml_dtypes(name: str) -> bool:
    return hasattr(ml_dtypes, name) and not hasattr(np, name)
