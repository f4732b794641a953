"""Judge's side of grouped_attention_twist: query after query, head after head, over a list of what it sees."""

import math

import numpy as np

from llminfer.grading.spec import Case, Mutant, Tolerance, Variant

VERSION = 1
# A float32 score near 30 is off by some 1e-5 after its sum, and e to its power passes that on; mistakes are above 1e-2.
TOLERANCE = Tolerance(relative=1e-4)


def reference(q, k, v, slopes, window, anchors):
    if (
        not q.ndim == k.ndim == v.ndim == 3
        or k.shape != v.shape
        or q.shape[2] != k.shape[2]
        or not q.size
        or not k.size
    ):
        raise ValueError("q [T, H, E], k and v [S, K, E]")
    (T, H, E), (S, K, _) = q.shape, k.shape
    if H % K or S < T or slopes.shape != (H,) or window < 1 or anchors < 0 or slopes.min() < 0:
        raise ValueError("K divides H, T is at most S, a slope for each head, a window of at least 1")
    out = np.zeros((T, H, E))
    for i, h in np.ndindex(T, H):
        t, g = S - T + i, h // (H // K)
        seen = sorted({*range(max(0, t - window + 1), t + 1), *range(min(anchors, t + 1))})
        scores = []
        for s in seen:
            score = math.fsum(float(a) * float(b) for a, b in zip(q[i, h], k[s, g], strict=True)) / math.sqrt(E)
            scores.append(score if s < anchors else score - float(slopes[h]) * (t - s))
        weights = [math.exp(score - max(scores)) for score in scores]
        for weight, s in zip(weights, seen, strict=True):
            out[i, h] += weight / math.fsum(weights) * v[s, g].astype(np.float64)
    return out.astype(q.dtype)


def cases(group, rng):
    if group == "groups":
        yield _case("one head, one query", rng, T=1, S=3, H=1, K=1)
        yield _case("a prompt of four, a key head for each query head", rng, T=4, S=4, H=2, K=2)
        yield _case("four query heads, two key heads", rng, T=3, S=3, H=4, K=2)
        yield _case("six query heads, one key head", rng, T=2, S=5, H=6, K=1)
    elif group == "window and anchors":
        yield _case("only itself", rng, T=4, S=4, H=2, K=1, window=1)
        yield _case("a window of three", rng, T=6, S=6, H=2, K=2, window=3)
        yield _case("a window of one, two anchors", rng, T=6, S=6, H=2, K=2, window=1, anchors=2)
        yield _case("a decode behind nine tokens", rng, T=1, S=10, H=4, K=2, window=4, anchors=2)
        yield _case("a chunk behind a text", rng, T=3, S=9, H=2, K=1, window=3, anchors=1)
        yield _case("more anchors than tokens", rng, T=3, S=3, H=2, K=1, window=1, anchors=5)
    elif group == "slopes":
        yield _case("slopes of one half and two", rng, T=5, S=5, H=2, K=1, slopes=[0.5, 2.0])
        yield _case("four slopes, two key heads", rng, T=4, S=4, H=4, K=2, slopes=[0.0, 0.25, 1.0, 4.0])
        yield _case("anchors pay nothing", rng, T=2, S=8, H=2, K=2, window=4, anchors=2, slopes=[1.0, 2.0])
        yield _case("anchors inside the window", rng, T=3, S=4, H=2, K=1, anchors=2, slopes=[1.0, 1.0])
        yield _case("scores of 10,000, in float64", rng, T=3, S=3, H=2, K=1, slopes=[0.5, 1.0], scale=1e4)
    elif group == "everything":
        for i in range(6):
            K, G = int(rng.integers(1, 4)), int(rng.integers(1, 4))
            S = int(rng.integers(1, 13))
            T = 1 if i % 2 else int(rng.integers(1, S + 1))
            window, anchors = int(rng.integers(1, 7)), int(rng.integers(0, 4))
            slopes = 2.0 ** -rng.integers(0, 5, size=K * G)
            yield _case(f"text {i + 1}", rng, T, S, K * G, K, window, anchors, slopes, E=int(rng.choice([2, 3, 8])))


