"""Softmax that survives scores of 10,000.

Softmax turns the scores of a model into probabilities: e to the power of each score, divided by the sum over its row.
Typed in as it stands, it works in every example on paper and fails in a real model: e^89 no longer fits a float32, and
in a row whose scores all lie far below zero it divides 0 by 0. One step, which changes no probability, cures both.

Task: write `stable_softmax` for scores of any size.

Shapes: [..., V] -> [..., V].
Book section 3.1.2. About 10 minutes.
"""

import numpy as np
from jaxtyping import Float


def stable_softmax(x: Float[np.ndarray, "... V"]) -> Float[np.ndarray, "... V"]:
    """e^x of each row of `x`, divided by the sum of its row. A row runs along the last axis.

    `x` is float32 or float64, with any number of axes before the last; the result has its shape and dtype, and `x`
    itself stays as it was. A score of -inf is a masked one and gets probability 0. Every row has a finite score, and
    none has a NaN or +inf.
    """
    raise NotImplementedError("your turn")
