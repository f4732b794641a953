"""The judge's side of "Bug hunt: a layer that runs and is wrong"."""

from collections.abc import Iterator

import numpy as np

from llminfer.grading.spec import Case, Mutant, Tolerance, Variant

VERSION = 1
# Sums of some 30 float32 terms in another order differ by 1e-6; the smallest of the mistakes changes a tenth.
TOLERANCE = Tolerance(relative=1e-4, dtype="same")


def reference(x, weights, heads, kv_heads, eps=1e-5):
    """Token by token and head by head, in float64."""
    if heads % kv_heads:
        raise ValueError(f"heads must be a multiple of kv_heads, got {heads} and {kv_heads}")
    after = x.astype(np.float64)
    width = weights["qkv"].shape[1] // (heads + 2 * kv_heads)
    queries, keys = heads * width, kv_heads * width
    normed = np.array([_normed(row, weights["attention_norm"], eps) for row in after])
    projected = normed @ weights["qkv"]
    for token in range(len(x)):
        found = []
        for head in range(heads):
            query = projected[token, head * width : (head + 1) * width]
            first = queries + head * kv_heads // heads * width
            seen_keys = projected[: token + 1, first : first + width]
            seen_values = projected[: token + 1, first + keys : first + keys + width]
            likely = np.exp(seen_keys @ query / width**0.5)
            found.append(likely @ seen_values / likely.sum())
        after[token] += np.concatenate(found) @ weights["output"]
        gate, up = np.split(_normed(after[token], weights["feed_forward_norm"], eps) @ weights["gate_up"], 2)
        after[token] += gate * up / (1 + np.exp(-gate)) @ weights["down"]
    return after.astype(x.dtype)


def _normed(row, gain, eps):
    return row * gain / (row @ row / len(row) + eps) ** 0.5


def cases(group: str, rng: np.random.Generator) -> Iterator[Case]:
    if group == "one token":
        yield _case(rng, 1, 1, 1, label="one token, one head")
        yield _case(rng, 1, 2, 2, label="one token, two heads")
    elif group == "one head":
        yield _case(rng, 3, 1, 1, silent=True, label="three tokens, attention silenced")
        yield _case(rng, 3, 1, 1, label="three tokens, one head")
    elif group == "several heads":
        yield _case(rng, 3, 2, 2, label="a key/value head for every query head")
        yield _case(rng, 3, 4, 2, label="two query heads to a key/value head")
    else:
        for kv_heads, share in ((1, 3), (2, 3), (3, 2)):
            tokens = int(rng.integers(2, 8))
            yield _case(rng, tokens, kv_heads * share, kv_heads, width=int(rng.integers(2, 7)), eps=0.1)


def _case(rng, tokens, heads, kv_heads, *, width=4, eps=1e-5, silent=False, label="") -> Case:
    stream, inner = 6, 10
    shapes = {
        "qkv": (stream, (heads + 2 * kv_heads) * width),
        "output": (heads * width, stream),
        "gate_up": (stream, 2 * inner),
        "down": (inner, stream),
    }
    weights = {name: rng.standard_normal(shape).astype(np.float32) * np.float32(0.7) for name, shape in shapes.items()}
    for name in ("attention_norm", "feed_forward_norm"):
        weights[name] = rng.uniform(0.5, 2.0, stream).astype(np.float32)
    if silent:
        weights["output"][:] = 0
    sizes = np.exp(rng.uniform(-1.5, 1.5, (tokens, 1)))  # tokens of unequal length: each must be normed by its own
    x = (rng.standard_normal((tokens, stream)) * sizes).astype(np.float32)
    return Case({"x": x, "weights": weights, "heads": heads, "kv_heads": kv_heads, "eps": eps}, label=label)


FIRST_NORM = '    normed = rmsnorm(x, weights["attention_norm"], eps)\n'
SECOND_NORM = '    normed = rmsnorm(x, weights["feed_forward_norm"], eps)\n'
REPEAT_K = "    k = np.repeat(k, heads // kv_heads, axis=0)  # [H, T, E]\n"
REPEAT_V = "    v = np.repeat(v, heads // kv_heads, axis=0)\n"
SCORES = "    scores = q @ k.swapaxes(1, 2) / np.sqrt(width).astype(normed.dtype)  # [H, T, T]\n"
MASK = "np.triu(np.ones((tokens, tokens), dtype=bool), k=1)"
MIXED = "    mixed = softmax(np.where(hidden, -1e9, scores)) @ v  # [H, T, T] @ [H, T, E] -> [H, T, E]\n"
MERGED = "mixed.swapaxes(0, 1).reshape(tokens, heads * width)"

