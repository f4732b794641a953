"""Judge's side of decode_step_cost: layer after layer, matrix after matrix, key after key."""

import numpy as np

from llminfer.grading.spec import Case, Mutant, Tolerance, Variant

VERSION = 1
TOLERANCE = Tolerance(relative=1e-9, dtype="any")  # counts; only the order of a floating sum may differ
KEYS = ("layers", "width", "heads", "kv_heads", "head_width", "experts", "expert_width", "vocabulary", "window")


def reference(config, contexts, chosen, weight_bits, kv_bytes):
    _check(config, contexts, chosen, weight_bits, kv_bytes)
    D, H, K, E = (config[key] for key in ("width", "heads", "kv_heads", "head_width"))
    V, anchors, B = config["vocabulary"], config["anchors"], len(contexts)
    texts = [np.arange(c + 1) for c in contexts.tolist()]  # positions, the last one the new token's
    seen = [int(np.sum((s[-1] - s < config["window"]) | (s < anchors))) for s in texts]
    flops = read = written = 0
    for layer in range(config["layers"]):
        matrices = [D * H * E, D * H, H * E * D, D * config["experts"]]  # queries, gates, output, router
        if layer % 2 == 0:
            matrices += [D * K * E, D * K * E]
            written += B * 2 * K * E
        expert = 3 * D * config["expert_width"]
        flops += sum(2 * B * matrix for matrix in matrices) + 2 * expert * chosen[layer].size
        flops += sum(H * (2 * E + 2 * E) * keys for keys in seen)
        read += weight_bits / 8 * (sum(matrices) + 2 * D + expert * len(set(chosen[layer].ravel().tolist())))
        read += kv_bytes * sum(2 * K * E * (keys - 1) for keys in seen)
    flops += 2 * B * D * V
    read += weight_bits / 8 * (V * D + B * D + D)
    return {"flops": float(flops), "read_bytes": float(read), "write_bytes": float(kv_bytes * written)}


def _check(config, contexts, chosen, weight_bits, kv_bytes):
    if set(config) != {*KEYS, "anchors"} or min(config[key] for key in KEYS) < 1 or config["anchors"] < 0:
        raise ValueError("a config with all its keys")
    if config["layers"] % 2 or config["heads"] % config["kv_heads"] or min(weight_bits, kv_bytes) <= 0:
        raise ValueError("pairs of layers, whole groups, sizes above 0")
    shape = (config["layers"], len(contexts))
    if contexts.ndim != 1 or chosen.ndim != 3 or chosen.shape[:2] != shape or not chosen.size or contexts.min() < 0:
        raise ValueError("contexts [B] and chosen [L, B, k]")
    ordered = np.sort(chosen, axis=-1)
    if (ordered[..., 1:] == ordered[..., :-1]).any() or chosen.min() < 0 or chosen.max() >= config["experts"]:
        raise ValueError("k different experts a token")


SMALL = dict(zip(KEYS, (4, 10, 4, 2, 3, 8, 5, 50, 16), strict=True)) | {"anchors": 2}
LARGE = dict(zip(KEYS, (24, 2048, 24, 4, 96, 32, 1024, 50_000, 1024), strict=True)) | {"anchors": 4}


