"""Objectives, who meets them, and the limits of MLPerf."""

from dataclasses import replace

import pytest

from llminfer.basics.request_traces import Chunk, RequestTrace
from llminfer.basics.service_levels import MLPERF_SLOS, Goodput, Slo, goodput

# TTFT 0.5 s, TPOT 0.2 s, E2E 2.5 s.
TRACE = RequestTrace(0.0, 0.0, (Chunk(0.5, 3), Chunk(2.5, 8)), 2.5)
ONE_TOKEN = RequestTrace(0.0, 0.0, (Chunk(0.5),), 0.5)


@pytest.mark.parametrize(
    ("slo", "met"),
    [
        (Slo(ttft_s=0.5, tpot_s=0.2, e2e_s=2.5), True),  # a limit may be reached
        (Slo(ttft_s=0.49, tpot_s=1, e2e_s=9), False),
        (Slo(ttft_s=1, tpot_s=0.19, e2e_s=9), False),
        (Slo(ttft_s=1, tpot_s=1, e2e_s=2.4), False),
        (Slo(tpot_s=0.3), True),
    ],
)
def test_every_limit_must_be_kept(slo, met):
    assert slo.met_by(TRACE) is met


def test_a_user_waits_from_the_schedule_on():
    late = replace(TRACE, scheduled_s=0.0, sent_s=0.4)
    slo = Slo(ttft_s=0.3)  # 0.1 s after sending, and 0.5 s after it was due
    assert slo.met_by(replace(late, scheduled_s=0.4)) is True
    assert slo.met_by(late) is False


def test_an_answer_of_one_token_proves_nothing_about_the_time_between_tokens():
    """vLLM counts its TPOT as 0, and so as good."""
    assert Slo(ttft_s=1.0, tpot_s=0.001).met_by(ONE_TOKEN) is None
    assert Slo(ttft_s=0.1, tpot_s=0.001).met_by(ONE_TOKEN) is False
    assert Slo(ttft_s=1.0).met_by(ONE_TOKEN) is True


def test_goodput_counts_the_good_and_misses_the_failed():
    failed = replace(TRACE, error="503")
    found = goodput([TRACE, TRACE, failed, ONE_TOKEN], Slo(ttft_s=1.0, tpot_s=0.2))
    assert found == Goodput(good=2, missed=1, unjudged=1, requests_per_s=2 / 2.5)
    assert found.share == 2 / 3


def test_nothing_judged_is_no_share():
    assert goodput([ONE_TOKEN], Slo(tpot_s=1.0)).share is None


# Milliseconds as published: mlcommons/inference_policies and mlperf.conf.
PUBLISHED_MS = {
    ("llama2-70b", "server"): (2000, 200),
    ("llama2-70b", "interactive"): (450, 40),
    ("llama3.1-8b", "server"): (2000, 100),
    ("llama3.1-8b", "interactive"): (500, 30),
    ("llama3.1-405b", "server"): (6000, 175),
    ("llama3.1-405b", "interactive"): (4500, 80),
    ("deepseek-r1", "server"): (2000, 80),
    ("deepseek-r1", "interactive"): (1500, 15),
    ("mixtral-8x7b", "server"): (2000, 200),
}


def test_the_limits_of_mlperf_are_the_published_ones():
    assert {key: (1e3 * slo.ttft_s, 1e3 * slo.tpot_s) for key, slo in MLPERF_SLOS.items()} == {
        key: pytest.approx(limits) for key, limits in PUBLISHED_MS.items()
    }


def test_an_interactive_scenario_is_stricter():
    for (model, scenario), slo in MLPERF_SLOS.items():
        if scenario == "interactive":
            server = MLPERF_SLOS[model, "server"]
            assert slo.ttft_s < server.ttft_s and slo.tpot_s < server.tpot_s


def test_the_worked_request_is_served_well_enough_for_a_server_and_too_slowly_for_a_dialogue():
    assert goodput([TRACE], MLPERF_SLOS["llama2-70b", "server"]).good == 1
    assert goodput([TRACE], MLPERF_SLOS["llama2-70b", "interactive"]).missed == 1


@pytest.mark.parametrize(
    ("limits", "complaint"),
    [({}, "needs a limit"), ({"ttft_s": 0.0}, "ttft_s must be positive seconds, got 0.0"), ({"e2e_s": -1}, "e2e_s")],
)
def test_an_objective_that_promises_nothing_is_refused(limits, complaint):
    with pytest.raises(ValueError, match=complaint):
        Slo(**limits)
