"""What one request went through, as its client saw it: raw times and counts, from which every latency follows.

Knows no definition of a latency. Tools disagree on those (`tool_definitions`), so what is kept is what they disagree
about: when each chunk came, how many tokens it brought, and whether a reader saw anything of it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

from llminfer.basics.continuations import GeneratedToken


@dataclass(frozen=True)
class Chunk:
    """What arrived at once.

    tokens: how many tokens it brought; 0 for a chunk that only names the role, several where a server bundles them.
    has_text: False where nothing can be shown yet, such as for the first half of a character.
    reasoning: the text belongs to the model's thinking, not to its answer.
    Raises ValueError for a time that is not finite or a negative count. Book section 3.1.8.
    """

    time_s: float
    tokens: int = 1
    has_text: bool = True
    reasoning: bool = False

    def __post_init__(self) -> None:
        if not isfinite(self.time_s):
            raise ValueError(f"a chunk needs a finite time in seconds, got {self.time_s}")
        if self.tokens < 0:
            raise ValueError(f"a chunk brings 0 tokens or more, got {self.tokens}")


@dataclass(frozen=True)
class RequestTrace:
    """A request from the moment it should have been sent to the end of its stream, in seconds of one monotonic clock.

    scheduled_s: when the load asked for it. sent_s: when the client really sent it; later where the client waited for
    a free connection, which is time a user waits too. end_s: when the stream ended, or the request failed.
    error: what went wrong, or None. A stream that ends well without a token has failed as well: see `failed`.
    Raises ValueError when times run backwards. Book section 3.1.8.
    """

    scheduled_s: float
    sent_s: float
    chunks: tuple[Chunk, ...]
    end_s: float
    prompt_tokens: int = 0
    error: str | None = None

    def __post_init__(self) -> None:
        moments = [("scheduled_s", self.scheduled_s), ("sent_s", self.sent_s)]
        moments += [(f"chunks[{place}].time_s", chunk.time_s) for place, chunk in enumerate(self.chunks)]
        moments += [("end_s", self.end_s)]
        for name, time_s in moments:
            if not isfinite(time_s):
                raise ValueError(f"{name} must be a finite time in seconds, got {time_s}")
        for (before, earlier), (after, later) in pairwise(moments):
            if later < earlier:
                raise ValueError(
                    f"{after} ({later}) lies before {before} ({earlier}): a request is scheduled, sent, answered and "
                    "ended in this order; take all times from one monotonic clock, such as time.perf_counter"
                )
        if self.prompt_tokens < 0:
            raise ValueError(f"prompt_tokens must be at least 0, got {self.prompt_tokens}")

    @property
    def output_tokens(self) -> int:
        """N: how many tokens were generated, whether they show or not."""
        return sum(chunk.tokens for chunk in self.chunks)

    @property
    def token_chunks(self) -> tuple[Chunk, ...]:
        """The chunks that brought tokens."""
        return tuple(chunk for chunk in self.chunks if chunk.tokens)

    @property
    def text_chunks(self) -> tuple[Chunk, ...]:
        """The chunks of which a reader saw something, thinking included."""
        return tuple(chunk for chunk in self.chunks if chunk.has_text)

    @property
    def failed(self) -> bool:
        """Whether there was an error, or no token at all: an empty answer is no success, whatever its status says."""
        return self.error is not None or self.output_tokens == 0


def trace_of(
    tokens: Iterable[GeneratedToken],
    clock: Callable[[], float],
    scheduled_s: float | None = None,
    prompt_tokens: int = 0,
) -> RequestTrace:
    """Run a `stream(...)` to its end and note when each token came. Every token is a chunk of its own.

    `clock` tells seconds and never runs backwards: time.perf_counter, or a clock of one's own in a test. The request
    counts as sent when this function is called, as a stream computes nothing before its first token is asked for.
    scheduled_s None: it was sent when it should be. Book section 3.1.8.
    """
    sent_s = clock()
    chunks = tuple(Chunk(clock(), has_text=bool(token.text)) for token in tokens)
    return RequestTrace(sent_s if scheduled_s is None else scheduled_s, sent_s, chunks, clock(), prompt_tokens)
