"""Totals per second: over a whole run, over its steady part, and what they cost."""

from dataclasses import replace

import pytest

from llminfer.basics.request_traces import Chunk, RequestTrace
from llminfer.basics.throughputs import Throughput, dollars_per_million_tokens, steady_window, throughput


def request(sent_s: float, tokens: int, pace_s: float) -> RequestTrace:
    chunks = tuple(Chunk(sent_s + pace_s * i) for i in range(1, tokens + 1))
    return RequestTrace(sent_s, sent_s, chunks, chunks[-1].time_s)


def ramped_run() -> list[RequestTrace]:
    """A request a second for 40 s, each of 40 tokens at 0.25 s: ten are in flight once the first has ended."""
    return [request(float(second), 40, 0.25) for second in range(40)]


def test_a_whole_run_is_counted_from_the_first_send_to_the_last_end():
    assert throughput([request(1.0, 4, 0.5), request(2.0, 2, 0.5)]) == Throughput(2 / 2, 6 / 2, 2.0)


def test_ramp_and_drain_make_a_run_look_slower_than_the_server_is():
    """40 tokens a second once it is steady; over the whole run 1600 tokens in 49 s."""
    run = ramped_run()
    assert steady_window(run) == (10.0, 39.0)
    assert throughput(run, steady_window(run)) == Throughput(1.0, 40.0, 29.0)
    assert throughput(run).output_tokens_per_s == pytest.approx(1600 / 49)


def test_the_window_includes_its_start_and_not_its_end():
    trace = request(0.0, 4, 1.0)
    assert throughput([trace], (1.0, 4.0)) == Throughput(0.0, 3 / 3, 3.0)
    assert throughput([trace], (2.0, 5.0)) == Throughput(1 / 3, 3 / 3, 3.0)


def test_adjoining_windows_count_every_token_once():
    run = ramped_run()
    parts = [throughput(run, (start, start + 7.0)) for start in range(0, 56, 7)]
    assert sum(part.output_tokens_per_s * part.duration_s for part in parts) == pytest.approx(1600)
    assert sum(part.requests_per_s * part.duration_s for part in parts) == pytest.approx(40)


def test_what_failed_requests_delivered_counts_for_nothing():
    good, bad = request(0.0, 4, 0.5), replace(request(0.0, 4, 0.5), error="reset")
    assert throughput([good, bad]) == throughput([good])
    assert throughput([good, bad], (0.0, 2.5)) == throughput([good], (0.0, 2.5))


def test_a_burst_has_no_steady_part():
    with pytest.raises(ValueError, match="the last request was sent at 0.0 s, and none had ended before 10.0 s"):
        steady_window([request(0.0, 40, 0.25)] * 5)


@pytest.mark.parametrize("total", [throughput, steady_window])
def test_no_traces_are_no_throughput(total):
    with pytest.raises(ValueError, match="needs traces, got none"):
        total([])


def test_a_window_without_length_is_refused():
    with pytest.raises(ValueError, match=r"got the window 2.0 s to 2.0 s"):
        throughput([request(0.0, 4, 0.5)], (2.0, 2.0))


def test_the_published_price_of_a_million_tokens():
    """LMSYS 2025: 8 GPUs at $2 an hour make 22.3k tokens/s, $0.20 per million."""
    assert dollars_per_million_tokens(2 * 8, 22_300) == pytest.approx(0.1993, abs=5e-5)


def test_input_tokens_share_the_price_by_their_weight():
    """4 input tokens at a quarter each are one token more to charge."""
    assert dollars_per_million_tokens(3.6, 100, 400) == pytest.approx(dollars_per_million_tokens(3.6, 200))
    assert dollars_per_million_tokens(3.6, 100, 400, input_weight=0) == pytest.approx(10.0)


def test_a_price_without_tokens_is_refused():
    with pytest.raises(ValueError, match="needs tokens to share it, got 0.0 out and 0.0 in"):
        dollars_per_million_tokens(1.0, 0.0)
