"""The judge's side of "Predict, then measure".

What a student's computer can do the judge does not know, and no point depends on it. It asks whether what was measured
is complete and possible under the roofs that came with it, and whether what is concluded follows from it.
"""

import numpy as np

from llminfer.grading.spec import Mutant, Tolerance, Variant

VERSION = 1
TOLERANCE = Tolerance(relative=3e-3)  # on paper: four digits, as the context of one sequence is 2 % of a step
ROUGHLY = 0.01  # of one's own computer: three digits
NOISE = 0.8  # roofs are measured too; faster than this share of the prediction is a mistake, not luck

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
WEIGHTS = 4096 * 16384
NUMBERS = int | float | np.integer | np.floating
ROOFS = ("bandwidth", "peak_flops")
CONCLUDED = ("predicted_s", "critical_batch", "worst_batch", "gain")


def draw(rng):
    billions, weight_bytes = int(rng.integers(4, 71)), float(rng.choice([0.5, 1.0, 2.0]))
    gb_s, turn = int(rng.integers(10, 80)) * 50, int(rng.integers(30, 300))  # turn: about where computing takes over
    return {
        "billion_weights": billions,
        "weight_bytes": weight_bytes,
        "context_mb": int(rng.integers(20, 40) * billions * weight_bytes),  # 2 to 4 % of the weights
        "gb_s": gb_s,
        "tflops": round(turn * 2e-3 * gb_s / weight_bytes),
        "batches": [1, 16, int(rng.integers(300, 500)), 1024],
    }


def reference(drawn):
    """Time by time, in milliseconds first: a billion bytes at a gigabyte a second take a second."""
    step_s = []
    for batch in drawn["batches"]:
        read_ms = 1e3 * drawn["billion_weights"] * drawn["weight_bytes"] / drawn["gb_s"]
        compute_ms = 2 * batch * drawn["billion_weights"] / drawn["tflops"]
        step_s.append((max(read_ms, compute_ms) + batch * drawn["context_mb"] / drawn["gb_s"]) / 1e3)
    return {"prediction": step_s, "measurement": {}, "conclusion": {}}


def accept(case, got, expected):
    if case.label == "prediction":
        return _wrong_prediction(case.arguments, got, expected)
    complaint = _impossible(got)
    return complaint if complaint or case.label == "measurement" else _does_not_follow(got)


def _wrong_prediction(drawn, got, expected):
    got = _numbers(got, len(expected))
    if got is None:
        return f"a list of {len(expected)} positive numbers is expected, seconds for each batch"
    for batch, seconds, right in zip(drawn["batches"], got, expected, strict=True):
        if abs(seconds - right) > TOLERANCE.relative * right:
            return f"a step of batch {batch} does not take {seconds:.4g} s on the machine on paper"
    return None


def _impossible(got):
    """What is wrong with a measurement, or None."""
    wanted = (*ROOFS, "weights", "batches", "measured_s")
    if not isinstance(got, dict) or any(name not in got for name in wanted):
        return f"paste what this file prints as MEASURED: a dictionary with {', '.join(wanted)}"
    if got["weights"] != WEIGHTS or not np.array_equal(got["batches"], BATCHES):
        return "the matrix and the batches are to be those of measure()"
    roofs, measured = _numbers([got[name] for name in ROOFS], 2), _numbers(got["measured_s"], len(BATCHES))
    if roofs is None or measured is None:
        return "bandwidth, peak_flops and all of measured_s must be positive numbers, a time for each batch"
    beyond = measured / _predicted(*roofs)
    for batch, times in zip(BATCHES, beyond, strict=True):
        if times < NOISE:
            return (
                f"batch {batch} took {times:.2f} times what the roofs of your own computer allow, and nothing is "
                "faster than it can be: measure again, and let no other program run meanwhile"
            )
    if beyond.min() > 100:
        return "every time is more than a hundred times the prediction: are these seconds, bytes/s and FLOP/s?"
    if beyond.max() < 1.001 * beyond.min():
        return "every time is the same multiple of its prediction: no computer measures like that"
    return None


def _does_not_follow(got):
    """What in a conclusion does not follow from the measurement in it, or None."""
    missing = [name for name in CONCLUDED if name not in got]
    if missing:
        return f"the conclusion lacks {', '.join(missing)}"
    predicted, given = _predicted(got["bandwidth"], got["peak_flops"]), _numbers(got["predicted_s"], len(BATCHES))
    if given is None:
        return "predicted_s must be a positive number of seconds for each batch"
    for batch, seconds, right in zip(BATCHES, given, predicted, strict=True):
        if not _near(seconds, right):
            return f"predicted_s of batch {batch} does not follow from your bandwidth and peak_flops"
    turn = got["peak_flops"] * 4 / (2 * got["bandwidth"])
    if not _near(got["critical_batch"], turn):
        return "critical_batch is not where your two times are equal: 2 FLOPs a weight against its 4 bytes"
    measured = np.asarray(got["measured_s"], np.float64)
    beyond = measured / predicted
    if got["worst_batch"] not in BATCHES or beyond[BATCHES.index(got["worst_batch"])] < 0.99 * beyond.max():
        return "another batch than worst_batch is further from its prediction"
    if not _near(got["gain"], 32 * measured[0] / measured[BATCHES.index(32)]):
        return "gain compares rows a second: 32 rows in the time of batch 32 against one in the time of batch 1"
    return None


