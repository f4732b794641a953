"""The latencies of a request by the definitions most of the field shares: TTFT, TPOT, ITL and E2E, in seconds.

A failed request never answered, so each of its latencies is infinite. Leaving it out instead would make a server look
faster the more requests it drops. Percentiles take infinity in their stride; means become infinite, and should.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf

import numpy as np
from jaxtyping import Float

from llminfer.basics.request_traces import RequestTrace


def ttft(trace: RequestTrace) -> float:
    """Time to first token: from sending the request to the first chunk that brings a token, shown or not.

    Infinite for a failed request. Book section 3.1.8.
    """
    return inf if trace.failed else trace.token_chunks[0].time_s - trace.sent_s


def e2e(trace: RequestTrace) -> float:
    """End-to-end latency: from sending the request to the end of its stream. Infinite for a failed request.

    Book section 3.1.8.
    """
    return inf if trace.failed else trace.end_s - trace.sent_s


def tpot(trace: RequestTrace) -> float | None:
    """Time per output token after the first, (E2E - TTFT) / (N - 1): one number a request, however long it is.

    So E2E = TTFT + (N - 1)·TPOT. None for an answer of one token, which has no time between tokens; infinite for a
    failed request. Source: MLPerf inference rules, "TPOT"; vLLM's `bench serve` computes the same. Book section 3.1.8.
    """
    if trace.failed:
        return inf
    return (e2e(trace) - ttft(trace)) / (trace.output_tokens - 1) if trace.output_tokens > 1 else None


def itls(trace: RequestTrace) -> Float[np.ndarray, "G"]:
    """Inter-token latencies: the wait for each token after those of the first chunk.

    k tokens that arrive at one moment share their wait, a k-th part each: tokens are generated one after another,
    whatever way they travel. They sum up to the time between first and last token. One infinity for a failed request.
    Book section 3.1.8.
    """
    if trace.failed:
        return np.array([inf])
    arrived = Counter()  # moment -> tokens, in order
    for chunk in trace.token_chunks:
        arrived[chunk.time_s] += chunk.tokens
    shares = [(after - before) / arrived[after] for before, after in pairwise(arrived)]
    return np.repeat(shares, [arrived[after] for _, after in pairwise(arrived)])


def dispatch_delay(trace: RequestTrace) -> float:
    """How long the client held the request back. Not in any latency since sending, and yet a user waits for it.

    Book section 3.1.8.
    """
    return trace.sent_s - trace.scheduled_s


def scheduled_ttft(trace: RequestTrace) -> float:
    """`ttft` since the request was scheduled.

    A client that sends its next request only when one has returned stops asking while the server is slow, and so skips
    just the times at which users would have waited. Source: Tene 2013, "coordinated omission". Book section 3.1.8.
    """
    return dispatch_delay(trace) + ttft(trace)


def scheduled_e2e(trace: RequestTrace) -> float:
    """`e2e` since the request was scheduled; show it beside `e2e`, as their difference is the client's own doing.

    Book section 3.1.8.
    """
    return dispatch_delay(trace) + e2e(trace)


def per_request(
    latency: Callable[[RequestTrace], float | None], traces: Sequence[RequestTrace]
) -> Float[np.ndarray, "R"]:
    """One number a request, without those that have none: `per_request(tpot, traces)`.

    Requests are independent of each other, or nearly so, which is what intervals of percentiles rest on.
    Book section 3.1.8.
    """
    values = [latency(trace) for trace in traces]
    return np.array([value for value in values if value is not None], dtype=float)


def pooled_itls(traces: Sequence[RequestTrace]) -> Float[np.ndarray, "G"]:
    """The waits of all tokens of all requests in one list, as most tools print them; long answers weigh more.

    The waits of one request resemble each other, so this is no sample of independent times: thousands of tokens of ten
    requests know about as much as ten numbers do. For an interval take `per_request(mean_itl, traces)`.
    Book section 3.1.8.
    """
    return np.concatenate([itls(trace) for trace in traces]) if traces else np.array([])


def mean_itl(trace: RequestTrace) -> float | None:
    """The mean wait between the tokens of one request; None where all of them came at once. Book section 3.1.8."""
    waits = itls(trace)
    return float(np.mean(waits)) if len(waits) else None
