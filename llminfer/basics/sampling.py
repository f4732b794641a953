"""From logits to a token: the largest, or a draw from the softmax at some temperature.

A draw takes its noise as an argument (`core.philox.token_uniform`) and keeps no state, so whoever asks again for the
same seed, sequence and position gets the same token. What else a request may ask for is in `logit_processors`.
"""

import numpy as np
from jaxtyping import Float

from llminfer.basics.sampling_params import check_temperature

HALF_STEP = 2.0**-32  # uniforms lie on a grid of 2**-31; from its middle they are never 0


def sample(logits: Float[np.ndarray, "V"], temperature: float, uniform: Float[np.ndarray, "V"] | None = None) -> int:
    """A token drawn with probability softmax(logits / temperature); the most probable one at temperature 0.

    Gumbel-max: add independent Gumbel noise to each scaled logit and take the largest. Masked tokens (-inf) are never
    drawn, and two models that share the noise of a position often draw the same token.
    Raises ValueError for a temperature that is negative, infinite or NaN, for one above 0 without noise, and for logits
    without a finite largest.
    Sources: Gumbel 1954; Maddison, Tarlow and Minka 2014, section 2. Book section 3.1.6.
    """
    check_temperature(temperature)
    if temperature == 0:
        finite_peak(logits)
        return int(np.argmax(logits))
    if uniform is None:
        raise ValueError(
            f"temperature {temperature} draws at random and needs a uniform number per token; 0 needs none"
        )
    return int(np.argmax(apply_temperature(logits, temperature) + gumbel(uniform)))


def apply_temperature(logits: Float[np.ndarray, "V"], temperature: float) -> Float[np.ndarray, "V"]:
    """Logits divided by a temperature above 0, in float64, shifted so that the largest is 0.

    The shift changes no probability and keeps tiny temperatures from overflowing.
    Raises ValueError for a temperature of 0, negative, infinite or NaN, and for logits without a finite largest.
    Source: Ackley, Hinton and Sejnowski 1985, eq. 5. Book section 3.1.6.
    """
    check_temperature(temperature)
    if temperature == 0:
        raise ValueError("nothing can be divided by temperature 0; take the largest logit instead")
    with np.errstate(over="ignore"):  # a tiny temperature sends all but the largest to -inf, as it should
        return (logits.astype(np.float64) - finite_peak(logits)) / temperature  # [V], at most 0


def gumbel(uniform: Float[np.ndarray, "V"]) -> Float[np.ndarray, "V"]:
    """Standard Gumbel noise from uniforms in [0, 1) as Philox gives them, in float64.

    It is large where the uniform is small: near 0 their grid is fine, while near 1 float32 leaves only steps of 2**-24.
    Book section 3.1.6.
    """
    return -np.log(-np.log1p(-(uniform.astype(np.float64) + HALF_STEP)))  # [V]


def finite_peak(logits: Float[np.ndarray, "V"]) -> float:
    """The largest logit. Raises ValueError unless it is finite."""
    peak = float(np.max(logits))
    if not np.isfinite(peak):
        raise ValueError(f"the largest logit is {peak}, expected a finite one; every token is masked, or a NaN came in")
    return peak