PLANTED = (  # in the order in which the groups bring them to light
    Mutant(
        "adds to the normed copy",
        (
            (FIRST_NORM, FIRST_NORM.replace("normed", "x", 1)),
            ("attention(normed,", "attention(x,"),
            (SECOND_NORM, SECOND_NORM.replace("normed", "x", 1)),
            ("swiglu(normed @", "swiglu(x @"),
        ),
        hint='With "output" and "down" full of zeros both blocks find nothing. What should the layer return then?',
    ),
    Mutant(
        "one mean for all tokens",
        (("np.mean(x * x, axis=-1, keepdims=True)", "np.mean(x * x)"),),
        hint="Silence attention, and every token is on its own. Yet its result changes when another token grows.",
    ),
    Mutant(
        "hides the token from itself",
        ((MASK, MASK.replace(", k=1", "")),),
        hint="Print the weights that the softmax gives to a sequence of three tokens. Row 0 should be 1, 0, 0.",
    ),
    Mutant(
        "heads and tokens run into each other",
        ((MERGED, "mixed.reshape(tokens, heads * width)"),),
        hint="One head is right, several are not. Fill the result of head h with the number h: what should a row of "
        "the result of attention look like, and what does it look like?",
    ),
    Mutant(
        "deals key/value heads out in turn",
        (
            (REPEAT_K, "    k = np.tile(k, (heads // kv_heads, 1, 1))  # [H, T, E]\n"),
            (REPEAT_V, "    v = np.tile(v, (heads // kv_heads, 1, 1))\n"),
        ),
        hint="For H = 4 and K = 2, write down which key/value head each query head should read, by h // G. Then let "
        "the keys of head k all be the number k, and print what each query head gets.",
    ),
)

MUTANTS = (
    *PLANTED,
    *(  # what a student has who mended the first few: the hint is for the next one
        Mutant(
            f"{PLANTED[i].name}, and what comes after it", sum((m.edits for m in PLANTED[i:]), ()), hint=PLANTED[i].hint
        )
        for i in range(len(PLANTED) - 1)
    ),
    Mutant(
        "scores are not scaled",
        ((SCORES, "    scores = q @ k.swapaxes(1, 2)\n"),),
        hint="Attention is too sure of itself. By what are scores divided before the softmax?",
    ),
    Mutant(
        "mask upside down",
        ((MASK, MASK.replace("triu", "tril").replace("k=1", "k=-1")),),
        hint="Take a token away at the end of the sequence. Which results change, and which should?",
    ),
)

HONEST = (
    Variant(
        "key/value heads are not repeated",
        (
            (REPEAT_K, "    q = q.reshape(kv_heads, heads // kv_heads, tokens, width)\n"),
            (REPEAT_V, ""),
            (SCORES, "    scores = np.einsum('kgte,kse->kgts', q, k) / np.sqrt(width).astype(normed.dtype)\n"),
            (MIXED, "    mixed = np.einsum('kgts,kse->tkge', softmax(np.where(hidden, -1e9, scores)), v)\n"),
            (MERGED, "mixed.reshape(tokens, heads * width)"),
        ),
    ),
    Variant(
        "in float64 inside, with -inf as mask",
        (
            (FIRST_NORM, "    narrow, x = x.dtype, x.astype(np.float64)\n" + FIRST_NORM),
            ("    return x + swiglu(", "    x = x + swiglu("),
            ('@ weights["down"]  # [T, F] @ [F, D]\n', '@ weights["down"]\n    return x.astype(narrow)\n'),
            ("-1e9", "-np.inf"),
        ),
    ),
    Variant(
        "a loop over heads",
        (
            (REPEAT_K, "    results = []\n    for head in range(heads):\n        shared = head * kv_heads // heads\n"),
            (REPEAT_V, "        scores = q[head] @ k[shared].T / np.sqrt(width).astype(normed.dtype)\n"),
            (SCORES, "        hidden = np.arange(tokens) > np.arange(tokens)[:, None]\n"),
            (f"    hidden = {MASK}\n", "        attended = softmax(np.where(hidden, -1e9, scores))\n"),
            (MIXED, "        results.append(attended @ v[shared])\n"),
            (MERGED, "np.concatenate(results, axis=1)"),
        ),
    ),
)
