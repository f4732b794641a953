"""My engine, step 1: the loop that makes a writer of a model.

A model does one thing: it scores what could come next. This file is the beginning of an engine that you will build
through the whole course. It sends the text through the model, takes the token with the best score, appends it, and
asks again. Later chapters give it a memory, batches and a second, faster model; the tokens must stay the same.

Task: write `generate`. What lies below it is given: a toy model, in which every token votes for its successors, and
what the grader calls. When you are done, run this file: `python generation_loop.py` has your loop write Python with
the bundled model. (It likes to repeat itself. Greedy texts do; section 3.1.6 brings in chance.)

Shapes: a model takes ids [T] and gives logits [T, V]; row t scores the successors of token t.
Book section 3.1.1. About 20 minutes.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

Model = Callable[[Int[np.ndarray, "T"]], Float[np.ndarray, "T V"]]


def generate(
    model: Model, prompt: list[int], max_tokens: int, context: int, eos_ids: list[int], min_tokens: int = 0
) -> list[int]:
    """The most probable continuation of `prompt`, token by token; a list of ids without the prompt's.

    - Every step sends all tokens so far through the model and takes the best successor of the last one; of equally
      good ones the lowest id.
    - The first `min_tokens` tokens of the answer are never one of `eos_ids`: the best of the other tokens is taken.
    - The answer ends with one of `eos_ids`, which belongs to it; or when it has `max_tokens` tokens; or when prompt and
      answer together fill the `context`.

    The prompt has at least one token and is left as it was; there is at least one token that is no eos id.
    """
    raise NotImplementedError("your turn")


def voting_model(votes: Int[np.ndarray, "V V"]) -> Model:
    """Given. Token i adds votes[i] to the scores of what follows, and half as much with every step that passes."""

    def logits(tokens: Int[np.ndarray, "T"]) -> Float[np.ndarray, "T V"]:
        scores = [np.zeros(len(votes))]
        for token in tokens:
            scores.append(scores[-1] / 2 + votes[token])
        return np.array(scores[1:])

    return logits


def generation_loop(
    votes: Int[np.ndarray, "V V"],
    prompt: list[int],
    max_tokens: int,
    context: int,
    eos_ids: list[int],
    min_tokens: int = 0,
) -> list[int]:
    """Given. What the grader calls: your loop around the toy model."""
    return generate(voting_model(votes), prompt, max_tokens, context, eos_ids, min_tokens)


if __name__ == "__main__":
    from llminfer.basics import NoCache, load_model, load_tokenizer

    bundled, tokenizer = load_model("tiny"), load_tokenizer("tiny")

    def tiny(tokens: Int[np.ndarray, "T"]) -> Float[np.ndarray, "T V"]:
        view = NoCache(bundled.config).step([0], [len(tokens)])
        return bundled.head(bundled.hidden(np.array(tokens), np.arange(len(tokens)), view))

    start = tokenizer.encode("class Point:\n    def __init__(self, x, y):\n")
    answer = generate(tiny, start, 24, bundled.config.context, list(bundled.config.eos_ids))
    print(tokenizer.decode(start + answer))
