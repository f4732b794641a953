"""Judge's side of rope_both: pair after pair, by `math` in float64."""

import math

import numpy as np

from llminfer.grading.spec import Case, Mutant, Tolerance, Variant

VERSION = 1
TOLERANCE = Tolerance(relative=1e-5)  # a float32 result rounds at 6e-8; angles in float32 miss by 1e-2 at a million


def reference(x, positions, theta, interleaved):
    if x.ndim != 3 or not x.size or x.shape[-1] % 2 or positions.shape != (len(x),) or not theta > 1:
        raise ValueError("x [T, H, E] with E even, positions [T], theta above 1")
    turned = np.array(x, np.float64)
    E = x.shape[-1]
    for (t, h), j in ((place, j) for place in np.ndindex(x.shape[:2]) for j in range(E // 2)):
        first, second = (2 * j, 2 * j + 1) if interleaved else (j, j + E // 2)
        a, b = float(x[t, h, first]), float(x[t, h, second])
        angle = int(positions[t]) * theta ** (-2 * j / E)
        turned[t, h, first] = a * math.cos(angle) - b * math.sin(angle)
        turned[t, h, second] = b * math.cos(angle) + a * math.sin(angle)
    return turned.astype(x.dtype)


def cases(group, rng):
    if group in ("halves", "interleaved"):
        interleaved = group == "interleaved"
        unit = np.array([[[1.0, 0.0]]])
        yield _case("(1, 0) at position 1", unit, [1], interleaved)
        yield _case("position 0 turns nothing", _floats(rng, 1, 2, 8), [0], interleaved)
        yield _case("four tokens, two heads", _floats(rng, 4, 2, 8), [0, 1, 2, 3], interleaved)
    elif group == "positions":
        yield _case("a decode: one token at position 37", _floats(rng, 1, 2, 4), [37], False)
        yield _case("siblings of a draft tree", _floats(rng, 4, 1, 4), [5, 6, 6, 7], True)
        yield _case("two texts in one step", _floats(rng, 4, 2, 6), [8, 9, 0, 1], False)
        yield _case("a million tokens in", _floats(rng, 2, 1, 8), [1_000_000, 1_000_001], False)
        yield _case("a million tokens in, interleaved", _floats(rng, 2, 1, 8), [1_048_577, 999_983], True, 500_000.0)
    elif group == "any shape":
        for interleaved in (False, True):
            for shape in ((1, 1, 2), (3, 1, 6), (2, 5, 10)):
                positions = rng.integers(0, 2_000_000, size=shape[0])
                theta = float(rng.choice([100.0, 10_000.0, 500_000.0]))
                label = f"{shape}, {'interleaved' if interleaved else 'halves'}"
                yield _case(label, _floats(rng, *shape), positions, interleaved, theta)
        yield _case("float64", rng.normal(size=(3, 2, 8)), rng.integers(0, 5000, size=3), bool(rng.integers(2)))


def _floats(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


def _case(label, x, positions, interleaved, theta=10_000.0):
    positions = np.asarray(positions, np.int64)
    return Case({"x": x, "positions": positions, "theta": theta, "interleaved": interleaved}, label=label)


FREQUENCIES = "frequencies = theta ** (-np.arange(0, E, 2) / E)  # [E/2], in float64"
ANGLES = "angles = positions[:, None] * frequencies  # [T, E/2]"
LAYOUT = "(slice(0, E, 2), slice(1, E, 2)) if interleaved else (slice(0, E // 2), slice(E // 2, E))"
COPY = "turned = np.empty_like(x)"
FIRST = "turned[..., first] = a * cos - b * sin"
SECOND = "turned[..., second] = b * cos + a * sin"

MUTANTS = (
    Mutant(
        "halves always",
        ((LAYOUT, "(slice(0, E // 2), slice(E // 2, E))"),),
        hint="Halves are right, interleaved is not. For E = 4 write down which elements are paired in each layout.",
    ),
    Mutant(
        "neighbours always",
        ((LAYOUT, "(slice(0, E, 2), slice(1, E, 2))"),),
        hint="Interleaved is right, halves are not. For E = 4 write down which elements are paired in each layout.",
    ),
    Mutant(
        "the other way round",
        ((FIRST, "turned[..., first] = a * cos + b * sin"), (SECOND, "turned[..., second] = b * cos - a * sin")),
        hint="You turn by the right angle in the wrong direction. Turn (1, 0) by a quarter of a circle on paper.",
    ),
    Mutant(
        "no rotation",
        ((SECOND, "turned[..., second] = b * cos - a * sin"),),
        hint="The length of a pair changes on its way, and no rotation does that. Check your signs on (1, 0) and (0, "
        "1).",
    ),
    Mutant(
        "frequencies too slow a fall",
        ((FREQUENCIES, "frequencies = theta ** (-np.arange(E // 2) / E)"),),
        hint="Pair 0 is right, the others turn too fast. For E = 8 write down the four exponents that the task asks "
        "for.",
    ),
    Mutant(
        "positions counted from 0",
        ((ANGLES, "angles = np.arange(len(x))[:, None] * frequencies"),),
        hint="Right for a text that begins at position 0 and for no other. A decode brings one token, which stands far "
        "behind the first. What tells you where?",
    ),
    Mutant(
        "positions counted from the first",
        ((ANGLES, "angles = (positions[0] + np.arange(len(x)))[:, None] * frequencies"),),
        hint="Right as long as positions run on by one. In a step that mixes two texts, or in a tree of drafts, "
        "they do not.",
    ),
    Mutant(
        "float32 angles",
        ((ANGLES, "angles = positions[:, None].astype(np.float32) * frequencies.astype(np.float32)"),),
        hint="Right near the beginning, off by a little a million tokens in. How far apart are neighbouring float32 "
        "numbers at 1,000,000, and how far is that on a circle?",
    ),
    Mutant(
        "the first written, then read",
        ((COPY, "turned = x.copy()\n    a, b = turned[..., first], turned[..., second]"),),
        hint="The first of each pair is right, the second is not. Which value of the first does its line read, the old "
        "one or the new one? A slice of an array is a window onto it.",
    ),
    Mutant(
        "results side by side",
        (("return turned", "return np.concatenate([turned[..., first], turned[..., second]], axis=-1)"),),
        hint="Interleaved, the numbers are right and their places are not: a turned pair goes back where it came from.",
    ),
    Mutant(
        "into the caller's array",
        ((COPY, "a, b, turned = a.copy(), b.copy(), x"),),
        hint="The result is right, but the caller's x has been turned as well. What did you write into?",
    ),
    Mutant(
        "float64 comes back",
        ((COPY, "turned = np.empty(x.shape)"),),
        hint="Angles in float64 are as they should be; the result should have the dtype of x.",
    ),
)

COMPLEX = """
import numpy as np


def rope_both(x, positions, theta, interleaved):
    T, H, E = x.shape
    pairs = x.reshape(T, H, E // 2, 2) if interleaved else np.stack(np.split(x, 2, axis=-1), axis=-1)
    turned = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(
        1j * np.outer(positions, float(theta) ** -np.linspace(0, 1, E // 2, endpoint=False))
    )[:, None]
    parts = (turned.real, turned.imag)
    result = np.stack(parts, axis=-1).reshape(x.shape) if interleaved else np.concatenate(parts, axis=-1)
    return result.astype(x.dtype)
"""

ROTATE_HALF = '''
import numpy as np


def rope_both(x, positions, theta, interleaved):
    """As Hugging Face writes it: x cos + rotate_half(x) sin, interleaved after a permutation there and back."""
    E = x.shape[-1]
    if interleaved:
        there = np.r_[0:E:2, 1:E:2]
        turned = rope_both(x[..., there], positions, theta, False)
        return turned[..., np.argsort(there)]
    angles = positions.astype(np.float64)[:, None, None] * (1 / theta ** (np.arange(0, E, 2) / E))
    cos, sin = (np.concatenate([f(angles)] * 2, axis=-1).astype(x.dtype) for f in (np.cos, np.sin))
    rotated = np.concatenate([-x[..., E // 2 :], x[..., : E // 2]], axis=-1)
    return x * cos + rotated * sin
'''

LOOP = """
import numpy as np


def rope_both(x, positions, theta, interleaved):
    result = np.zeros(x.shape)
    E = x.shape[2]
    for t in range(x.shape[0]):
        for j in range(E // 2):
            angle = positions[t] / theta ** (2 * j / E)
            turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            pair = [2 * j, 2 * j + 1] if interleaved else [j, j + E // 2]
            result[t][:, pair] = x[t][:, pair] @ turn.T
    return result.astype(x.dtype)
"""

HONEST = (
    Variant("complex numbers", source=COMPLEX),
    Variant("rotate_half, and a permutation", source=ROTATE_HALF),
    Variant("a loop over tokens and pairs", source=LOOP),
)
