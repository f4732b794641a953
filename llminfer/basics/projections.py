"""The product decode is made of: a few tokens times a whole weight matrix, bound by reading the weights."""

import numpy as np
from jaxtyping import Float

from llminfer.core.cost import Cost

MAX_ROWS = 16  # beyond it a tensor-core GEMM is the right tool


def matvec(x: Float[np.ndarray, "T N"], weight: Float[np.ndarray, "N M"]) -> Float[np.ndarray, "T M"]:
    """x @ weight for the 1 to 16 rows of a decode step.

    `weight` may be a transposed view of what a checkpoint stores, [M, N]; the kernel then reads it along N.
    Raises ValueError for more rows. Book section 3.1.2.
    """
    check_rows(len(x))
    return x @ weight  # [T, N], [N, M] -> [T, M]


def matvec_cost(x: Float[np.ndarray, "T N"], weight: Float[np.ndarray, "N M"]) -> Cost:
    """2 FLOPs a weight and row, but every weight is read: some T FLOPs a byte in 16 bit, far below any ridge."""
    (tokens, _), (inputs, outputs) = x.shape, weight.shape
    return Cost(
        flops=2 * tokens * inputs * outputs,
        read_bytes=x.nbytes + weight.nbytes,
        write_bytes=tokens * outputs * x.itemsize,
    )


def check_rows(rows: int) -> None:
    """Raise ValueError unless `rows` is what a decode step brings, 1 to MAX_ROWS."""
    if not 1 <= rows <= MAX_ROWS:
        raise ValueError(f"matvec is for 1 to {MAX_ROWS} rows, as in decode, got {rows}; use x @ weight")
