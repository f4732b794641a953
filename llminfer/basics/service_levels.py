"""Promises about latency, and goodput: how many requests per second are served as promised."""

from collections.abc import Sequence
from dataclasses import dataclass

from llminfer.basics.latencies import scheduled_e2e, scheduled_ttft, tpot
from llminfer.basics.request_traces import RequestTrace
from llminfer.basics.throughputs import throughput


@dataclass(frozen=True)
class Slo:
    """A service level objective: the most that a request may take, in seconds; None promises nothing.

    Raises ValueError for a limit that is not positive, and when there is none. Book section 3.1.8.
    """

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None

    def __post_init__(self) -> None:
        limits = {name: limit for name, limit in vars(self).items() if limit is not None}
        if not limits:
            raise ValueError("an objective needs a limit: give at least one of ttft_s, tpot_s and e2e_s")
        for name, limit in limits.items():
            if not limit > 0:
                raise ValueError(f"{name} must be positive seconds, got {limit}")

    def met_by(self, trace: RequestTrace) -> bool | None:
        """Whether a request was served as promised, counted from when it was scheduled, as its user does.

        None: it broke no limit, but one of them cannot be told. An answer of one token has no TPOT, and is no proof
        that a server keeps its promise about it; vLLM counts it as kept, so short answers raise its goodput.
        """
        kept = [
            None if value is None else value <= limit
            for value, limit in (
                (scheduled_ttft(trace), self.ttft_s),
                (tpot(trace), self.tpot_s),
                (scheduled_e2e(trace), self.e2e_s),
            )
            if limit is not None
        ]
        if False in kept:
            return False
        return None if None in kept else True


# (model, scenario) -> limits. MLPerf asks that the 99th percentile of each stays below its limit, in a run of at least
# 600 s; here they serve as limits of single requests. Source: mlcommons/inference, mlperf.conf and inference policies.
MLPERF_SLOS: dict[tuple[str, str], Slo] = {
    ("llama2-70b", "server"): Slo(ttft_s=2.0, tpot_s=0.200),
    ("llama2-70b", "interactive"): Slo(ttft_s=0.450, tpot_s=0.040),
    ("llama3.1-8b", "server"): Slo(ttft_s=2.0, tpot_s=0.100),
    ("llama3.1-8b", "interactive"): Slo(ttft_s=0.500, tpot_s=0.030),
    ("llama3.1-405b", "server"): Slo(ttft_s=6.0, tpot_s=0.175),
    ("llama3.1-405b", "interactive"): Slo(ttft_s=4.5, tpot_s=0.080),
    ("mixtral-8x7b", "server"): Slo(ttft_s=2.0, tpot_s=0.200),
    ("deepseek-r1", "server"): Slo(ttft_s=2.0, tpot_s=0.080),
    ("deepseek-r1", "interactive"): Slo(ttft_s=1.5, tpot_s=0.015),
}


@dataclass(frozen=True)
class Goodput:
    """Requests by whether they were served as promised, and the good ones per second.

    unjudged: requests that broke nothing and yet prove nothing; see `Slo.met_by`. Book section 3.1.8.
    """

    good: int
    missed: int
    unjudged: int
    requests_per_s: float

    @property
    def share(self) -> float | None:
        """Good among the judged; None where none could be judged."""
        judged = self.good + self.missed
        return self.good / judged if judged else None


def goodput(traces: Sequence[RequestTrace], slo: Slo) -> Goodput:
    """How many requests per second of the whole run met the objective. A failed request has missed it.

    Raises ValueError without traces. Source: Zhong et al. 2024, "DistServe", section 2. Book section 3.1.8.
    """
    duration_s = throughput(traces).duration_s
    verdicts = [slo.met_by(trace) for trace in traces]
    good = verdicts.count(True)
    return Goodput(good, verdicts.count(False), verdicts.count(None), good / duration_s)
