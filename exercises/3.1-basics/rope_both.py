"""RoPE in both layouts: the same rotation, and a checkpoint that fits one of the two only.

Rotary position embedding takes the elements of a head in pairs and turns each pair by an angle that grows with the
token's position, so that a query and a key feel their distance and nothing else. Which elements make a pair is a matter
of convention: Llama, in the Hugging Face form, pairs the first half of a head with its second half; the paper and
DeepSeek pair neighbours. With the wrong one a model loads, runs, and talks nonsense.

Task: write `rope_both`.

Shapes: x [T, H, E] and positions [T] -> [T, H, E], with E even.
Book section 3.1.2. About 20 minutes.
"""

import numpy as np
from jaxtyping import Float, Int


def rope_both(
    x: Float[np.ndarray, "T H E"], positions: Int[np.ndarray, "T"], theta: float, interleaved: bool
) -> Float[np.ndarray, "T H E"]:
    """Turn pair j of every head of token t by the angle positions[t] * theta ** (-2 * j / E), for j from 0 to E/2 - 1.

    A pair (a, b) turned by an angle becomes (a cos - b sin, b cos + a sin), and goes back to where it came from. Pair j
    holds the elements j and j + E/2; if `interleaved`, 2j and 2j + 1.

    Positions reach millions: there a float32 angle is off by a hundredth of a radian and more, so compute angles in
    float64. The result has the dtype of `x`, which stays as it was.
    """
    raise NotImplementedError("your turn")
