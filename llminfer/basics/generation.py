"""The loop: the model scores the next token, one is chosen, it joins the text, and the model is asked again.

`generate` is that loop and nothing else. `stream` is the same loop with what users ask for around it: a cache,
sampling, reasons to stop, text as it comes, probabilities. `stream_many` runs it for several texts of one prompt.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from llminfer.basics.config import ModelConfig
from llminfer.basics.continuations import Continuation, GeneratedToken, check_prompt
from llminfer.basics.grammars import Grammar
from llminfer.basics.memory import Cache, NoCache, View
from llminfer.basics.sampling_params import SamplingParams
from llminfer.basics.tokenization import Tokenizer


@runtime_checkable
class LanguageModel(Protocol):
    """What the loop needs of a model: `Transformer` is one, and so is anything that scores the next token."""

    config: ModelConfig

    def hidden(self, tokens: Int[Any, "T"], positions: Int[Any, "T"], view: View) -> Float[Any, "T D"]: ...

    def head(self, hidden: Float[Any, "R D"]) -> Float[Any, "R V"]: ...


def generate(model: LanguageModel, prompt: Sequence[int], max_tokens: int) -> list[int]:
    """The most probable continuation of a prompt, token by token: at most `max_tokens` ids, without the prompt's.

    Ends early after one of the model's eos_ids, or when its context is full. Every step computes all tokens again.
    Raises ValueError for a prompt that is empty, leaves no room in the context, or has ids outside the vocabulary.
    Book section 3.1.1.
    """
    check_prompt(model.config, prompt)
    if max_tokens < 1:
        raise ValueError(f"max_tokens must be at least 1, got {max_tokens}")
    memory = NoCache(model.config)
    tokens = list(prompt)
    while len(tokens) < min(len(prompt) + max_tokens, model.config.context):
        view = memory.step([0], [len(tokens)])
        hidden = model.hidden(np.array(tokens), np.arange(len(tokens)), view)  # [T] -> [T, D]
        view.commit()
        logits = model.head(hidden[-1:])  # [1, D] -> [1, V]: only the last token's successor is unknown
        tokens.append(int(np.argmax(logits[0])))
        if tokens[-1] in model.config.eos_ids:
            break
    return tokens[len(prompt) :]


def stream(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompt: Sequence[int],
    params: SamplingParams | None = None,
    *,
    cache: Cache | None = None,
    sequence: int = 0,
    grammar: Grammar | None = None,
) -> Iterator[GeneratedToken]:
    """Generate token by token; the last one says why it is the last. `params` None is `SamplingParams()`: greedy.

    `sequence` names the text in the cache and in the noise. What the cache has of it is not computed again, and stays
    there until the caller frees it. With a `grammar` the answer is one of its texts.
    Raises ValueError, already at the call, for a prompt or params that do not fit the model or the cache.
    Book section 3.1.1.
    """
    params = params or SamplingParams()
    if params.n > 1:
        raise ValueError(f"stream gives one text, and n is {params.n}; stream_many gives them all")
    tokens = stream_many(model, tokenizer, prompt, params, cache=cache, sequence=sequence, grammar=grammar)
    return (token for _, token in tokens)


def stream_many(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompt: Sequence[int],
    params: SamplingParams,
    *,
    cache: Cache | None = None,
    sequence: int = 0,
    grammar: Grammar | None = None,
) -> Iterator[tuple[int, GeneratedToken]]:
    """Draw `params.n` texts after one prompt at once: pairs of a text's number, from 0, and its next token.

    A step is one forward pass for all texts that have not ended: their tokens lie one after another on the flat axis.
    Text i is sequence `sequence` + i in the cache and in the noise, so it is the text that `stream` gives for that
    sequence. Each of them computes the prompt; a cache that can fork would need it only once.
    Raises as `stream` does. Book section 3.1.6.
    """
    memory = NoCache(model.config) if cache is None else cache
    continuations = [
        Continuation(model.config, tokenizer, prompt, params, sequence + i, grammar) for i in range(params.n)
    ]
    for continuation in continuations:
        _check_room(memory, continuation.sequence, prompt)
    return _turns(model, memory, continuations)


def _turns(
    model: LanguageModel, memory: Cache, continuations: Sequence[Continuation]
) -> Iterator[tuple[int, GeneratedToken]]:
    while True:
        for i, continuation in enumerate(continuations):
            for token in continuation.forced():  # the next forward pass computes them all at once
                yield i, token
        running = [(i, c) for i, c in enumerate(continuations) if c.finish_reason is None]
        if not running:
            return
        sequences = [c.sequence for _, c in running]
        stored = [memory.length(s) for s in sequences]
        lengths = [len(c.tokens) - n for (_, c), n in zip(running, stored, strict=True)]  # what the memory lacks
        tokens = np.concatenate([c.tokens[n:] for (_, c), n in zip(running, stored, strict=True)])  # [T]
        positions = np.concatenate([np.arange(n, n + new) for n, new in zip(stored, lengths, strict=True)])  # [T]
        view = memory.step(sequences, lengths)
        hidden = model.hidden(tokens, positions, view)  # [T] -> [T, D]
        view.commit()
        logits = model.head(hidden[np.cumsum(lengths) - 1])  # [R, D] -> [R, V], of each text's last token
        for (i, continuation), row in zip(running, logits, strict=True):
            yield i, continuation.accept(row)


def _check_room(memory: Cache, sequence: int, prompt: Sequence[int]) -> None:
    if memory.length(sequence) >= len(prompt):
        raise ValueError(
            f"the cache holds {memory.length(sequence)} tokens of sequence {sequence}, the prompt has {len(prompt)}, "
            "and at least one must be left to compute; free the sequence, or choose another one"
        )