def cases(group, rng):
    if group == "one sequence":
        yield _case("a first token", rng, SMALL, [0], k=2)
        yield _case("behind three tokens", rng, SMALL, [3], k=2)
        yield _case("four and a half bits a weight", rng, SMALL, [5], k=1, weight_bits=4.5, kv_bytes=1.0)
        yield _case("a model of real size", rng, LARGE, [800], k=4)
    elif group == "a batch":
        yield _case("three sequences", rng, SMALL, [1, 4, 7], k=2)
        together = _case("all tokens at the same experts", rng, SMALL, [3, 3, 3, 3], k=2)
        together.arguments["chosen"][:] = [1, 6]
        yield together
        apart = _case("each token at its own expert", rng, SMALL, [2, 5, 0, 9], k=1)
        apart.arguments["chosen"][:] = np.arange(4)[:, None]
        yield apart
        yield _case("a model of real size", rng, LARGE, rng.integers(0, 1000, size=16), k=4)
    elif group == "long contexts":
        yield _case("a window that is just full", rng, SMALL, [15], k=2)
        yield _case("one token out of sight but for the anchors", rng, SMALL, [18], k=2)
        yield _case("far behind", rng, SMALL, [40], k=2)
        yield _case("a short and a long text", rng, SMALL, [2, 60], k=2)
        yield _case("no anchors", rng, SMALL | {"anchors": 0}, [30, 16], k=2)
        yield _case("a model of real size", rng, LARGE, rng.integers(0, 5000, size=8), k=4)
    elif group == "any step":
        for i in range(5):
            K, B = int(rng.integers(1, 5)), int(rng.integers(1, 9))
            sizes = (2 * rng.integers(1, 5), 8 * rng.integers(1, 9), K * rng.integers(1, 5), K, rng.integers(2, 9))
            more = (rng.integers(4, 12), rng.integers(2, 20), rng.integers(20, 90), rng.integers(1, 12))
            config = dict(zip(KEYS, map(int, sizes + more), strict=True)) | {"anchors": int(rng.integers(0, 4))}
            bits, kv_bytes = float(rng.choice([16, 8, 4.5])), float(rng.choice([2, 1]))
            yield _case(
                f"step {i + 1}", rng, config, rng.integers(0, 30, size=B), int(rng.integers(1, 4)), bits, kv_bytes
            )


def _case(label, rng, config, contexts, k, weight_bits=16.0, kv_bytes=2.0):
    contexts = np.asarray(contexts, np.int64)
    order = np.argsort(rng.random((config["layers"], len(contexts), config["experts"])), axis=-1)
    arguments = {"config": dict(config), "contexts": contexts, "chosen": order[..., :k].copy()}
    return Case(arguments | {"weight_bits": weight_bits, "kv_bytes": kv_bytes}, label=label)


MAKERS = "makers = L // 2"
LENGTH = "length = contexts + 1  # [B], with the new token"
VISIBLE = "visible = np.minimum(length, window) + np.minimum(anchors, np.maximum(length - window, 0))  # [B]"
MET = "2 * B * (shared + L * k * expert + D * V)"
ATTENDED = "L * 4 * H * E * visible.sum()"
TOUCHED = "touched = sum(len(np.unique(layer)) for layer in chosen)  # distinct experts, however many tokens share them"
WEIGHTS = "weights = shared + touched * expert + (2 * L + 1) * D + V * D + B * D"
READ = "L * (visible - 1).sum() * token_bytes  # readers read as much as makers"
TOKEN = "token_bytes = 2 * K * E * kv_bytes"
WRITTEN = "makers * B * token_bytes"

