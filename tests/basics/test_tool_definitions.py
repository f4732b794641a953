"""The same requests by the definitions of seven tools, against published numbers and hand-made ones."""

from dataclasses import replace
from statistics import median

import pytest

from llminfer.basics import tool_definitions as tools
from llminfer.basics.request_traces import Chunk, RequestTrace
from llminfer.basics.tool_definitions import TOOLS, tool_readings

# Send 0, first chunk of 3 tokens at 0.5 s, then one token every 0.25 s up to 2.5 s: N = 11.
WORKED = RequestTrace(0.0, 0.0, (Chunk(0.5, 3), *(Chunk(0.5 + 0.25 * i) for i in range(1, 9))), 2.5)


def by_tool(trace: RequestTrace) -> dict:
    return dict(zip(TOOLS, tool_readings(trace), strict=True))


def milliseconds(seconds: float) -> float:
    return round(1e3 * seconds, 1)


def test_the_worked_example_of_the_published_table():
    """vLLM TPOT 200 ms; GuideLLM TPOT 227.3, ITL 200; inference-perf TPOT 200, normalized 227.3."""
    seen = by_tool(WORKED)
    assert milliseconds(seen["vllm"].tpot_s) == 200
    assert milliseconds(seen["guidellm"].tpot_s) == 227.3
    assert milliseconds(seen["guidellm"].itl_s[0]) == 200
    assert milliseconds(seen["inference-perf"].tpot_s) == 200
    assert milliseconds(seen["inference-perf"].normalized_tpot_s) == 227.3
    assert milliseconds(seen["sglang"].tpot_s) == milliseconds(seen["mlperf"].tpot_s) == 200
    assert milliseconds(seen["llmperf"].itl_s[0]) == 227.3  # 2.5 s / 11, the TTFT among the waits


def test_aiperf_knows_the_first_chunk_only_with_usage_per_chunk():
    """250 ms with it, 200 ms without."""
    assert milliseconds(tools.aiperf_itl(WORKED, per_chunk_usage=True)[0]) == 250
    assert milliseconds(tools.aiperf_itl(WORKED)[0]) == 200


def test_one_bundle_of_tokens_gets_three_answers():
    """k = 4 tokens every 0.2 s: k·t, 0 and t, with t = 0.05 s between two tokens."""
    k, t = 4, 0.05
    trace = RequestTrace(0, 0, (Chunk(1.0), *(Chunk(1.0 + k * t * i, k) for i in range(1, 11))), 1.0 + 10 * k * t)
    assert median(tools.vllm_itl(trace)) == pytest.approx(k * t)
    assert median(tools.inference_perf_itl(trace)) == 0
    assert tools.aiperf_itl(trace) == (pytest.approx(t),)


@pytest.mark.parametrize(("k", "zero"), [(1, False), (2, False), (3, True), (4, True)])
def test_more_than_half_of_the_gaps_are_zero_from_three_tokens_a_chunk_on(k, zero):
    trace = RequestTrace(0, 0, (Chunk(1.0), *(Chunk(1.0 + i, k) for i in range(1, 10))), 10.0)
    assert (median(tools.inference_perf_itl(trace)) == 0) is zero


def test_an_answer_of_one_token_is_good_or_nothing_or_everything():
    """vLLM: no TPOT, and 0 in its goodput; AIPerf: no value; GuideLLM: E2E / 1; inference-perf: left out altogether."""
    seen = by_tool(RequestTrace(0.0, 0.0, (Chunk(0.5),), 0.5))
    assert seen["vllm"].tpot_s is None
    assert tools.vllm_tpot_for_goodput(RequestTrace(0.0, 0.0, (Chunk(0.5),), 0.5)) == 0
    assert tools.vllm_tpot_for_goodput(WORKED) == tools.vllm_tpot(WORKED)
    assert seen["aiperf"].itl_s is None
    assert (seen["guidellm"].tpot_s, seen["guidellm"].itl_s) == (0.5, None)
    found = seen["inference-perf"]
    assert (found.ttft_s, found.tpot_s, found.itl_s) == (None, None, None)
    assert found.normalized_tpot_s == 0.5
    assert seen["sglang"].tpot_s is seen["mlperf"].tpot_s is None
    assert seen["vllm"].itl_s == seen["sglang"].itl_s == ()


