"""What the launchers of this chapter ask of a tensor before a kernel walks it, and how a row is spread over threads."""

import torch

from llminfer.core.triton_environment import triton

KERNEL_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
MAX_ROW = 16384  # elements of one row that a program keeps in registers; twice as many spill on every NVIDIA target


def rows_of(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` [..., D] as rows [T, D]; a view wherever the leading axes allow one. Raises as `require_rows` does."""
    require_rows(name, tensor)
    return tensor.reshape(-1, tensor.shape[-1])


def require_rows(name: str, tensor: torch.Tensor) -> None:
    """Raise TypeError for a dtype the kernels do not know, ValueError unless the last axis is contiguous."""
    if tensor.dtype not in KERNEL_DTYPES:
        raise TypeError(f"{name} must be float32, float16 or bfloat16, got {tensor.dtype}; the reference takes float64")
    if tensor.ndim == 0 or tensor.shape[-1] == 0:
        raise ValueError(f"{name} needs a last axis of at least one element, got shape {tuple(tensor.shape)}")
    if tensor.shape[-1] > 1 and tensor.numel() and tensor.stride(-1) != 1:
        raise ValueError(
            f"the last axis of {name} must be contiguous, got strides {tensor.stride()}; call {name}.contiguous() first"
        )


def require_vector(name: str, vector: torch.Tensor, length: int, beside: torch.Tensor) -> None:
    """Raise ValueError unless `vector` is contiguous, has `length` elements and lies on the device of `beside`."""
    if vector.shape != (length,):
        raise ValueError(f"{name} must have shape ({length},), got {tuple(vector.shape)}")
    if not vector.is_contiguous():
        raise ValueError(f"{name} must be contiguous, got stride {vector.stride(0)}; call {name}.contiguous() first")
    if vector.device != beside.device:
        raise ValueError(f"{name} is on {vector.device}, but the other tensors are on {beside.device}; move it there")


def row_block(width: int) -> tuple[int, int]:
    """(BLOCK, num_warps) to hold a whole row of `width` elements in the registers of one program.

    16 elements a thread (two vector loads in 16 bit) where the row is long enough, 32 for the longest.
    Raises ValueError for a row longer than MAX_ROW.
    """
    if width > MAX_ROW:
        raise ValueError(f"a row must fit the registers of one program: at most {MAX_ROW} elements, got {width}")
    block = triton.next_power_of_2(width)
    return block, min(max(block // 512, 1), 16)
