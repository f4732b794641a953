"""Embedding gather: from token ids to the vectors the first layer reads."""

import numpy as np
from jaxtyping import Float, Int

from llminfer.core.cost import Cost


def embed(table: Float[np.ndarray, "V D"], ids: Int[np.ndarray, "T"]) -> Float[np.ndarray, "T D"]:
    """The row of `table` of each token id. Raises ValueError if an id lies outside 0..V-1.

    Book section 3.1.2.
    """
    check_ids(ids, len(table))
    return table[ids]  # [T], [V, D] -> [T, D]


def embed_cost(table: Float[np.ndarray, "V D"], ids: Int[np.ndarray, "T"]) -> Cost:
    """No arithmetic: each row that is asked for is read once however often it occurs, and T rows are written."""
    row_bytes = table.shape[1] * table.itemsize
    return Cost(
        flops=0,
        read_bytes=len(np.unique(ids)) * row_bytes + ids.nbytes,
        write_bytes=ids.size * row_bytes,
    )


def check_ids(ids: Int[np.ndarray, "T"], vocabulary: int) -> None:
    """Raise ValueError if an id lies outside 0..vocabulary-1; NumPy itself would count -1 from the end."""
    if ids.size and not (0 <= ids.min() and ids.max() < vocabulary):
        raise ValueError(f"token ids must lie in 0..{vocabulary - 1}, got ids from {ids.min()} to {ids.max()}")