MUTANTS = (
    Mutant(
        "one FLOP for a multiply and an add",
        ((MET, "B * (shared + L * k * expert + D * V)"), (ATTENDED, "L * 2 * H * E * visible.sum()")),
        hint="Your FLOPs are half of what they should be. How many is a multiply and an add?",
    ),
    Mutant(
        "half of attention",
        ((ATTENDED, "L * 2 * H * E * visible.sum()"),),
        hint="Your FLOPs fall short by an amount that grows with the context. What happens after the softmax?",
    ),
    Mutant(
        "attention of the key heads",
        ((ATTENDED, "L * 4 * K * E * visible.sum()"),),
        hint="Sharing a key head saves bytes. Does each query head of the group still compute its own scores?",
    ),
    Mutant(
        "no head",
        ((MET, "2 * B * (shared + L * k * expert)"),),
        hint="Your FLOPs fall short by 2 D V a token. The table is looked up once, and then used a second time: how?",
    ),
    Mutant(
        "its own key not seen",
        ((LENGTH, "length = np.maximum(contexts, 1)"),),
        hint="Your new token sees one key too few. A first token sees itself.",
    ),
    Mutant(
        "its own key read back",
        ((READ, "L * visible.sum() * token_bytes"),),
        hint="You read one key and value a layer and sequence too many: those that this step has just computed.",
    ),
    Mutant(
        "readers read nothing",
        ((READ, "makers * (visible - 1).sum() * token_bytes"),),
        hint="The second layer of a pair stores nothing. Must its queries not meet the keys all the same, in a kernel "
        "of their own, long after the first layer's kernel is done?",
    ),
    Mutant(
        "readers write too",
        ((WRITTEN, "L * B * token_bytes"),),
        hint="You write keys and values in every layer. How many layers make any?",
    ),
    Mutant(
        "keys as wide as queries",
        ((TOKEN, "token_bytes = 2 * H * E * kv_bytes"),),
        hint="Your bytes of keys and values are too many by H / K. What does the cache hold of a group?",
    ),
    Mutant(
        "keys without values",
        ((TOKEN, "token_bytes = K * E * kv_bytes"),),
        hint="Half of the cache is missing in your bytes. What does a token leave besides a key?",
    ),
    Mutant(
        "the weights for each token",
        ((WEIGHTS, "weights = B * shared + touched * expert + (2 * L + 1) * D + V * D + B * D"),),
        hint="One sequence is right, a batch reads too much. What is the point of batching?",
    ),
    Mutant(
        "an expert for each token that chose it",
        ((TOUCHED, "touched = chosen.size"),),
        hint="Where tokens of a batch chose the same expert you read it more than once.",
    ),
    Mutant(
        "every expert",
        ((TOUCHED, "touched = L * X"),),
        hint="You read experts that no token chose.",
    ),
    Mutant(
        "experts of all layers thrown together",
        ((TOUCHED, "touched = len(np.unique(chosen))"),),
        hint="Expert 3 of one layer and expert 3 of the next are different weights.",
    ),
    Mutant(
        "FLOPs of the distinct",
        ((MET, "2 * (B * (shared + D * V) + sum(len(np.unique(layer)) for layer in chosen) * expert)"),),
        hint="Your FLOPs of experts are too few in a batch: reading an expert is shared by its tokens, computing is "
        "not.",
    ),
    Mutant(
        "bits as bytes",
        (("weights * weight_bits / 8", "weights * weight_bits"),),
        hint="You read eight times too many bytes of weights.",
    ),
    Mutant(
        "no norms",
        ((WEIGHTS, "weights = shared + touched * expert + V * D + B * D"),),
        hint="Your bytes fall short by (2 L + 1) D weights. Which weights are vectors?",
    ),
    Mutant(
        "no embedding rows",
        ((WEIGHTS, "weights = shared + touched * expert + (2 * L + 1) * D + V * D"),),
        hint="Your bytes fall short by D weights a sequence. What does a token look up before the first layer?",
    ),
    Mutant(
        "no window",
        ((VISIBLE, "visible = length"),),
        hint="Short contexts are right. What does a token no longer see when the context outgrows the window?",
    ),
    Mutant(
        "no anchors",
        ((VISIBLE, "visible = np.minimum(length, window)"),),
        hint="Long contexts come out too cheap by a few keys. Which tokens stay in sight behind the window?",
    ),
    Mutant(
        "anchors counted twice",
        ((VISIBLE, "visible = np.minimum(length, window) + np.minimum(anchors, length)"),),
        hint="With a short context the anchors lie inside the window, and each key counts once.",
    ),
    Mutant(
        "the mean context",
        ((LENGTH, "length = np.full(B, contexts.mean()) + 1"),),
        hint="One sequence is right, a short text beside a long one is not. Half of the long one's context may be out "
        "of "
        "sight: the mean does not know.",
    ),
)  # fmt: skip

HONEST = (
    Variant("a table of what is seen", (
        (VISIBLE, "visible = np.array([np.sum((c - np.arange(c + 1) < window) | (np.arange(c + 1) < anchors))\n"
                  "                        for c in contexts.tolist()])"),)),
    Variant("Python's integers and sets", (
        (TOUCHED, "touched = sum(len({int(e) for e in layer.flat}) for layer in chosen)"),
        ("float(flops)", "int(flops)"), ("float(makers * B * token_bytes)", "int(makers * B * token_bytes)"))),
    Variant("what is shared, in floating point", (
        (MET, "2.0 * B * shared + 2.0 * L * B * k * expert + 2e0 * B * D * V"),
        (WRITTEN, "np.float64(L * B * K * E) * kv_bytes"))),
)  # fmt: skip
