"""One text being continued: rows of logits come in, tokens and text go out, until there is a reason to stop.

Knows no model and no cache: whoever runs them, for one text or for a batch, hands in the logits of the next token.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import numpy as np
from jaxtyping import Float

from llminfer.basics.config import ModelConfig
from llminfer.basics.constraints import Constraint
from llminfer.basics.grammars import Grammar
from llminfer.basics.logit_processors import process_logits
from llminfer.basics.probabilities import log_softmax
from llminfer.basics.sampling import sample
from llminfer.basics.sampling_params import SamplingParams
from llminfer.basics.stop_strings import StopStrings
from llminfer.basics.tokenization import Tokenizer
from llminfer.core.philox import token_uniform

FinishReason = Literal["stop", "length"]
"""A stop id or stop string was met, or max_tokens or the end of the context."""


@dataclass(frozen=True)
class GeneratedToken:
    """One token, and what became certain with it.

    text:          what can be shown since the token before; may be empty, and never holds half a character.
    logprob:       log probability in the model's own distribution, before grammar, processors and temperature; NaN for
                   a token that a grammar forced, about which the model was not asked.
    top_logprobs:  the most probable tokens with their log probabilities, best first.
    finish_reason: None for all tokens but the last. Book section 3.1.1.
    """

    id: int
    text: str
    logprob: float
    top_logprobs: tuple[tuple[int, float], ...]
    finish_reason: FinishReason | None


@dataclass(frozen=True)
class Completion:
    """A finished continuation. The text ends before the stop id or stop string; the tokens include it.

    Book section 3.1.1.
    """

    tokens: tuple[GeneratedToken, ...]

    @property
    def ids(self) -> list[int]:
        return [token.id for token in self.tokens]

    @property
    def text(self) -> str:
        return "".join(token.text for token in self.tokens)

    @property
    def logprobs(self) -> list[float]:
        return [token.logprob for token in self.tokens]

    @property
    def finish_reason(self) -> FinishReason | None:
        return self.tokens[-1].finish_reason


class Continuation:
    """A prompt and what has been generated after it.

    Noise is keyed by (seed, sequence, position), so tokens depend neither on what else runs nor on how often. With a
    grammar the whole of what is generated is one of its texts, unless max_tokens or a stop string cuts it off.
    Raises ValueError for a prompt, or for tokens in the params, that do not fit the model.
    """

    def __init__(
        self,
        config: ModelConfig,
        tokenizer: Tokenizer,
        prompt: Sequence[int],
        params: SamplingParams,
        sequence: int = 0,
        grammar: Grammar | None = None,
    ) -> None:
        check_prompt(config, prompt)
        self.constraint = None if grammar is None else Constraint(grammar, tokenizer)
        named = {*config.eos_ids, *tokenizer.eos_ids}
        ending = () if grammar is None else tokenizer.eos_ids  # behind them a grammar allows nothing
        self.stop_ids = sorted(named if params.stop_ids is None else {*params.stop_ids, *ending})
        self._vocabulary = min(config.vocabulary, tokenizer.vocabulary_size)  # a model may have more rows, as padding
        check_ids("stop_ids", self.stop_ids, self._vocabulary)
        check_ids("logit_bias", list(params.logit_bias), self._vocabulary)
        for words in params.bad_words:
            check_ids("bad_words", words, self._vocabulary)
        self.params = params
        self.sequence = sequence
        self.tokens = list(prompt)  # grows
        self.finish_reason: FinishReason | None = None
        self._prompt_length = len(prompt)
        self._full_at = min(len(prompt) + params.max_tokens, config.context)
        self._decoder = tokenizer.stream()
        self._stop_strings = StopStrings(params.stop)

    def accept(self, logits: Float[np.ndarray, "V"]) -> GeneratedToken:
        """Choose the next token by the model's logits for it. Raises ValueError once the continuation is finished."""
        if self.finish_reason:
            raise ValueError(f"this continuation ended after {len(self.tokens)} tokens ({self.finish_reason})")
        logits = logits[: self._vocabulary]  # without the rows that only pad
        logprobs = log_softmax(logits)  # [V]
        token = self._choose(logits)
        return self._take(token, float(logprobs[token]), _most_probable(logprobs, self.params.logprobs))

    def forced(self) -> Iterator[GeneratedToken]:
        """Take the tokens that the grammar leaves no choice about, as long as there are any; no model is asked."""
        while self.constraint and self.finish_reason is None and (tokens := self.constraint.forced()):
            for token in tokens:
                if self.finish_reason is None:
                    yield self._take(token, float("nan"), ())

    @property
    def _generated(self) -> int:
        return len(self.tokens) - self._prompt_length

    def _take(self, token: int, logprob: float, top: tuple[tuple[int, float], ...]) -> GeneratedToken:
        if self.constraint:
            self.constraint.advance(token)
        self.tokens.append(token)
        text = self._show(token)
        return GeneratedToken(token, text, logprob, top, self.finish_reason)

    def _choose(self, logits: Float[np.ndarray, "V"]) -> int:
        params, position = self.params, len(self.tokens)
        prompt, answer = self.tokens[: self._prompt_length], self.tokens[self._prompt_length :]
        if self.constraint:
            logits = np.where(self.constraint.mask()[: len(logits)], logits, -np.inf)
        banned = self.stop_ids if len(answer) < params.min_tokens else ()
        logits = process_logits(logits, params, prompt, answer, banned)
        if params.temperature == 0:
            return sample(logits, 0)
        return sample(logits, 1, token_uniform(params.seed, self.sequence, position, len(logits)))

    def _show(self, token: int) -> str:
        """The text to show after this token; finds out whether it is the last one."""
        if token in self.stop_ids:
            self.finish_reason = "stop"
            return self._search(self._decoder.flush()) + self._stop_strings.flush()
        text = self._search(self._decoder.push(token))
        if self._stop_strings.found is not None:
            self.finish_reason = "stop"
        elif len(self.tokens) == self._full_at:
            self.finish_reason = "length"
            text += self._search(self._decoder.flush()) + self._stop_strings.flush()
        return text

    def _search(self, text: str) -> str:
        """The text up to a stop string. While min_tokens forbids to stop, all of it."""
        return text if self._generated < self.params.min_tokens else self._stop_strings.push(text)