def _case(label, rng, T, S, H, K, window=99, anchors=0, slopes=None, scale=1.0, E=4):
    dtype = np.float32 if scale == 1 else np.float64  # in float32 a score of 10,000 is off by 1e-3
    q, k, v = (rng.normal(size=shape).astype(dtype) for shape in ((T, H, E), (S, K, E), (S, K, E)))
    slopes = np.zeros(H, dtype) if slopes is None else np.array(slopes, dtype)
    arguments = {"q": (scale * q).astype(dtype), "k": (scale * k).astype(dtype), "v": v, "slopes": slopes}
    return Case(arguments | {"window": window, "anchors": anchors}, label=label)


SHARED = "shared = np.arange(H) // (H // K)  # [H], the key/value head of each query head"
DISTANCE = "distance = np.arange(S - T, S)[:, None] - np.arange(S)  # [T, S], how far behind its query a key lies"
VISIBLE = "visible = (distance >= 0) & ((distance < window) | anchor)  # [T, S]"
SCORES = 'scores = np.einsum("the,she->hts", q, k[:, shared]) / np.sqrt(E)  # [H, T, S]'
PENALTY = "scores -= slopes[:, None, None] * np.where(anchor, 0, distance)"
WEIGHTS = "weights = np.exp(scores - scores.max(axis=-1, keepdims=True))"
TOTAL = "weights /= weights.sum(axis=-1, keepdims=True)"

MUTANTS = (
    Mutant(
        "heads dealt out in turn",
        ((SHARED, "shared = np.arange(H) % K"),),
        hint="With one key head, or one for each query head, all is right; in between, heads read the wrong keys. For "
        "H = 4 and K = 2, which query heads belong together?",
    ),
    Mutant(
        "no scale",
        ((SCORES, 'scores = np.einsum("the,she->hts", q, k[:, shared])'),),
        hint="Your weights are too sharp: the best key gets too much. By what are dot products divided, and why?",
    ),
    Mutant(
        "divided by the width",
        ((SCORES, 'scores = np.einsum("the,she->hts", q, k[:, shared]) / E'),),
        hint="Your weights are too even: the best key gets too little. A dot product of two vectors of E elements has "
        "variance E. What is its typical size?",
    ),
    Mutant(
        "the future",
        ((VISIBLE, "visible = (distance < window) | anchor"),),
        hint="A decode is right and a prompt is not: its first tokens see what comes after them.",
    ),
    Mutant(
        "anchors from the future",
        ((VISIBLE, "visible = ((distance >= 0) & (distance < window)) | anchor"),),
        hint="Token 0 sees an anchor that has not been written yet. Which of the conditions holds for anchors too?",
    ),
    Mutant(
        "a window one too wide",
        ((VISIBLE, "visible = (distance >= 0) & ((distance <= window) | anchor)"),),
        hint="With a window of 1 a query should see its own key alone. At which distance does your window end?",
    ),
    Mutant(
        "no anchors",
        ((VISIBLE, "visible = (distance >= 0) & (distance < window)"),),
        hint="The window is right, but the first tokens drop out of sight behind it.",
    ),
    Mutant(
        "anchors in place of the window's end",
        ((VISIBLE, "visible = (distance >= 0) & ((distance < window - anchors) | anchor | (distance == 0))"),),
        hint="Anchors are seen beside the whole window. They do not take room in it.",
    ),
    Mutant(
        "queries from position 0",
        ((DISTANCE, "distance = np.arange(T)[:, None] - np.arange(S)"),),
        hint="Prompts are right, steps behind a text are not. At which position does the first of your T queries "
        "stand?",
    ),
    Mutant(
        "the far preferred",
        ((PENALTY, "scores += slopes[:, None, None] * np.where(anchor, 0, distance)"),),
        hint="A head with a steep slope should read its neighbours. Yours reads what is farthest.",
    ),
    Mutant(
        "anchors pay",
        ((PENALTY, "scores -= slopes[:, None, None] * distance"),),
        hint="Without anchors all is right. What do anchors pay for their distance?",
    ),
    Mutant(
        "anchors pay inside the window",
        ((PENALTY, "scores -= slopes[:, None, None] * np.where(distance < window, distance, 0)"),),
        hint="Anchors behind the window pay nothing, as they should. What of one that the window happens to hold?",
    ),
    Mutant(
        "a slope for each key head",
        ((PENALTY, "scores -= slopes[shared][:, None, None] * np.where(anchor, 0, distance)"),),
        hint="Some heads have the slope of another. Which index do slopes have: a query head's or a key head's?",
    ),
    Mutant(
        "no slopes",
        ((PENALTY, ""),),
        hint="Heads with a slope of 0 are right. The others should prefer what is near.",
    ),
    Mutant(
        "no largest score subtracted",
        ((WEIGHTS, "weights = np.exp(scores)"),),
        hint="All is right until scores are large; then there are NaNs. You have met this in stable_softmax.",
    ),
    Mutant(
        "softmax over the queries",
        ((TOTAL, "weights /= weights.sum(axis=-2, keepdims=True)"),),
        hint="The weights of one query should add up to 1. Over which axis did you add?",
    ),
)  # fmt: skip

