"""The judge's side of "Diagnose this roofline"."""

from llminfer.grading.spec import Mutant, Tolerance, Variant

VERSION = 1
TOLERANCE = Tolerance(relative=0.02)  # answers may be read off the picture or rounded to two digits

BANDWIDTH, PEAK = 2e12, 400e12
RUNS = {  # FLOPs per byte, FLOP/s
    "A": (1, 1.8e12),
    "B": (32, 20e12),
    "C": (1000, 340e12),
    "D": (800, 100e12),
    "E": (0.25, 1.2e12),
    "F": (150, 291e12),
}


def reference(drawn):
    """From the numbers of the picture; the causes are ours to know."""
    time_s = {letter: (1 / PEAK, 1 / intensity / BANDWIDTH) for letter, (intensity, _) in RUNS.items()}  # of a FLOP
    gains = {letter: 1 / max(time_s[letter]) / flops for letter, (_, flops) in RUNS.items()}
    [impossible] = [letter for letter, gain in gains.items() if gain < 1]
    before, after = (max(1 / PEAK, 1 / (RUNS["F"][0] * batch) / BANDWIDTH) for batch in (1, 4))
    return {
        "memory_bound": "".join(sorted(letter for letter, (compute, read) in time_s.items() if read > compute)),
        "headroom": max(gains.values()),
        "larger_batch": before / after,
        "impossible": impossible + "2",
        "remedies": "cad",
    }


MUTANTS = (
    Mutant(
        "those that reach the slope",
        (('"ABEF"', '"AEF"'),),
        hint="You named the points that the memory holds back at this moment. Asked is whose roof it sets, however far "
        "below that roof they are.",
    ),
    Mutant(
        "without the impossible one",
        (('"ABEF"', '"ABF"'),),
        hint="Where a point lies from left to right has nothing to do with how high it lies.",
    ),
    Mutant(
        "all that is below the flat roof",
        (('"ABEF"', '"ABDEF"'),),
        hint="At how many FLOPs a byte is the ridge of this device? Which points lie on which side of it?",
    ),
    Mutant(
        "the peak as everybody's roof",
        (('"headroom": 400 / 100', '"headroom": 400 / 1.2'),),
        hint="A point under the slope can never reach the peak at its intensity. What is the most that it can reach?",
    ),
    Mutant(
        "the peak as the roof of a decode",
        (('"headroom": 400 / 100', '"headroom": 400 / 1.8'),),
        hint="A point under the slope can never reach the peak at its intensity: how high is the slope above it?",
    ),
    Mutant(
        "the furthest below the slope",
        (('"headroom": 400 / 100', '"headroom": 64 / 20'),),
        hint="You found the point that is furthest below the slope. What about the flat roof?",
    ),
    Mutant(
        "the slope goes on for ever",
        (('"larger_batch": 400 / 300', '"larger_batch": 4.0'),),
        hint="What is the roof at F's new intensity? Look where the slope ends.",
    ),
    Mutant(
        "as fast as the device",
        (('"larger_batch": 400 / 300', '"larger_batch": 400 / 291'),),
        hint="F keeps its share of the roof. How large is that share, before and after?",
    ),
    Mutant(
        "memory-bound for ever",
        (('"larger_batch": 400 / 300', '"larger_batch": 1.0'),),
        hint="F is memory-bound now: while it is, the same bytes serve a larger batch. How far does that carry?",
    ),
)

HONEST = (
    Variant("rounded", (("400 / 100", "4"), ("400 / 300", "1.33"))),
    Variant("read off the picture", (("400 / 100", "4.05"), ("400 / 300", "1.35"))),
)
