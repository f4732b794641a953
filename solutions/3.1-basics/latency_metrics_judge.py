"""The judge's side of "TTFT, TPOT and ITL from chunks"."""

import math
from collections.abc import Iterator

import numpy as np

from llminfer.grading.spec import Case, Mutant, Tolerance, Variant

VERSION = 1
TOLERANCE = Tolerance(relative=1e-6)  # differences of float64 seconds; a mean may be taken in another order


def reference(sent_s, chunks):
    """Token by token, from the definitions."""
    times = [sent_s, *(time_s for time_s, _ in chunks)]
    if times != sorted(times) or any(tokens < 0 for _, tokens in chunks):
        raise ValueError("chunks come after the request and in order, and bring no less than 0 tokens")
    first = last = None
    waits = []
    for time_s, tokens in chunks:
        for _ in range(tokens):
            if last is None:
                first = time_s
            else:
                waits.append(time_s - last)
            last = time_s
    if first is None:
        return {"ttft_s": math.inf, "tpot_s": math.inf, "itl_s": np.array([])}
    return {
        "ttft_s": first - sent_s,
        "tpot_s": (last - first) / len(waits) if waits else None,
        "itl_s": np.array(waits, dtype=np.float64),
    }


def cases(group: str, rng: np.random.Generator) -> Iterator[Case]:
    if group == "a token a chunk":
        yield _case(10.0, [(10.5, 1), (10.6, 1), (10.8, 1), (10.9, 1)], "four tokens")
        yield _case(3.0, [(3.25, 1)], "a single token")
    elif group == "bundles":
        yield _case(0.0, [(0.5, 1), (0.8, 3), (1.0, 2)], "one token, then three, then two")
        yield _case(0.0, [(0.5, 4), (1.1, 2)], "four tokens in the first chunk")
        yield _case(7.0, [(7.5, 3)], "everything at once")
    elif group == "silent chunks":
        yield _case(1.0, [(1.1, 0), (1.6, 1), (1.7, 1)], "a chunk that only names the role")
        yield _case(1.0, [(1.5, 1), (1.7, 0), (1.8, 0), (2.0, 2)], "signs of life between tokens")
        yield _case(1.0, [(1.5, 1), (1.6, 2), (2.4, 0)], "the bill at the end")
        yield _case(1.0, [(1.5, 0), (1.6, 0)], "no token at all")
        yield _case(1.0, [], "not even a chunk")
    else:
        for least in (0, 0, 0, 1, 3):
            length = int(rng.integers(least, 3 if least == 0 else 12))
            times = 50 + np.cumsum(np.round(rng.exponential(0.1, length), 3))
            yield _case(49.5, [(float(time_s), int(rng.integers(0, 4))) for time_s in times])


def _case(sent_s, chunks, label="") -> Case:
    return Case({"sent_s": sent_s, "chunks": chunks}, label=label)


ARRIVALS = "[time_s for time_s, tokens in chunks for _ in range(tokens)]"
WAITS = "    waits = np.diff(arrivals)  # [N - 1]\n"
MEAN = "float(np.mean(waits))"
TTFT = '"ttft_s": float(arrivals[0] - sent_s)'
AFTER_SILENCE = """    waits, before = [], None
    for time_s, tokens in chunks:
        waits += ([] if before is None or not tokens else [time_s - before]) + [0.0] * (tokens - 1)
        before = time_s if tokens or before is not None else None
    waits = np.array(waits)
"""
SPREAD = """    counts = [(time_s, tokens) for time_s, tokens in chunks if tokens]
    waits = [(b[0] - a[0]) / b[1] for a, b in zip(counts, counts[1:]) for _ in range(b[1])]
    waits = np.array([0.0] * (counts[0][1] - 1) + waits)
"""

MUTANTS = (
    Mutant(
        "one more than there are gaps",
        ((MEAN, "float(np.sum(waits)) / len(arrivals)"),),
        hint="How many waits lie between N tokens?",
    ),
    Mutant(
        "a share of the whole request",
        ((MEAN, "float(arrivals[-1] - sent_s) / len(arrivals)"),),
        hint="TPOT leaves out the wait for the first token: that one is TTFT's affair.",
    ),
    Mutant(
        "a wait a chunk",
        ((WAITS, WAITS + "    waits = waits[waits > 0]\n"),),
        hint="How many numbers must itl_s have for an answer of N tokens? Count tokens, not chunks.",
    ),
    Mutant(
        "the wait spread over the chunk",
        ((WAITS, SPREAD),),
        hint="You spread the wait for a chunk over its tokens, as the library does. Asked for is what a reader sees on "
        "the screen.",
    ),
    Mutant(
        "the first chunk is one token",
        ((ARRIVALS, "[t for i, (t, n) in enumerate(chunks) for _ in range(min(n, 1) if i == 0 else n)]"),),
        hint="Not every token of the first chunk was counted.",
    ),
    Mutant(
        "the role is a token",
        ((TTFT, '"ttft_s": float(chunks[0][0] - sent_s)'),),
        hint="Something came early, but did it bring a token?",
    ),
    Mutant(
        "a sign of life ends the wait",
        ((WAITS, AFTER_SILENCE),),
        hint="Between two tokens came chunks without any. Since when has the later token been waited for?",
    ),
    Mutant(
        "until the end of the stream",
        ((MEAN, "float(chunks[-1][0] - arrivals[0]) / len(waits)"),),
        hint="The stream went on a while after the last token. TPOT is about tokens.",
    ),
)

HONEST = (
    Variant(
        "with running sums",
        source="""
import numpy as np


def latency_metrics(sent_s, chunks):
    spoken = [(float(time_s), tokens) for time_s, tokens in chunks if tokens > 0]
    total = sum(tokens for _, tokens in spoken)
    if total == 0:
        return {"ttft_s": float("inf"), "tpot_s": float("inf"), "itl_s": np.zeros(0)}
    waits = np.zeros(total - 1)
    place = spoken[0][1] - 1
    for (before, _), (time_s, tokens) in zip(spoken, spoken[1:]):
        waits[place] = time_s - before
        place += tokens
    tpot = None if total == 1 else (spoken[-1][0] - spoken[0][0]) / (total - 1)
    return {"itl_s": waits, "ttft_s": spoken[0][0] - sent_s, "tpot_s": tpot}
""",
    ),
    Variant(
        "NumPy's repeat",
        (
            ("    arrivals = ", "    times, counts = np.array(chunks, dtype=float).reshape(-1, 2).T\n    arrivals = "),
            (f"np.array({ARRIVALS}, dtype=np.float64)", "np.repeat(times, counts.astype(int))"),
        ),
    ),
)
