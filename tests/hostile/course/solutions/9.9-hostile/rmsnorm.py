"""A norm that many would like to get for nothing: divide each row by its root mean square, multiply by the gain.

Book section 3.1.2. About 10 minutes.
"""

import numpy as np


def rmsnorm(x: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """Rows of `x`, [T, D], each scaled to unit root mean square (eps 1e-5 inside the root), times `gain`, [D]."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * gain