def collect(tokens: Iterable[GeneratedToken]) -> Completion:
    """All of a stream, once it has ended. Book section 3.1.1."""
    return Completion(tuple(tokens))


def _most_probable(logprobs: Float[np.ndarray, "V"], count: int) -> tuple[tuple[int, float], ...]:
    best = np.argsort(-logprobs, kind="stable")[:count] if count else []
    return tuple((int(token), float(logprobs[token])) for token in best)


def check_prompt(config: ModelConfig, prompt: Sequence[int]) -> None:
    """Raise ValueError if the model cannot continue these tokens."""
    if not len(prompt):
        raise ValueError("the prompt has no tokens; give at least one, such as the model's beginning-of-text token")
    if len(prompt) >= config.context:
        raise ValueError(
            f"the prompt has {len(prompt)} tokens, and the context of {config.name!r} has {config.context} for prompt "
            f"and answer together; shorten it to at most {config.context - 1}"
        )
    check_ids("prompt", prompt, config.vocabulary)


def check_ids(name: str, ids: Sequence[int], vocabulary: int) -> None:
    """Raise ValueError if some of the ids are no tokens, TypeError if they are not even integers."""
    for place, token in enumerate(ids):
        if not isinstance(token, Integral) or isinstance(token, bool):
            raise TypeError(f"{name}[{place}] is {token!r}; tokens are whole numbers such as tokenizer.encode returns")
        if not 0 <= token < vocabulary:
            raise ValueError(f"{name}[{place}] is {token}; the vocabulary has the tokens 0..{vocabulary - 1}")
