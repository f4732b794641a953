"""What a trace accepts, what follows from it, and how a real stream is timed into one."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from llminfer.basics.config import ModelConfig
from llminfer.basics.continuations import GeneratedToken
from llminfer.basics.generation import stream
from llminfer.basics.pretokenizers import GPT2
from llminfer.basics.request_traces import Chunk, RequestTrace, trace_of
from llminfer.basics.sampling_params import SamplingParams
from llminfer.basics.tokenization import Tokenizer

TRACE = RequestTrace(1.0, 1.5, (Chunk(2.0, 0, has_text=False), Chunk(2.5, 3), Chunk(3.0)), 3.5, prompt_tokens=7)


def token(text: str) -> GeneratedToken:
    return GeneratedToken(0, text, -1.0, (), None)


def test_tokens_are_counted_over_chunks():
    assert TRACE.output_tokens == 4


def test_a_chunk_without_tokens_is_no_token_chunk_and_one_without_text_no_text_chunk():
    silent = RequestTrace(0, 0, (Chunk(1, 1, has_text=False), Chunk(2, 0, has_text=True)), 3)
    assert silent.token_chunks == silent.chunks[:1]
    assert silent.text_chunks == silent.chunks[1:]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"sent_s": 0.5}, r"sent_s \(0.5\) lies before scheduled_s \(1.0\)"),
        ({"sent_s": 2.2}, r"chunks\[0\].time_s \(2.0\) lies before sent_s \(2.2\)"),
        ({"chunks": (Chunk(3.0), Chunk(2.0))}, r"chunks\[1\].time_s \(2.0\) lies before chunks\[0\].time_s \(3.0\)"),
        ({"end_s": 2.9}, r"end_s \(2.9\) lies before chunks\[2\].time_s \(3.0\).*one monotonic clock"),
        ({"chunks": (), "end_s": 1.0}, r"end_s \(1.0\) lies before sent_s"),
        ({"end_s": float("nan")}, "end_s must be a finite time in seconds, got nan"),
        ({"scheduled_s": float("-inf")}, "scheduled_s must be a finite time"),
        ({"prompt_tokens": -1}, "prompt_tokens must be at least 0, got -1"),
    ],
)
def test_a_trace_that_cannot_have_happened_is_refused(change, complaint):
    with pytest.raises(ValueError, match=complaint):
        replace(TRACE, **change)


def test_things_may_happen_at_the_same_moment():
    assert RequestTrace(1, 1, (Chunk(1), Chunk(1)), 1).output_tokens == 2


@pytest.mark.parametrize(
    ("time_s", "tokens", "complaint"),
    [(float("inf"), 1, "finite time in seconds, got inf"), (1.0, -1, "0 tokens or more, got -1")],
)
def test_a_chunk_that_cannot_be_is_refused(time_s, tokens, complaint):
    with pytest.raises(ValueError, match=complaint):
        Chunk(time_s, tokens)


def test_an_empty_answer_has_failed_even_without_an_error():
    assert replace(TRACE, chunks=(Chunk(2.0, 0),)).failed
    assert replace(TRACE, error="503").failed
    assert not TRACE.failed


def test_a_stream_is_timed_token_by_token():
    times = iter([10.0, 10.5, 10.7, 11.0, 11.1])
    trace = trace_of([token("a"), token(""), token("c")], lambda: next(times), prompt_tokens=4)
    assert trace == RequestTrace(
        10.0, 10.0, (Chunk(10.5), Chunk(10.7, has_text=False), Chunk(11.0)), 11.1, prompt_tokens=4
    )


def test_a_stream_may_have_been_scheduled_earlier():
    clock = count(10.0)
    trace = trace_of([token("a")], lambda: next(clock), scheduled_s=8.0)
    assert (trace.scheduled_s, trace.sent_s) == (8.0, 10.0)


class CountingModel:
    """Two tokens, always the first of them; counts its forward passes."""

    config = ModelConfig("two tokens", 1, 8, 1, 1, 8, feed_forward=8, vocabulary=2, context=32)
    passes = 0

    def hidden(self, tokens, positions, view):
        self.passes += 1
        return np.zeros((len(tokens), 2))

    def head(self, hidden):
        return hidden + [1.0, 0.0]


def test_a_real_stream_computes_nothing_before_its_clock_runs():
    """The prefill belongs to the time to first token. This clock ticks once a forward pass."""
    model, tokenizer = CountingModel(), Tokenizer("two", {b"a": 0, b"b": 1}, GPT2, special={}, added={})
    tokens = stream(model, tokenizer, [1, 1, 1], SamplingParams(max_tokens=4))
    trace = trace_of(tokens, lambda: float(model.passes))
    assert trace.sent_s == 0
    assert [chunk.time_s for chunk in trace.chunks] == [1, 2, 3, 4]
    assert trace.end_s == 4