LOOP = '''
import math

import numpy as np


def grouped_attention_twist(q, k, v, slopes, window, anchors):
    """Online: one key after another, with a running largest score."""
    T, H, E = q.shape
    S, K = k.shape[:2]
    out = np.zeros(q.shape, np.float64)
    for i in range(T):
        for h in range(H):
            peak, total, mixed = -math.inf, 0.0, np.zeros(E)
            for s in range(S - T + i + 1):
                distance = S - T + i - s
                if distance >= window and s >= anchors:
                    continue
                score = float(q[i, h] @ k[s, h * K // H]) / E**0.5 - (s >= anchors) * slopes[h] * distance
                new = max(peak, score)
                kept, weight = math.exp(peak - new), math.exp(score - new)
                peak, total, mixed = new, total * kept + weight, mixed * kept + weight * v[s, h * K // H]
            out[i, h] = mixed / total
    return out.astype(q.dtype)
'''

BY_THE_LIBRARY = '''
import numpy as np

from llminfer.basics import AttentionSpec, attend


def grouped_attention_twist(q, k, v, slopes, window, anchors):
    """Two more elements a head make the dot product pay for the distance: (-slope t, slope) · (1, s)."""
    (T, H, E), (S, K, _) = q.shape, k.shape
    t, s = np.arange(S - T, S), np.arange(S)
    pays = s >= anchors
    position = np.stack([-slopes * t[:, None], np.broadcast_to(slopes, (T, H))], axis=-1)
    longer_q = np.concatenate([q / np.sqrt(E), position], axis=-1)
    place = np.broadcast_to(np.stack([pays, pays * s], axis=-1)[:, None], (S, K, 2))
    longer_k = np.concatenate([k, place], axis=-1)
    distance = t[:, None] - s
    visible = (distance >= 0) & ((distance < window) | ~pays)
    return attend(longer_q, longer_k, v, AttentionSpec(K, E + 2, E, 1.0), visible).astype(q.dtype)
'''

HONEST = (
    Variant("one key after another", source=LOOP),
    Variant("the library's attention on longer heads", source=BY_THE_LIBRARY),
    Variant("keys repeated, products in their own dtype", (
        (SCORES, 'scores = q.transpose(1, 0, 2) @ np.repeat(k, H // K, axis=1).transpose(1, 2, 0)\n'
                 '    scores = scores / np.asarray(np.sqrt(E), q.dtype)'),
        (PENALTY, "scores -= slopes[:, None, None] * np.where(anchor, 0, distance).astype(q.dtype)"))),
)  # fmt: skip
