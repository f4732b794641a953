"""What a server delivers in total: requests and tokens per second, over a run or its steady part, and their price."""

from collections.abc import Sequence
from dataclasses import dataclass

from llminfer.basics.request_traces import RequestTrace


@dataclass(frozen=True)
class Throughput:
    """Completed requests and their output tokens per second, over `duration_s`. Book section 3.1.8."""

    requests_per_s: float
    output_tokens_per_s: float
    duration_s: float


def throughput(traces: Sequence[RequestTrace], window: tuple[float, float] | None = None) -> Throughput:
    """What finished requests brought per second, from the first request sent to the last one ended.

    That counts the ramp at the beginning and the drain at the end, when the server has less to do than it could: the
    shorter the run, the more it understates. `window` (such as `steady_window(traces)`) counts the tokens that arrived
    and the requests that ended from its start on and before its end. Failed requests count for nothing, nor do their
    tokens. Raises ValueError without traces, or for a window without length. Book section 3.1.8.
    """
    if not traces:
        raise ValueError("a throughput needs traces, got none")
    if window is None:
        start, end = min(trace.sent_s for trace in traces), max(trace.end_s for trace in traces)
    else:
        start, end = window
    if not end > start:
        raise ValueError(f"a throughput needs time to pass, got the window {start} s to {end} s")
    done = [trace for trace in traces if not trace.failed]
    if window is None:
        requests, tokens = len(done), sum(trace.output_tokens for trace in done)
    else:
        requests = sum(start <= trace.end_s < end for trace in done)
        tokens = sum(chunk.tokens for trace in done for chunk in trace.chunks if start <= chunk.time_s < end)
    return Throughput(requests / (end - start), tokens / (end - start), end - start)


def steady_window(traces: Sequence[RequestTrace]) -> tuple[float, float]:
    """From the first request that ended to the last one that was sent.

    Before it no request has left and the load still grows; after it none comes and the load only shrinks.
    Raises ValueError where nothing lies between, as when all requests are sent at once. Book section 3.1.8.
    """
    if not traces:
        raise ValueError("a steady part needs traces, got none")
    first_end, last_sent = min(trace.end_s for trace in traces), max(trace.sent_s for trace in traces)
    if not last_sent > first_end:
        raise ValueError(
            f"there is no steady part: the last request was sent at {last_sent} s, and none had ended before "
            f"{first_end} s; send requests for longer than one of them takes"
        )
    return first_end, last_sent


def dollars_per_million_tokens(
    dollars_per_hour: float,
    output_tokens_per_s: float,
    input_tokens_per_s: float = 0.0,
    input_weight: float = 0.25,
) -> float:
    """What a million output tokens cost on a machine of a price, when an input token is charged `input_weight` of one.

    input_tokens_per_s 0 charges the output alone; prices of 1 to 4 for input to output are a weight of 1/4.
    Raises ValueError when no token is charged. Source: inference-perf, docs/metrics.md, "cost". Book section 3.1.8.
    """
    charged = output_tokens_per_s + input_weight * input_tokens_per_s
    if not charged > 0:
        raise ValueError(f"a price needs tokens to share it, got {output_tokens_per_s} out and {input_tokens_per_s} in")
    return 1e6 * dollars_per_hour / (3600 * charged)
