"""The loop: the model scores the next token, one is chosen, it joins the text, and the model is asked again.

`generate` is that loop and nothing else. `stream` is the same loop with what users ask for around it: a cache,
sampling, reasons to stop, text as it comes, probabilities.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from llminfer.basics.config import ModelConfig
from llminfer.basics.continuations import Continuation, GeneratedToken, check_prompt
from llminfer.basics.memory import Cache, NoCache, View
from llminfer.basics.sampling import SamplingParams
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
) -> Iterator[GeneratedToken]:
    """Generate token by token; the last one says why it is the last. `params` None is `SamplingParams()`: greedy.

    `sequence` names the text in the cache and in the noise. What the cache has of it is not computed again, and stays
    there until the caller frees it.
    Raises ValueError, already at the call, for a prompt or params that do not fit the model or the cache.
    Book section 3.1.1.
    """
    continuation = Continuation(model.config, tokenizer, prompt, params or SamplingParams(), sequence)
    memory = NoCache(model.config) if cache is None else cache
    if memory.length(sequence) >= len(prompt):
        raise ValueError(
            f"the cache holds {memory.length(sequence)} tokens of sequence {sequence}, the prompt has {len(prompt)}, "
            "and at least one must be left to compute; free the sequence, or choose another one"
        )
    return _turns(model, memory, continuation)


def _turns(model: LanguageModel, memory: Cache, continuation: Continuation) -> Iterator[GeneratedToken]:
    sequence, tokens = continuation.sequence, continuation.tokens
    while continuation.finish_reason is None:
        positions = np.arange(memory.length(sequence), len(tokens))  # [T], of the tokens that the memory lacks
        view = memory.step([sequence], [len(positions)])
        hidden = model.hidden(np.array(tokens)[positions], positions, view)  # [T] -> [T, D]
        view.commit()
        yield continuation.accept(model.head(hidden[-1:])[0])  # [1, D] -> [1, V] -> [V]
