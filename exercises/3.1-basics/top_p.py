"""Top-p with the token that crosses, cut before the temperature.

The tail of a distribution is where a model is least to be trusted, and it is long: thousands of tokens that nobody
wants, each improbable, together not. Top-p keeps the nucleus, the fewest tokens that together reach a probability p.
Engines differ in two small things, and so in their texts. Does the token that crosses p belong to the nucleus? And is
the cut made before or after the temperature? In ours it belongs, and the cut comes first: a high temperature then mixes
what the model believed in, and cannot call the tail back.

Task: write `top_p`.

Shapes: [R, V] -> [R, V], a row for each sequence of a batch.
Book section 3.1.6. About 25 minutes.
"""

import numpy as np
from jaxtyping import Float


def top_p(probabilities: Float[np.ndarray, "R V"], p: float, temperature: float) -> Float[np.ndarray, "R V"]:
    """The probabilities with which tokens are drawn, after a cut at `p` and a `temperature`; those cut off have 0.

    1. Cut. In each row keep the fewest most probable tokens whose probabilities add up to at least `p` (0 < p <= 1). Of
       two equally probable tokens the one with the lower id counts as the more probable.
    2. Temperature. Raise what was kept to the power 1 / temperature, and divide by the sum, so that each row adds up
       to 1. At temperature 0 the most probable token, by the same rule, has it all.

    Rows come in float64 and in any order of size. Their numbers are multiples of 1/1024 that add up to 1, so that sums
    of them are exact, as are comparisons with `p`. Temperatures above 0 may be as small as 0.001.
    """
    raise NotImplementedError("your turn")
