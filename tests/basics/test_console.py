"""`llminfer generate` as a function: the bundled model continues a text on any writer."""

import io

import pytest

from llminfer.basics.checkpoints import load_model, load_tokenizer
from llminfer.basics.console import prompt_ids, write_completion
from llminfer.basics.generation import generate
from llminfer.basics.pretokenizers import GPT2
from llminfer.basics.sampling_params import SamplingParams
from llminfer.basics.tokenization import Tokenizer


class Recorder(io.StringIO):
    """Keeps what had been written at each flush."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def flush(self) -> None:
        self.seen.append(self.getvalue())


def test_the_text_is_written_token_by_token_and_ends_its_line():
    writer = Recorder()
    done = write_completion("import os", writer, "tiny", SamplingParams(max_tokens=5))
    assert writer.getvalue() == done.text + "\n"
    assert len(writer.seen) == len(done.tokens)
    assert done.ids == generate(load_model("tiny"), prompt_ids(load_tokenizer("tiny"), "import os"), 5)


def test_a_model_without_a_chat_template_says_so():
    with pytest.raises(ValueError, match="chat template"):
        write_completion("Hi", io.StringIO(), "tiny", chat=True)


def test_a_prompt_stands_behind_the_beginning_of_text_where_the_model_has_one():
    fields = dict(name="x", ranks={b"a": 0}, pattern=GPT2, special={"<begin>": 1}, added={})
    assert prompt_ids(Tokenizer(**fields), "aa") == [0, 0]
    assert prompt_ids(Tokenizer(**fields, bos_id=1), "aa") == [1, 0, 0]