# Due at 0, sent at 1; the role at 2, half a character at 3, thinking at 4, the answer at 5 and 7; usage ends it at 8.
CHUNKS = (Chunk(2.0, 0, has_text=False), Chunk(3.0, has_text=False), Chunk(4.0, reasoning=True), Chunk(5.0), Chunk(7.0))
DETAILED = RequestTrace(0.0, 1.0, CHUNKS, 8.0)

# tool: TTFT, TPOT, ITL, E2E, normalized TPOT of DETAILED, with N = 4.
DETAILED_READINGS = {
    "vllm": (1.0, 6 / 3, (1.0, 1.0, 1.0, 2.0), 7.0, None),
    "sglang": (3.0, 4 / 3, (1.0, 2.0), 7.0, None),
    "aiperf": (3.0, None, (3 / 3,), 6.0, None),
    "guidellm": (3.0, 6 / 4, (3 / 3,), 7.0, None),
    "inference-perf": (3.0, 3 / 3, (1.0, 2.0), 7.0, 7 / 4),
    "llmperf": (3.0, None, (6 / 4,), 7.0, None),
    "mlperf": (3.0, 5 / 3, None, 8.0, None),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_what_each_tool_counts_from_and_to(tool):
    found = by_tool(DETAILED)[tool]
    expected = DETAILED_READINGS[tool]
    assert (found.ttft_s, found.tpot_s, found.itl_s, found.e2e_s, found.normalized_tpot_s) == expected


def test_only_mlperf_sees_what_the_client_held_back():
    later = replace(DETAILED, scheduled_s=-10.0)
    changed = [tool for tool in TOOLS if by_tool(later)[tool] != by_tool(DETAILED)[tool]]
    assert changed == ["mlperf"]
    assert by_tool(later)["mlperf"].tpot_s == by_tool(DETAILED)["mlperf"].tpot_s


def test_aiperf_has_names_for_what_others_leave_out():
    assert tools.aiperf_inter_chunk_latency(DETAILED) == (1.0, 2.0)
    assert tools.aiperf_inter_chunk_latency(RequestTrace(0, 0, (Chunk(1.0),), 1.0)) is None
    assert tools.aiperf_time_to_first_output_token(DETAILED) == 4.0
    assert tools.aiperf_time_to_first_output_token(replace(DETAILED, chunks=CHUNKS[:3])) is None


def test_aiperf_falls_back_where_all_tokens_came_at_once():
    at_once = RequestTrace(0, 0, (Chunk(1.0, 5), Chunk(2.0, 0)), 2.0)
    assert tools.aiperf_itl(at_once, per_chunk_usage=True) == tools.aiperf_itl(at_once) == (1 / 4,)


def test_splitting_a_chunk_in_two_changes_only_the_tools_that_count_chunks():
    split = replace(WORKED, chunks=(Chunk(0.5, 1), Chunk(0.5, 2), *WORKED.chunks[1:]))
    before, after = by_tool(WORKED), by_tool(split)
    assert [tool for tool in TOOLS if before[tool] != after[tool]] == ["vllm", "sglang"]
    assert after["vllm"] == replace(before["vllm"], itl_s=(0.0, *before["vllm"].itl_s))


@pytest.mark.parametrize("by", [-0.5, 1024.0])
def test_when_the_clock_began_does_not_matter(by):
    chunks = tuple(replace(chunk, time_s=chunk.time_s + by) for chunk in DETAILED.chunks)
    assert tool_readings(RequestTrace(by, 1.0 + by, chunks, 8.0 + by)) == tool_readings(DETAILED)


def test_an_answer_of_which_nothing_shows_has_values_only_where_tokens_are_counted():
    """The first token ended the text: one token, no text."""
    seen = by_tool(RequestTrace(0, 0, (Chunk(1.0, has_text=False),), 1.5))
    assert [tool for tool in TOOLS if seen[tool].ttft_s is not None] == ["vllm", "mlperf"]
    assert seen["guidellm"].tpot_s == 1.5  # from the end of the request, as there is no last token
    assert seen["aiperf"].e2e_s is seen["llmperf"].itl_s is None


@pytest.mark.parametrize(
    ("trace", "why"), [(replace(WORKED, error="503"), "503"), (RequestTrace(0, 0, (), 1.0), "no token came")]
)
def test_a_failed_request_is_measured_by_none_of_them(trace, why):
    with pytest.raises(ValueError, match=f"this request failed \\({why}\\)"):
        tool_readings(trace)
