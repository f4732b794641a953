"""What a request says about how its tokens are chosen and when its text ends. `logit_processors` does what it says."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real

import numpy as np

LogitsProcessor = Callable[[Sequence[int], np.ndarray], np.ndarray]
"""(prompt and tokens so far, logits [V]) -> logits [V]: a rule that bends or masks what may come next."""


@dataclass(frozen=True)
class SamplingParams:
    """How one request wants its tokens chosen, and when to stop. What is not said is off.

    temperature:        divides the logits; 0 takes the most probable token.
    top_k:              draws only from the k most probable tokens; None: from all.
    top_p:              draws only from the most probable tokens that together reach probability p (the nucleus).
    min_p:              draws only from tokens at least min_p times as probable as the most probable one.
    repetition_penalty: above 1 makes tokens of prompt and answer less likely; divides or multiplies their logits.
    presence_penalty:   subtracted once from the logit of every token that the answer has.
    frequency_penalty:  subtracted from a token's logit each time that the answer has it.
    logit_bias:         token -> what is added to its logit; -inf forbids it.
    bad_words:          sequences of tokens that are never completed.
    seed:               keys the noise, together with sequence and position.
    n:                  how many texts to draw; `stream_many` gives them.
    max_tokens:         at most so many; min_tokens: at least so many. Before that, no stop id is chosen and no text
                        searched.
    stop:               strings that end the text and are not part of it.
    stop_ids:           tokens that end the text; None: those that model and tokenizer name.
    logprobs:           how many of the most probable tokens to report at each position.
    processors:         the caller's own rules, applied to the logits in this order, before the temperature.

    Raises ValueError on construction for values that cannot be meant, and TypeError for fractions, truth values and
    texts where numbers belong. Book section 3.1.6.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict, hash=False)
    bad_words: tuple[tuple[int, ...], ...] = ()
    seed: int = 0
    n: int = 1
    max_tokens: int = 128
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_ids: frozenset[int] | None = None
    logprobs: int = 0
    processors: tuple[LogitsProcessor, ...] = ()

    def __post_init__(self) -> None:
        self._check_kinds()
        check_temperature(self.temperature)
        self._check_truncation()
        self._check_bending()
        self._check_ending()
        if self.n < 1:
            raise ValueError(f"n must be at least 1, got {self.n}")
        if self.n > 1 and self.temperature == 0:
            raise ValueError(f"{self.n} texts of temperature 0 would all be the same; raise temperature, or take n=1")
        if self.logprobs < 0:
            raise ValueError(f"logprobs must be at least 0, got {self.logprobs}")

    def _check_kinds(self) -> None:
        for name in ("seed", "n", "max_tokens", "min_tokens", "logprobs"):
            check_whole(name, getattr(self, name))
        for name in ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real):
                raise TypeError(f"{name} must be a number, got {value!r}")
        if not -(2**63) <= self.seed < 2**63:
            raise ValueError(f"seed must fit in 64 bits, -2**63..2**63 - 1, got {self.seed}")

    def _check_truncation(self) -> None:
        if self.top_k is not None:
            check_top_k(self.top_k)
        check_top_p(self.top_p)
        check_min_p(self.min_p)

    def _check_bending(self) -> None:
        check_repetition_penalty(self.repetition_penalty)
        for name in ("presence_penalty", "frequency_penalty"):
            if not -2 <= getattr(self, name) <= 2:
                raise ValueError(f"{name} must lie in -2..2 (0: off), got {getattr(self, name)}")
        for token, bias in self.logit_bias.items():
            if not bias < np.inf:
                raise ValueError(f"logit_bias of token {token} must be a number or -inf (forbidden), got {bias}")
        for words in self.bad_words:
            if isinstance(words, int):
                raise TypeError(f"bad_words holds sequences of tokens, got the token {words}; write ({words},)")
            if not words:
                raise ValueError(f"a bad word needs at least one token, got {self.bad_words}")

    def _check_ending(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}")
        if not 0 <= self.min_tokens <= self.max_tokens:
            raise ValueError(f"min_tokens must lie in 0..{self.max_tokens} (max_tokens), got {self.min_tokens}")
        if isinstance(self.stop, str):
            raise TypeError(f"stop is a tuple of strings, got the string {self.stop!r}; write ({self.stop!r},)")
        if "" in self.stop:
            raise ValueError(f"a stop string needs at least one character, got {self.stop}")


def check_temperature(temperature: float) -> None:
    """Raise ValueError if nothing can be drawn at this temperature."""
    if not 0 <= temperature < np.inf:
        raise ValueError(f"temperature must be a finite number of at least 0 (0: greedy), got {temperature}")


def check_whole(name: str, value: int) -> None:
    """Raise TypeError unless this is a whole number; True and False are none, though Python counts with them."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}")


def check_top_k(k: int) -> None:
    """Raise ValueError unless k tokens can be kept, and TypeError unless k is a whole number."""
    check_whole("top_k", k)
    if k < 1:
        raise ValueError(f"top_k must be at least 1 (1: greedy; None: off), got {k}")


def check_top_p(p: float) -> None:
    """Raise ValueError unless some tokens reach probability p."""
    if not 0 < p <= 1:
        raise ValueError(f"top_p must lie above 0 and at most at 1 (1: off), got {p}")


def check_min_p(p: float) -> None:
    """Raise ValueError unless the most probable token is always at least p times as probable as itself."""
    if not 0 <= p <= 1:
        raise ValueError(f"min_p must lie in 0..1 (0: off), got {p}")


def check_repetition_penalty(penalty: float) -> None:
    """Raise ValueError unless logits can be divided by this penalty and multiplied with it."""
    if not 0 < penalty < np.inf:
        raise ValueError(f"repetition_penalty must be a finite number above 0 (1: off), got {penalty}")