def _predicted(bandwidth, peak_flops):
    batches = np.array(BATCHES)
    return np.maximum(2 * batches * WEIGHTS / peak_flops, 4 * WEIGHTS / bandwidth)


def _near(given, right):
    return isinstance(given, NUMBERS) and abs(given - right) <= ROUGHLY * right


def _numbers(given, length):
    """As an array of positive finite numbers; None if they are not."""
    if not isinstance(given, list | tuple | np.ndarray) or not all(isinstance(number, NUMBERS) for number in given):
        return None
    numbers = np.array([float(number) for number in given])
    return numbers if len(numbers) == length and (np.isfinite(numbers) & (numbers > 0)).all() else None


def _like(rule):
    """What a mistake predicts for the machine on paper: rule(batch, computing_s, reading_s, context_s)."""

    def predicted(drawn):
        reading = drawn["billion_weights"] * drawn["weight_bytes"] / drawn["gb_s"]
        computing = 2 * drawn["billion_weights"] * 1e-3 / drawn["tflops"]
        context = drawn["context_mb"] * 1e-3 / drawn["gb_s"]
        batches = drawn["batches"]
        return {"prediction": [rule(batch, computing * batch, reading, context * batch) for batch in batches]}

    return predicted


COMPUTING = "computing_s = 2 * batch * weights / peak_flops"
READING = "reading_s = weights * weight_bytes / bandwidth"
CONTEXT = "context_s = batch * context_bytes / bandwidth"
STEP = "return max(computing_s, reading_s) + context_s"

MUTANTS = (
    Mutant(
        "one FLOP a weight",
        ((COMPUTING, COMPUTING.replace("2 * ", "")),),
        hint="Small batches are right, large ones too fast. How many FLOPs are a multiplication and an addition?",
        like=_like(lambda batch, computing, reading, context: max(computing / 2, reading) + context),
    ),
    Mutant(
        "weights read for each sequence",
        ((READING, READING.replace("= ", "= batch * ")),),
        hint="Batch 1 is right. Why does anybody batch, if every sequence reads the weights for itself?",
        like=_like(lambda batch, computing, reading, context: max(computing, batch * reading) + context),
    ),
    Mutant(
        "one after the other",
        ((STEP, "return computing_s + reading_s + context_s"),),
        hint="Does the device wait with the next product until all weights are read?",
        like=_like(lambda batch, computing, reading, context: computing + reading + context),
    ),
    Mutant(
        "one context for all",
        ((CONTEXT, CONTEXT.replace("batch * ", "")),),
        hint="Batch 1 is right. Whose keys and values are read in a step of many sequences?",
        like=_like(lambda batch, computing, reading, context: max(computing, reading) + context / batch),
    ),
    Mutant(
        "no context",
        ((STEP, "return max(computing_s, reading_s)"),),
        hint="All your times are too short, the more so the larger the batch. What besides the weights is read?",
        like=_like(lambda batch, computing, reading, context: max(computing, reading)),
    ),
    Mutant(
        "all reading beside all computing",
        ((STEP, "return max(computing_s, reading_s + context_s)"),),
        hint="Large batches are too fast. Attention begins when the weights are through: may its reading hide behind "
        "the products?",
        like=_like(lambda batch, computing, reading, context: max(computing, reading + context)),
    ),
    Mutant(
        "milliseconds",
        ((STEP, "return 1e3 * (max(computing_s, reading_s) + context_s)"),),
        hint="All your times are too long by one and the same factor, and it is a round number.",
        like=_like(lambda batch, computing, reading, context: 1e3 * (max(computing, reading) + context)),
    ),
)

INVENTED = """
MEASURED = {
    "bandwidth": 60e9,
    "peak_flops": 1.2e12,
    "weights": 4096 * 16384,
    "batches": [1, 2, 4, 8, 16, 32, 64, 128],
    "measured_s": [0.0049, 0.009, 0.0091, 0.0095, 0.011, 0.0135, 0.016, 0.021],
}


"""

HONEST = (
    Variant("another computer, whose numbers are made up", (("\ndef step_s(", INVENTED + "def step_s("),)),
    Variant("to four digits", ((STEP, 'return float(f"{max(computing_s, reading_s) + context_s:.4g}")'),)),
    Variant(
        "arrays and a tuple",
        (
            ('"prediction": on_paper', '"prediction": np.array(on_paper)'),
            ('"predicted_s": predicted,', '"predicted_s": tuple(predicted),'),
        ),
    ),
)
