"""TTFT, TPOT and ITL of a stream whose chunks bring any number of tokens.

A client notes when each chunk of an answer came and how many tokens it brought. Often that is one. A server that
bundles, or guesses several tokens ahead, sends more at once; and some chunks bring none: the first that only names the
role, a sign of life while the server is busy, the bill at the end. Whoever counts chunks in place of tokens measures
the packaging.

    sent_s     when the request was sent, in seconds
    chunks     (time_s, tokens) in the order of arrival; tokens may be 0
    returns    {"ttft_s": ..., "tpot_s": ..., "itl_s": ...}, in seconds

With N the number of tokens of all chunks, the definitions here are

    ttft_s     from sending to the first token
    itl_s      [N - 1], float64: for each token after the first, the time since the token before it. Tokens of one chunk
               come at the same moment, so all of them but the first waited 0 s
    tpot_s     the time from the first token to the last, divided by N - 1: the mean of itl_s

An answer of one token has no time between tokens: tpot_s is None and itl_s is empty. A request without a single token
has failed: ttft_s and tpot_s are infinite (math.inf), and itl_s is empty.

Tools differ in these definitions, and the library is one of them: its itls() spreads the wait for a chunk evenly over
the tokens in it, and its tpot() runs to the end of the stream. Which of the two kinds of ITL shows a stutter, and which
hides it?

Book section 3.1.8. About 20 minutes.
"""

import math

import numpy as np
from jaxtyping import Float


def latency_metrics(
    sent_s: float, chunks: list[tuple[float, int]]
) -> dict[str, float | None | Float[np.ndarray, "N-1"]]:
    """The latencies of one request."""
    arrivals = np.array([time_s for time_s, tokens in chunks for _ in range(tokens)], dtype=np.float64)  # [N]
    if len(arrivals) == 0:
        return {"ttft_s": math.inf, "tpot_s": math.inf, "itl_s": arrivals}
    waits = np.diff(arrivals)  # [N - 1]
    mean = float(np.mean(waits)) if len(waits) else None
    return {"ttft_s": float(arrivals[0] - sent_s), "tpot_s": mean, "itl_s": waits}
