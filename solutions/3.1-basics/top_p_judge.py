"""Judge's side of top_p: tokens one by one from a sorted list, sums as fractions, powers by logarithms."""

import math
from fractions import Fraction

import numpy as np

from llminfer.grading.spec import Case, Mutant, Tolerance, Variant

VERSION = 1
# The cut is exact. A power of 1,000 multiplies the rounding of its base, 1e-16, by 1,000; a wrong cut shows at 1e-3.
TOLERANCE = Tolerance(relative=1e-9)


def reference(probabilities, p, temperature):
    if probabilities.ndim != 2 or not probabilities.size or probabilities.dtype != np.float64 or not 0 < p <= 1:
        raise ValueError("probabilities [R, V] in float64, p in (0, 1]")
    if np.any(probabilities * 1024 % 1) or probabilities.min() < 0 or np.any(probabilities.sum(axis=-1) != 1):
        raise ValueError("rows of multiples of 1/1024 that add up to 1")
    if not (temperature == 0 or temperature >= 0.001):
        raise ValueError("a temperature of 0, or of 0.001 at least")
    return np.array([_drawn(row.tolist(), p, temperature) for row in probabilities])


def _drawn(row, p, temperature):
    ranked = sorted(range(len(row)), key=lambda token: (-row[token], token))
    nucleus, together = [], Fraction(0)
    while together < Fraction(p):
        nucleus.append(ranked[len(nucleus)])
        together += Fraction(row[nucleus[-1]])
    if temperature == 0:
        nucleus, temperature = nucleus[:1], 1
    powers = {token: math.exp(math.log(row[token] / row[ranked[0]]) / temperature) for token in nucleus}
    return [powers.get(token, 0.0) / math.fsum(powers.values()) for token in range(len(row))]


def cases(group, rng):
    halves = [0.125, 0.5, 0.125, 0.25]
    if group == "the cut":
        yield _case("p between two sums", [halves], 0.6)
        yield _case("p met exactly", [halves], 0.75)
        yield _case("p barely missed", [halves], 0.7500001)
        yield _case("p below the most probable token", [halves], 0.01)
        yield _case("p of 1, and a token of probability 0", [[0.25, 0.0, 0.75]], 1.0)
        yield _case(
            "rows with nuclei of different size", [[0.875, 0.125, 0, 0], [0.125, 0.25, 0.125, 0.5], halves], 0.7
        )
        yield _case("two rows of eight", _rows(rng, 2, 8), 0.5001)
    elif group == "ties":
        yield _case("four equals", [[0.25] * 4], 0.5)
        yield _case("equals behind the most probable", [[0.125, 0.5, 0.125, 0.125, 0.125]], 0.7)
        yield _case("forty equals", [[0.025390625] * 16 + [0.0244140625] * 24 + [0.0078125]], 0.7)
    elif group == "the temperature":
        yield _case("colder", [halves], 0.8, 0.5)
        yield _case("hotter", [halves], 0.8, 4.0)
        yield _case("hot, and p met exactly", [halves], 0.75, 2.0)
        yield _case("temperature 0", [halves, [0.5, 0.125, 0.25, 0.125]], 0.8, 0.0)
        yield _case("temperature 0, two equals", [[0.125, 0.375, 0.125, 0.375]], 0.9, 0.0)
        yield _case("nearly 0", [halves], 0.8, 0.001)
        yield _case("nearly 0, two equals", [[0.125, 0.375, 0.125, 0.375]], 0.9, 0.001)
        yield _case("rows of twenty", _rows(rng, 2, 20), 0.8001, 1.5)
    elif group == "any batch":
        for i in range(8):
            rows = _rows(rng, int(rng.integers(1, 5)), int(rng.integers(2, 30)))
            p = float(rng.integers(1, 1025)) / 1024 - 2.0**-12  # between two sums
            if i % 2:
                p = float(np.sort(rows[0])[-int(rng.integers(1, 4)) :].sum())  # on a sum
            temperature = float(rng.choice([0.0, 0.001, 0.3, 0.7, 1.0, 1.5, 10.0]))
            yield _case(f"batch {i + 1}", rows, p, temperature)


def _case(label, rows, p, temperature=1.0):
    return Case({"probabilities": np.array(rows), "p": p, "temperature": temperature}, label=label)


def _rows(rng, rows, vocabulary):
    """Rows with a few probable tokens and a tail, as counts of 1024."""
    weights = rng.exponential(size=(rows, vocabulary)) ** 2
    return rng.multinomial(1024, weights / weights.sum(axis=-1, keepdims=True)) / 1024


ORDER = (
    'order = np.argsort(-probabilities, axis=-1, kind="stable")  # [R, V]; stable, so that equals stay in order of id'
)
ABOVE = "above = np.cumsum(descending, axis=-1) - descending  # [R, V], what the more probable ones have together"
KEPT = "kept = np.where(above < p, descending, 0)"
POWER = "kept = (kept / kept[:, :1]) ** (1 / temperature)  # the largest is 1, so no power of a row vanishes altogether"
BACK = "np.put_along_axis(drawn, order, kept / kept.sum(axis=-1, keepdims=True), axis=-1)"

