"""Judge's side of parameter_count: every weight by its shape, and their sizes added up."""

from math import prod

from llminfer.grading.spec import Mutant, Tolerance, Variant

VERSION = 1
TOLERANCE = Tolerance(relative=0, dtype="any")


def draw(rng):
    kv_heads = int(rng.choice([2, 4, 8]))
    head_width = int(rng.choice([64, 96, 128]))
    heads = kv_heads * int(rng.integers(3, 7))
    return {
        "layers": 2 * int(rng.integers(8, 25)),
        "width": heads * head_width + 128 * int(rng.integers(1, 5)),  # a square output matrix would be a mistake
        "heads": heads,
        "kv_heads": kv_heads,
        "head_width": head_width,
        "experts": int(rng.choice([16, 24, 32, 48])),
        "chosen": int(rng.integers(2, 6)),
        "expert_width": 64 * int(rng.integers(8, 25)),
        "vocabulary": 64 * int(rng.integers(500, 2000)),
    }


def reference(drawn):
    return _counted(_shapes(drawn), drawn)


def _shapes(drawn):
    """(part, shape) of every weight of the model."""
    D, H, K, E = (drawn[key] for key in ("width", "heads", "kv_heads", "head_width"))
    X, F = drawn["experts"], drawn["expert_width"]
    shapes = [("embedding", (drawn["vocabulary"], D)), ("norm", (D,))]
    for layer in range(drawn["layers"]):
        shapes += [("norm", (D,)), ("queries", (D, H, E)), ("gates", (D, H)), ("output", (H, E, D)), ("norm", (D,))]
        shapes += [("keys", (D, K, E)), ("values", (D, K, E))] if layer % 2 == 0 else []
        shapes += [("router", (D, X))] + [("experts", matrix) for matrix in ((D, F), (D, F), (F, D)) for _ in range(X)]
    return shapes


def _counted(shapes, drawn):
    def size(*parts):
        return sum(prod(shape) for part, shape in shapes if part in parts)

    total = sum(prod(shape) for _, shape in shapes)
    experts = size("experts")
    return {
        "attention": size("queries", "keys", "values", "gates", "output"),
        "total": total,
        "active": total - experts + experts * drawn["chosen"] // drawn["experts"],
    }


def _like(change):
    """What a count gives whose list of shapes was changed by a mistake."""
    return lambda drawn: _counted(change(_shapes(drawn), drawn), drawn)


def _without(part):
    return _like(lambda shapes, drawn: [weight for weight in shapes if weight[0] != part])


def _keys_everywhere(shapes, drawn):
    return shapes + [weight for weight in shapes if weight[0] in ("keys", "values")]


def _full_keys(shapes, drawn):
    H, E = drawn["heads"], drawn["head_width"]
    return [(part, (shape[0], H, E) if part in ("keys", "values") else shape) for part, shape in shapes]


def _square_output(shapes, drawn):
    return [(part, (drawn["width"],) * 2 if part == "output" else shape) for part, shape in shapes]


def _two_matrices(shapes, drawn):
    F = drawn["expert_width"]
    others = [weight for weight in shapes if weight[0] != "experts"]
    return others + [("experts", (2, F, drawn["width"]))] * (drawn["layers"] * drawn["experts"])


def _own_head(shapes, drawn):
    return [*shapes, ("head", (drawn["width"], drawn["vocabulary"]))]


def _one_norm(shapes, drawn):
    return [*shapes, ("norm", (-drawn["layers"], drawn["width"]))]


def _no_last_norm(shapes, drawn):
    return [*shapes, ("norm", (-drawn["width"],))]


MUTANTS = (
    Mutant(
        "keys and values in every layer",
        (("makers = L // 2", "makers = L"),),
        like=_like(_keys_everywhere),
        hint="Too much attention. How many layers of your model make keys and values?",
    ),
    Mutant(
        "keys as wide as queries",
        (("2 * K * E * D", "2 * H * E * D"),),
        like=_like(_full_keys),
        hint="Too much attention. How many heads do keys and values have?",
    ),
    Mutant(
        "a square output matrix",
        (("queries, output, gates = D * H * E, H * E * D, D * H", "queries, output, gates = D * H * E, D * D, D * H"),),
        like=_like(_square_output),
        hint="Is H * E the width D in your model? The matrix that leads from the heads back has two different sides.",
    ),
    Mutant(
        "no gates",
        (("queries, output, gates = D * H * E, H * E * D, D * H", "queries, output, gates = D * H * E, H * E * D, 0"),),
        like=_without("gates"),
        hint="Your attention is the attention of Llama. What has Heron beside it that is counted in each layer?",
    ),
    Mutant(
        "a head of its own",
        (("L * layer + V * D + D", "L * layer + 2 * V * D + D"),),
        like=_like(_own_head),
        hint="Your attention is right, your total too large by V * D. What stands in the task about the head?",
    ),
    Mutant(
        "no table",
        (("L * layer + V * D + D", "L * layer + D"),),
        like=_without("embedding"),
        hint="Your attention is right, your total too small by V * D. A table that is looked up has parameters too.",
    ),
    Mutant(
        "two matrices an expert",
        (("3 * D * F", "2 * D * F"),),
        like=_like(_two_matrices),
        hint="Your attention is right, your experts are too small. Section 3.1.2 says what SwiGLU is made of.",
    ),
    Mutant(
        "no router",
        (("D * X + 2 * D", "2 * D"),),
        like=_without("router"),
        hint="Your attention is right, your total a little too small. What decides to which experts a token is sent?",
    ),
    Mutant(
        "one norm a layer",
        (("D * X + 2 * D", "D * X + D"),),
        like=_like(_one_norm),
        hint="Your total is too small by one D a layer. How many blocks has a layer, and what stands before each?",
    ),
    Mutant(
        "no last norm",
        (("L * layer + V * D + D", "L * layer + V * D"),),
        like=_like(_no_last_norm),
        hint="Your total is too small by exactly D: one vector. What happens between the last layer and the head?",
    ),
    Mutant(
        "no norms",
        (("D * X + 2 * D", "D * X"), ("L * layer + V * D + D", "L * layer + V * D")),
        like=_without("norm"),
        hint="Your total is too small by (2 L + 1) D. Which weights of a model are vectors?",
    ),
)

PAIR = "attention = L * (queries + output + gates) + makers * 2 * K * E * D"
LOOP = """attention = 0
    for layer in range(L):
        attention += queries + output + gates + (2 * D * K * E if layer % 2 == 0 else 0)"""

HONEST = (
    Variant("layer after layer", ((PAIR, LOOP),)),
    Variant("in floating point", ((PAIR, f"{PAIR} * 1.0"),)),
    Variant(
        "from the other end",
        (("total - L * (X - k) * expert", "attention + L * (layer - (X - k) * expert) + V * D + D"),),
    ),
)
