"""Latencies of single requests: worked examples, identities, and what must not change them."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llminfer.basics.latencies import (
    dispatch_delay,
    e2e,
    itls,
    mean_itl,
    per_request,
    pooled_itls,
    scheduled_e2e,
    scheduled_ttft,
    tpot,
    ttft,
)
from llminfer.basics.request_traces import Chunk, RequestTrace

# Sent at 0; 3 tokens at 0.5 s, then one every 0.25 s: 11 tokens, the last at 2.5 s.
WORKED = RequestTrace(0.0, 0.0, (Chunk(0.5, 3), *(Chunk(0.5 + 0.25 * i) for i in range(1, 9))), 2.5)
FAILED = replace(WORKED, error="connection reset")
LATENCIES = [ttft, tpot, e2e, mean_itl, scheduled_ttft, scheduled_e2e]


SIXTEENTHS = st.integers(0, 64).map(lambda step: step / 16)  # of a second, which floats add without rounding
CHUNKS = st.tuples(SIXTEENTHS, st.integers(1, 4), st.booleans())


def plans(least_chunks: int = 1):
    """Pauses before sending, before each chunk and before the end; tokens of a chunk, and whether it shows."""
    return st.tuples(SIXTEENTHS, SIXTEENTHS, st.lists(CHUNKS, min_size=least_chunks, max_size=8), SIXTEENTHS)


def built(plan) -> RequestTrace:
    scheduled, delay, parts, rest = plan
    sent = now = scheduled + delay
    chunks = []
    for pause, tokens, shows in parts:
        now += pause
        chunks.append(Chunk(now, tokens, shows))
    return RequestTrace(scheduled, sent, tuple(chunks), now + rest)


def shifted(trace: RequestTrace, by: float) -> RequestTrace:
    chunks = tuple(replace(chunk, time_s=chunk.time_s + by) for chunk in trace.chunks)
    return replace(
        trace, scheduled_s=trace.scheduled_s + by, sent_s=trace.sent_s + by, chunks=chunks, end_s=trace.end_s + by
    )


def test_the_worked_example():
    """E2E 2.5 s for 11 tokens of which the first came at 0.5 s: 2.0 s for 10 more."""
    assert (ttft(WORKED), e2e(WORKED), tpot(WORKED)) == (0.5, 2.5, 0.2)
    assert itls(WORKED).tolist() == [0.25] * 8
    assert mean_itl(WORKED) == 0.25


def test_the_first_token_counts_even_if_it_does_not_show_and_an_empty_chunk_does_not():
    chunks = (Chunk(1.0, 0), Chunk(2.0, has_text=False), Chunk(3.0))
    assert ttft(RequestTrace(0, 0, chunks, 3.0)) == 2.0


def test_tokens_that_come_together_share_their_wait():
    trace = RequestTrace(0, 0, (Chunk(1.0), Chunk(2.0, 4), Chunk(3.0, 2)), 3.0)
    assert itls(trace).tolist() == [0.25] * 4 + [0.5] * 2


@given(plans())
def test_e2e_is_ttft_and_a_tpot_for_each_token_after_the_first(plan):
    """Published as E2E = TTFT + (N - 1) x TPOT."""
    trace = built(plan)
    if trace.output_tokens > 1:
        assert e2e(trace) == pytest.approx(ttft(trace) + (trace.output_tokens - 1) * tpot(trace))


@given(plans())
def test_waits_between_tokens_sum_to_the_time_from_first_to_last(plan):
    trace = built(plan)
    assert np.sum(itls(trace)) == pytest.approx(trace.chunks[-1].time_s - trace.chunks[0].time_s)
    with_the_first = sum(chunk.tokens for chunk in trace.chunks if chunk.time_s == trace.chunks[0].time_s)
    assert len(itls(trace)) == trace.output_tokens - with_the_first


@given(plans(), st.integers(0, 10**6))
def test_when_the_clock_began_does_not_matter(plan, by):
    trace = built(plan)
    later = shifted(trace, float(by))
    for latency in (*LATENCIES, dispatch_delay):
        assert latency(later) == pytest.approx(latency(trace))
    assert itls(later) == pytest.approx(itls(trace))


@given(plans(), st.data())
def test_splitting_a_chunk_in_two_at_the_same_moment_changes_nothing(plan, data):
    """Tokens that come at one moment came together, in however many pieces the client saw them."""
    trace = built(plan)
    place = data.draw(st.integers(0, len(trace.chunks) - 1))
    chunk = replace(trace.chunks[place], tokens=trace.chunks[place].tokens + 1)  # at least two tokens to split
    first = data.draw(st.integers(1, chunk.tokens - 1))
    halves = (replace(chunk, tokens=first), replace(chunk, tokens=chunk.tokens - first))
    whole = replace(trace, chunks=(*trace.chunks[:place], chunk, *trace.chunks[place + 1 :]))
    split = replace(trace, chunks=(*trace.chunks[:place], *halves, *trace.chunks[place + 1 :]))
    for latency in LATENCIES:
        assert latency(split) == latency(whole)
    assert itls(split).tolist() == itls(whole).tolist()


def test_one_token_has_no_time_per_token_and_no_wait():
    trace = RequestTrace(0, 0, (Chunk(0.5),), 0.6)
    assert tpot(trace) is None
    assert mean_itl(trace) is None
    assert itls(trace).tolist() == []
    assert per_request(tpot, [trace, WORKED]).tolist() == [0.2]


def test_no_time_at_all_is_a_time():
    """A stored answer may come whole: 0 s between tokens is a value, and not a missing one."""
    at_once = RequestTrace(0, 0, (Chunk(0.5, 4),), 0.5)
    assert per_request(tpot, [at_once]).tolist() == [0.0]


@pytest.mark.parametrize("latency", LATENCIES)
def test_a_failed_request_takes_for_ever(latency):
    assert latency(FAILED) == inf
    assert latency(RequestTrace(0, 0, (), 1.0)) == inf  # status 200 and no token is a failure too


def test_dropping_requests_cannot_make_a_server_look_faster():
    """100 requests, the slowest 10 of which fail: without them the 95th percentile would fall from 0.95 to 0.86 s."""
    slow = [RequestTrace(0, 0, (Chunk(i / 100),), i / 100) for i in range(1, 101)]
    failing = [replace(trace, error="timeout") if trace.end_s > 0.9 else trace for trace in slow]
    assert np.sort(per_request(e2e, slow))[94] == 0.95
    assert np.sort(per_request(e2e, failing))[94] == inf
    survivors = [trace for trace in failing if not trace.failed]
    assert np.sort(per_request(e2e, survivors))[85] == 0.86  # nearest rank: ceil(0.95 x 90) = 86


def test_pooled_waits_weigh_long_answers_more():
    long = RequestTrace(0, 0, tuple(Chunk(0.1 * i) for i in range(1, 102)), 11)
    short = RequestTrace(0, 0, (Chunk(1.0), Chunk(2.0)), 2.0)
    assert np.mean(pooled_itls([long, short])) == pytest.approx((100 * 0.1 + 1.0) / 101)
    assert np.mean(per_request(mean_itl, [long, short])) == pytest.approx((0.1 + 1.0) / 2)
    assert np.isinf(pooled_itls([long, FAILED])).sum() == 1


def test_coordinated_omission_shows_only_since_the_schedule():
    """One connection, requests due every 0.1 s, and a server that stalls for 1 s on the first and else needs 0.05 s.

    Since sending, one request in ten is slow; since the schedule, all that had to wait behind it are: the one due at
    0.1 k is sent at 1 + 0.05 (k - 1), so its answer comes 1.05 - 0.05 k after it was due.
    """
    traces, free = [], 0.0
    for k in range(10):
        due = 0.1 * k
        sent = max(due, free)
        free = sent + (1.0 if k == 0 else 0.05)
        traces.append(RequestTrace(due, sent, (Chunk(free),), free))
    assert per_request(e2e, traces) == pytest.approx([1.0] + [0.05] * 9)
    assert per_request(scheduled_e2e, traces) == pytest.approx([1.0] + [1.0 - 0.05 * k for k in range(1, 10)])
    assert np.median(per_request(scheduled_ttft, traces)) > 15 * np.median(per_request(ttft, traces))


@given(plans())
def test_latencies_since_the_schedule_are_longer_by_the_delay_of_the_client(plan):
    trace = built(plan)
    assert scheduled_e2e(trace) - e2e(trace) == pytest.approx(dispatch_delay(trace))
    assert scheduled_ttft(trace) - ttft(trace) == pytest.approx(trace.sent_s - trace.scheduled_s)
