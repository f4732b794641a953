"""What `llminfer generate` does, as a function: load a model, continue a prompt, write the text as it comes."""

from io import TextIOBase
from pathlib import Path

from llminfer.basics.checkpoints import load_model, load_tokenizer
from llminfer.basics.continuations import Completion, collect
from llminfer.basics.generation import stream
from llminfer.basics.sampling_params import SamplingParams
from llminfer.basics.tokenization import Tokenizer


def write_completion(
    prompt: str,
    writer: TextIOBase,
    source: str | Path = "tiny",
    params: SamplingParams | None = None,
    chat: bool = False,
) -> Completion:
    """Continue a prompt, or with `chat` answer it, on `writer`; returns what was written, token by token.

    Source and errors as for `load_model`, and ValueError for a prompt or params that do not fit the model.
    """
    model, tokenizer = load_model(source), load_tokenizer(source)
    written = []
    for token in stream(model, tokenizer, prompt_ids(tokenizer, prompt, chat), params):
        writer.write(token.text)
        writer.flush()
        written.append(token)
    writer.write("\n")
    return collect(written)


def prompt_ids(tokenizer: Tokenizer, prompt: str, chat: bool = False) -> list[int]:
    """A text as the model expects to meet it: behind its beginning-of-text token if it has one, or as a user's turn."""
    if chat:
        return tokenizer.chat([{"role": "user", "content": prompt}])
    beginning = [] if tokenizer.bos_id is None else [tokenizer.bos_id]
    return beginning + tokenizer.encode(prompt)