MUTANTS = (
    Mutant(
        "the crossing token cut off",
        ((KEPT, "kept = np.where((above + descending <= p) | (above == 0), descending, 0)"),),
        hint="Your nuclei stop short of p. Does the token that crosses p stay in yours?",
    ),
    Mutant(
        "the crossing token cut off, the first one too",
        ((KEPT, "kept = np.where(above + descending <= p, descending, 0)"),),
        hint="Where the most probable token alone has more than p, nothing is left to draw. How much must a nucleus "
        "have?",
    ),
    Mutant(
        "one more when p is met",
        ((KEPT, "kept = np.where(above <= p, descending, 0)"),),
        hint="Where the sum meets p exactly you keep one token more than is needed. What must those before a token "
        "have "
        "for it to be needed?",
    ),
    Mutant(
        "all equals kept",
        ((KEPT, "last = np.sum(above < p, axis=-1, keepdims=True) - 1\n"
                "    kept = np.where(descending >= np.take_along_axis(descending, last, axis=-1), descending, 0)"),),
        hint="So does the library: it keeps all that equal the last. The task asks for the fewest, and says which.",
    ),
    Mutant(
        "the higher id of equals",
        ((ORDER, 'order = np.argsort(probabilities, axis=-1, kind="stable")[:, ::-1]'),),
        hint="Of equals you keep the higher ids. What does turning a sorted array round do to equals?",
    ),
    Mutant(
        "every token above a threshold",
        ((KEPT, "kept = np.where(descending >= 1 - p, descending, 0)\n    kept[:, 0] = descending[:, 0]"),),
        hint="You ask each token for its own probability. Top-p asks for what the more probable ones have together.",
    ),
    Mutant(
        "sorted",
        ((BACK, "drawn[:] = kept / kept.sum(axis=-1, keepdims=True)"),),
        hint="The right probabilities, in descending order. Which token does each belong to?",
    ),
    Mutant(
        "brought back the wrong way",
        ((BACK, "drawn[:] = np.take_along_axis(kept / kept.sum(axis=-1, keepdims=True), order, axis=-1)"),),
        hint="The right probabilities at the wrong tokens. order[i] says where the i-th came from: is that where you "
        "put "
        "it?",
    ),
    Mutant(
        "not normalised",
        ((BACK, "np.put_along_axis(drawn, order, kept, axis=-1)"),),
        hint="Your rows do not add up to 1.",
    ),
    Mutant(
        "the temperature first",
        ((ABOVE, "hot = (descending / descending[:, :1]) ** (1 / (temperature or 1e-9))\n"
                 "    hot /= hot.sum(axis=-1, keepdims=True)\n    above = np.cumsum(hot, axis=-1) - hot"),),
        hint="At temperature 1 all is right. Elsewhere the nucleus has another size than the model's own probabilities "
        "give it: what comes first here?",
    ),
    Mutant(
        "probabilities taken for logits",
        ((POWER, "kept = np.where(kept > 0, np.exp((kept - kept[:, :1]) / temperature), 0)"),),
        hint="Logits are divided by the temperature and go through a softmax. These are probabilities already: even "
        "temperature 1 changes yours.",
    ),
    Mutant(
        "the temperature upside down",
        ((POWER, "kept = (kept / kept[:, :1]) ** temperature"),),
        hint="A high temperature should even the probabilities out. Yours sharpens them.",
    ),
    Mutant(
        "a power that vanishes",
        ((POWER, "kept = kept ** (1 / temperature)"),),
        hint="At a temperature of 0.001 your row is 0 divided by 0. What is 0.5 to the power of 1,000 in float64, and "
        "what "
        "could be done before? Compare stable_softmax.",
    ),
    Mutant(
        "all of the most probable at 0",
        (("kept[:, 1:] = 0", "kept[kept < kept[:, :1]] = 0"),),
        hint="At temperature 0 one token has it all, even where two are equally probable.",
    ),
    Mutant(
        "no temperature 0",
        (("if temperature == 0:", "if False:"),),
        hint="What is 1 / temperature at 0?",
    ),
)  # fmt: skip

LOOP = """
import numpy as np


def top_p(probabilities, p, temperature):
    result = np.zeros_like(probabilities)
    for row, out in zip(probabilities, result):
        left, total = list(enumerate(row)), 0.0
        kept = []
        while total < p:
            best = max(left, key=lambda pair: pair[1])  # the first of equals
            left.remove(best)
            kept.append(best)
            total += best[1]
        if temperature == 0:
            out[kept[0][0]] = 1
            continue
        scores = np.array([np.log(probability) / temperature for _, probability in kept])
        weights = np.exp(scores - scores.max())
        for (token, _), weight in zip(kept, weights / weights.sum()):
            out[token] = weight
    return result
"""

HONEST = (
    Variant("token by token, with logarithms", source=LOOP),
    Variant("counted from the last to stay", ((KEPT,
        "last = np.argmax(above + descending >= p, axis=-1)\n"
        "    kept = np.where(np.arange(descending.shape[1]) <= last[:, None], descending, 0)"),)),
    Variant("a lexicographic sort", ((ORDER,
        "ids = np.broadcast_to(np.arange(probabilities.shape[1]), probabilities.shape)\n"
        "    order = np.lexsort((ids, -probabilities), axis=-1)"),)),
)  # fmt: skip
