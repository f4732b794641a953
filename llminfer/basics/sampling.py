"""From logits to a token: the largest, or a draw from the softmax at some temperature.

A draw takes its noise as an argument (`core.philox.token_uniform`) and keeps no state, so whoever asks again for the
same seed, sequence and position gets the same token.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

HALF_STEP = 2.0**-32  # uniforms lie on a grid of 2**-31; from its middle they are never 0

LogitsProcessor = Callable[[Sequence[int], np.ndarray], np.ndarray]
"""(prompt and tokens so far, logits [V]) -> logits [V]: a rule that bends or masks what may come next."""


@dataclass(frozen=True)
class SamplingParams:
    """How one request wants its tokens chosen, and when to stop.

    temperature: divides the logits; 0 takes the most probable token.
    seed:        keys the noise, together with sequence and position.
    max_tokens:  at most so many; min_tokens: at least so many. Before that, no stop id is chosen and no text searched.
    stop:        strings that end the text and are not part of it.
    stop_ids:    tokens that end the text; None: those that model and tokenizer name.
    logprobs:    how many of the most probable tokens to report at each position.
    processors:  applied to the logits in this order, before the temperature.

    Raises ValueError on construction for values that cannot be meant. Book section 3.1.1.
    """

    temperature: float = 0.0
    seed: int = 0
    max_tokens: int = 128
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_ids: frozenset[int] | None = None
    logprobs: int = 0
    processors: tuple[LogitsProcessor, ...] = ()

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}")
        if not 0 <= self.min_tokens <= self.max_tokens:
            raise ValueError(f"min_tokens must lie in 0..{self.max_tokens} (max_tokens), got {self.min_tokens}")
        if isinstance(self.stop, str):
            raise TypeError(f"stop is a tuple of strings, got the string {self.stop!r}; write ({self.stop!r},)")
        if "" in self.stop:
            raise ValueError(f"a stop string needs at least one character, got {self.stop}")
        if self.logprobs < 0:
            raise ValueError(f"logprobs must be at least 0, got {self.logprobs}")


def sample(logits: Float[np.ndarray, "V"], temperature: float, uniform: Float[np.ndarray, "V"] | None = None) -> int:
    """A token drawn with probability softmax(logits / temperature); the most probable one at temperature 0.

    Gumbel-max: add independent Gumbel noise to each scaled logit and take the largest. Masked tokens (-inf) are never
    drawn, and two models that share the noise of a position often draw the same token.
    Raises ValueError for a temperature that is negative, infinite or NaN, for one above 0 without noise, and for logits
    without a finite largest.
    Sources: Gumbel 1954; Maddison, Tarlow and Minka 2014, section 2. Book section 3.1.1.
    """
    check_temperature(temperature)
    peak = np.max(logits)
    if not np.isfinite(peak):
        raise ValueError(f"the largest logit is {peak}, expected a finite one; every token is masked, or a NaN came in")
    if temperature == 0:
        return int(np.argmax(logits))
    if uniform is None:
        raise ValueError(
            f"temperature {temperature} draws at random and needs a uniform number per token; 0 needs none"
        )
    with np.errstate(over="ignore"):  # a tiny temperature sends all but the largest to -inf, as it should
        scaled = (logits.astype(np.float64) - peak) / temperature  # [V], at most 0
    return int(np.argmax(scaled + gumbel(uniform)))


def gumbel(uniform: Float[np.ndarray, "V"]) -> Float[np.ndarray, "V"]:
    """Standard Gumbel noise from uniforms in [0, 1) as Philox gives them, in float64.

    It is large where the uniform is small: near 0 their grid is fine, while near 1 float32 leaves only steps of 2**-24.
    """
    return -np.log(-np.log1p(-(uniform.astype(np.float64) + HALF_STEP)))  # [V]


def check_temperature(temperature: float) -> None:
    """Raise ValueError if nothing can be drawn at this temperature."""
    if not 0 <= temperature < np.inf:
        raise ValueError(f"temperature must be a finite number of at least 0 (0: greedy), got {temperature}")
