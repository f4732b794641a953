"""One trace seen by seven tools: what each of them calls TTFT, TPOT and ITL, each function after the tool's own source.

The names are the same, the numbers are not, so a number without its tool is no measurement. Read each section beside
the table of `TOOLS` at the end. Some words in the formulas: sent is when the request left, N how many tokens its answer
has, a chunk what arrives at once. Where two tools do the same, the second uses the function of the first.

A failed request has no row here: every one of these tools leaves it out of its percentiles. (AIPerf can print a second,
"adjusted" distribution in which it counts as infinite, as `latencies` does always.)
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from llminfer.basics.request_traces import Chunk, RequestTrace

Gaps = tuple[float, ...]


def _gaps(chunks: tuple[Chunk, ...]) -> Gaps:
    return tuple(later.time_s - earlier.time_s for earlier, later in pairwise(chunks))


# vLLM, `vllm bench serve`, chat path. Source: vllm/benchmarks/serve.py and lib/endpoint_request_func.py.


def vllm_ttft(trace: RequestTrace) -> float | None:
    """First chunk of any kind - sent: one that names only the role stops the clock too."""
    return trace.chunks[0].time_s - trace.sent_s if trace.chunks else None


def vllm_e2e(trace: RequestTrace) -> float:
    """End of the stream - sent."""
    return trace.end_s - trace.sent_s


def vllm_tpot(trace: RequestTrace) -> float | None:
    """(E2E - TTFT) / (N - 1). Without a value for N <= 1, where its goodput nevertheless reads 0: see below."""
    first = vllm_ttft(trace)
    return (vllm_e2e(trace) - first) / (trace.output_tokens - 1) if trace.output_tokens > 1 else None


def vllm_tpot_for_goodput(trace: RequestTrace) -> float:
    """As `vllm_tpot`, and 0 for an answer of one token, which so keeps every promise."""
    return vllm_tpot(trace) or 0.0


def vllm_itl(trace: RequestTrace) -> Gaps:
    """Each gap between two chunks, whatever number of tokens they bring; pooled over all requests."""
    return _gaps(trace.chunks)


# SGLang, `bench_serving`. Source: python/sglang/bench_serving.py, before it divided gaps by accepted length.


def sglang_ttft(trace: RequestTrace) -> float | None:
    """First chunk with text - sent."""
    return trace.text_chunks[0].time_s - trace.sent_s if trace.text_chunks else None


def sglang_tpot(trace: RequestTrace) -> float | None:
    """(E2E - TTFT) / (N - 1), E2E to the end of the stream."""
    first = sglang_ttft(trace)
    if first is None or trace.output_tokens < 2:
        return None
    return (vllm_e2e(trace) - first) / (trace.output_tokens - 1)


def sglang_itl(trace: RequestTrace) -> Gaps:
    """Each gap between two chunks with text, pooled over all requests."""
    return _gaps(trace.text_chunks)


# AIPerf. Source: src/aiperf/metrics/types/ttft_metric.py, inter_token_latency_metric.py, request_latency_metric.py.


def aiperf_e2e(trace: RequestTrace) -> float | None:
    """Last chunk with text - sent; what comes behind it, such as usage, is not waited for."""
    return trace.text_chunks[-1].time_s - trace.sent_s if trace.text_chunks else None


def aiperf_itl(trace: RequestTrace, per_chunk_usage: bool = False) -> Gaps | None:
    """(E2E - TTFT) / (N - tokens of the first chunk): one value a request, None for N < 2.

    Tools see text, not tokens: how many the first chunk brought is known only to a run with `--per-chunk-usage` on a
    server that reports it, and else taken to be 1; so too where all tokens came in the first chunk.
    """
    chunks, total = trace.text_chunks, trace.output_tokens
    if not chunks or total < 2:
        return None
    first = chunks[0].tokens if per_chunk_usage and 0 < chunks[0].tokens < total else 1
    return ((chunks[-1].time_s - chunks[0].time_s) / (total - first),)


def aiperf_inter_chunk_latency(trace: RequestTrace) -> Gaps | None:
    """Each gap between two chunks with text, under a name of its own: "ICL"; None for fewer than two."""
    return _gaps(trace.text_chunks) or None


def aiperf_time_to_first_output_token(trace: RequestTrace) -> float | None:
    """First chunk with text of the answer, thinking skipped, - sent: "TTFO"."""
    answer = [chunk for chunk in trace.text_chunks if not chunk.reasoning]
    return answer[0].time_s - trace.sent_s if answer else None


# GuideLLM. Source: src/guidellm/schemas/base/request_stats.py.


def guidellm_tpot(trace: RequestTrace) -> float | None:
    """(last chunk with text - sent) / N: it contains the TTFT, so a long prompt raises it. None for N = 0."""
    last_s = trace.text_chunks[-1].time_s if trace.text_chunks else trace.end_s
    return (last_s - trace.sent_s) / trace.output_tokens if trace.output_tokens else None


def guidellm_itl(trace: RequestTrace) -> Gaps | None:
    """(last - first chunk with text) / (N - 1): one value a request, None for N <= 1."""
    chunks = trace.text_chunks
    if not chunks or trace.output_tokens < 2:
        return None
    return ((chunks[-1].time_s - chunks[0].time_s) / (trace.output_tokens - 1),)


# inference-perf. Source: docs/metrics.md and inference_perf/reportgen/base.py. It counts by its own tokenizer.


def inference_perf_token_times(trace: RequestTrace) -> tuple[float, ...]:
    """The time of each token, all tokens of a chunk at once."""
    return tuple(chunk.time_s for chunk in trace.text_chunks for _ in range(chunk.tokens))


def inference_perf_ttft(trace: RequestTrace) -> float | None:
    """First token - sent; None for an answer of one token, which so leaves the sample."""
    times = inference_perf_token_times(trace)
    return times[0] - trace.sent_s if len(times) > 1 else None


def inference_perf_tpot(trace: RequestTrace) -> float | None:
    """(last - first token) / (N - 1)."""
    times = inference_perf_token_times(trace)
    return (times[-1] - times[0]) / (trace.output_tokens - 1) if len(times) > 1 else None


def inference_perf_normalized_tpot(trace: RequestTrace) -> float:
    """E2E / N, "NTPOT"; 0 for an answer without tokens."""
    return vllm_e2e(trace) / trace.output_tokens if trace.output_tokens else 0.0


def inference_perf_itl(trace: RequestTrace) -> Gaps | None:
    """Each gap between two tokens, pooled: 0 within a chunk, and the whole wait on the first token of the next one."""
    times = inference_perf_token_times(trace)
    gaps = tuple(later - earlier for earlier, later in pairwise(times))
    return gaps or None


# llmperf. Source: src/llmperf/ray_clients/openai_chat_completions_client.py, token_benchmark_ray.py.


def llmperf_itl(trace: RequestTrace) -> Gaps | None:
    """The sum of all waits between chunks with text, the TTFT among them, / N: one value; GuideLLM calls it TPOT."""
    last = trace.text_chunks[-1:]
    return ((last[0].time_s - trace.sent_s) / trace.output_tokens,) if last and trace.output_tokens else None


# MLPerf Inference. Source: mlcommons/inference_policies, inference_rules.adoc; mlcommons/inference, loadgen.cc.


def mlperf_ttft(trace: RequestTrace) -> float | None:
    """First token - scheduled: the load generator counts from when a query was due, so no client can hide a queue."""
    return trace.token_chunks[0].time_s - trace.scheduled_s if trace.token_chunks else None


def mlperf_e2e(trace: RequestTrace) -> float:
    """End of the stream - scheduled."""
    return trace.end_s - trace.scheduled_s


def mlperf_tpot(trace: RequestTrace) -> float | None:
    """(E2E - TTFT) / (N - 1), the mean interval between tokens; None for N <= 1."""
    return (mlperf_e2e(trace) - mlperf_ttft(trace)) / (trace.output_tokens - 1) if trace.output_tokens > 1 else None


@dataclass(frozen=True)
class Tool:
    """How a tool measures a request; None where it has no metric of that name.

    ttft, tpot and e2e give a number or None; itl gives the values that a request adds to the tool's sample: many where
    the tool pools gaps, one where it takes a mean first. normalized_tpot contains the TTFT and says so by its name.
    Book section 3.1.8.
    """

    name: str
    ttft: Callable[[RequestTrace], float | None]
    e2e: Callable[[RequestTrace], float | None]
    tpot: Callable[[RequestTrace], float | None] | None = None
    itl: Callable[[RequestTrace], Gaps | None] | None = None
    normalized_tpot: Callable[[RequestTrace], float | None] | None = None


TOOLS: dict[str, Tool] = {
    "vllm": Tool("vLLM", vllm_ttft, vllm_e2e, vllm_tpot, vllm_itl),
    "sglang": Tool("SGLang", sglang_ttft, vllm_e2e, sglang_tpot, sglang_itl),
    "aiperf": Tool("AIPerf", sglang_ttft, aiperf_e2e, itl=aiperf_itl),
    "guidellm": Tool("GuideLLM", sglang_ttft, vllm_e2e, guidellm_tpot, guidellm_itl),
    "inference-perf": Tool(
        "inference-perf",
        inference_perf_ttft,
        vllm_e2e,
        inference_perf_tpot,
        inference_perf_itl,
        inference_perf_normalized_tpot,
    ),
    "llmperf": Tool("llmperf", sglang_ttft, vllm_e2e, itl=llmperf_itl),
    "mlperf": Tool("MLPerf", mlperf_ttft, mlperf_e2e, mlperf_tpot),
}


@dataclass(frozen=True)
class ToolReading:
    """What one tool makes of a trace, in seconds; None where it has no such metric, or no value for this request.

    Book section 3.1.8.
    """

    tool: str
    ttft_s: float | None
    tpot_s: float | None
    itl_s: Gaps | None
    e2e_s: float | None
    normalized_tpot_s: float | None


def tool_readings(trace: RequestTrace) -> list[ToolReading]:
    """A finished request by the definitions of all tools.

    Raises ValueError for a failed request, which none of them measures. Book section 3.1.8.
    """
    if trace.failed:
        raise ValueError(
            f"this request failed ({trace.error or 'no token came'}), and the tools leave such requests out; "
            "latencies.ttft and its siblings count them as infinite"
        )
    return [
        ToolReading(
            tool.name,
            tool.ttft(trace),
            tool.tpot(trace) if tool.tpot else None,
            tool.itl(trace) if tool.itl else None,
            tool.e2e(trace),
            tool.normalized_tpot(trace) if tool.normalized_tpot else None,
        )
        for tool in TOOLS.values()
    ]
