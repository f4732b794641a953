"""What one forward pass must do: FLOPs and bytes of any mix of prefill chunks and decodes, part by part.

Counted are all matrix products, and the bytes that must cross the memory bus whatever the kernels: every weight in use
read once, the keys and values of earlier tokens read once, those of new tokens written once. Left out are activations
(logits too), which could stay on the chip, and the work per element of norms, RoPE and softmax, a percent or so of the
FLOPs.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, nan, prod

from llminfer.basics.config import ModelConfig
from llminfer.basics.parameters import layer_shapes
from llminfer.core.cost import Cost

NOTHING = Cost(0, 0, 0)


@dataclass(frozen=True)
class Segment:
    """What one sequence brings to a step: new tokens, behind `context` tokens that are already in the cache.

    A decode brings one token, a prefill chunk many. sampled: how many of the new tokens need logits; 0 for a chunk that
    is not the last, all of them when drafts are verified. Raises ValueError when the numbers contradict each other.
    Book section 3.1.3.
    """

    new_tokens: int
    context: int = 0
    sampled: int = 1

    def __post_init__(self) -> None:
        if self.new_tokens < 1 or self.context < 0:
            raise ValueError(f"new_tokens must be at least 1 and context at least 0, got {self}")
        if not 0 <= self.sampled <= self.new_tokens:
            raise ValueError(f"sampled must lie in 0..{self.new_tokens} (the new tokens), got {self.sampled}")


def prefill(tokens: int, batch: int = 1) -> list[Segment]:
    """The segments of `batch` prompts of the same length, each in one piece. Raises ValueError for counts below 1.

    Book section 3.1.3.
    """
    check_at_least("batch", batch, 1)
    return [Segment(tokens)] * batch


def decode(context: int, batch: int = 1) -> list[Segment]:
    """The segments of `batch` sequences that each take their next token behind `context` cached ones.

    Raises ValueError for a batch below 1 or a negative context. Book section 3.1.3.
    """
    check_at_least("batch", batch, 1)
    return [Segment(1, context)] * batch


def step_cost(
    config: ModelConfig, segments: Sequence[Segment], weights: str | float = "bfloat16", kv: str | float = "bfloat16"
) -> Cost:
    """FLOPs and bytes of a whole step; `step_costs` has the same by part. Book section 3.1.3."""
    return sum(step_costs(config, segments, weights, kv).values(), NOTHING)


def step_costs(
    config: ModelConfig, segments: Sequence[Segment], weights: str | float = "bfloat16", kv: str | float = "bfloat16"
) -> dict[str, Cost]:
    """FLOPs and bytes of a step by part, summed over layers; the parts bear the names of the weights they use.

    "attention" is q·k, the weighted sum of v, and all traffic of keys and values; "norms" are the gains of all norms.
    `weights` and `kv` name the types they are stored in, or give bytes per element for block formats (Q4_0: 18/32).
    Biases are read with their matrix; their additions count for nothing. The head runs on sampled tokens only.
    Raises ValueError without segments. Book section 3.1.3.
    """
    if not segments:
        raise ValueError("a step needs at least one segment, got none; see prefill(...) and decode(...)")
    size = element_bytes(weights)
    tokens = sum(segment.new_tokens for segment in segments)
    unfolded = sum(segment.context for segment in segments if config.mla and _expands(config, segment))
    rows = sum(segment.sampled for segment in segments)
    looked_up = 2 if config.positions == "learned" else 1
    costs = {"embedding": Cost(0, looked_up * tokens * config.width * size, 0)}
    for layer, times in _kinds_of_layers(config):
        for name, shape in layer_shapes(config, layer).items():
            met = tokens + unfolded if name in ("k_up", "v_up") else tokens
            costs[_part(name)] = costs.get(_part(name), NOTHING) + _weight_cost(config, name, shape, met, size) * times
        costs["attention"] = costs.get("attention", NOTHING) + _attention_cost(config, layer, segments, kv) * times
    costs["norms"] += Cost(0, config.width * (2 if config.norm == "layernorm" else 1) * size, 0)
    head = config.width * config.vocabulary
    costs["head"] = Cost(2 * rows * head, head * size, 0) if rows else NOTHING
    return costs


def visible_pairs(new_tokens: int, context: int = 0, window: int | None = None) -> int:
    """How many (query, key) pairs causal attention computes: each new token sees all before it, and itself.

    Without a window T·context + T(T+1)/2: a prompt costs half of the square T·T, and the diagonal. With one, no token
    sees more than the latest `window`. Raises ValueError for negative counts and for a window below 1.
    Book section 3.1.3.
    """
    check_at_least("new_tokens", new_tokens, 0)
    check_at_least("context", context, 0)
    if window is not None:
        check_at_least("window", window, 1)
    if window is None:
        window = context + new_tokens
    growing = min(max(window - context, 0), new_tokens)  # the first new tokens, which the window does not cut yet
    return growing * context + growing * (growing + 1) // 2 + (new_tokens - growing) * window


def expected_experts(experts: int, top_k: int, tokens: int) -> float:
    """How many distinct experts a batch is expected to touch when every expert is as likely as any other.

    A token misses an expert with probability 1 - k/X, all tokens with its T-th power. A real router is less even and
    touches fewer. Raises ValueError unless 1 <= top_k <= experts and tokens >= 0. Book section 3.1.3.
    """
    check_at_least("tokens", tokens, 0)
    if not 1 <= top_k <= experts:
        raise ValueError(f"top_k must lie in 1..{experts} (the experts), got {top_k}")
    return experts * (1 - (1 - top_k / experts) ** tokens)


def layer_kv_bytes(config: ModelConfig, layer: int, kv: str | float = "bfloat16") -> float:
    """Bytes that one token adds to the cache of one layer: its keys and values, or MLA's latent."""
    spec = config.attention(layer)
    width = spec.key_width if spec.shared_kv else spec.key_width + spec.value_width
    return spec.kv_heads * width * element_bytes(kv)


def element_bytes(dtype: str | float) -> float:
    """Bytes an element of a type takes: 2 for "bfloat16" or "bf16", 1 for "int8", 0.5 for "int4"; a number is itself.

    Raises ValueError for a name that says no width, and for a number that is not positive and finite.
    """
    if isinstance(dtype, str):
        named = re.fullmatch(r"(?:bfloat|bf|float|fp|tf|u?int)([1-9][0-9]?)(?:_\w+)?", dtype)
        size = int(named[1]) / 8 if named else nan
    else:
        size = dtype
    if not 0 < size < inf:
        raise ValueError(
            f"no element type is called {dtype!r}; expected a name such as 'bfloat16', 'fp8' or 'int4', "
            "or the bytes an element takes, a positive number such as 18 / 32 for Q4_0"
        )
    return size


def check_at_least(name: str, value: float, least: float) -> None:
    """Raise ValueError if `value` is below `least`, infinite or not a number."""
    if not least <= value < inf:
        raise ValueError(f"{name} must be finite and at least {least}, got {value}")


@cache
def _kinds_of_layers(config: ModelConfig) -> tuple[tuple[int, int], ...]:
    """(a layer, how many cost the same) for each kind: they differ in their window and in whether they have experts."""
    kinds = Counter((config.is_moe(layer), config.window(layer)) for layer in range(config.layers))
    first = {(config.is_moe(layer), config.window(layer)): layer for layer in reversed(range(config.layers))}
    return tuple((first[kind], times) for kind, times in kinds.items())


def _part(name: str) -> str:
    weight = name.removesuffix(".bias")
    if weight.endswith("norm"):
        return "norms"
    return "attention" if weight == "sinks" else weight


def _weight_cost(config: ModelConfig, name: str, shape: tuple[int, ...], tokens: int, size: float) -> Cost:
    """One weight of one layer: 2 FLOPs an element and token if it is a matrix, its bytes read once."""
    met = read = float(prod(shape))  # elements that one token meets, and that all tokens together do
    if name.startswith("experts."):
        moe = config.moe
        met *= moe.top_k / moe.experts
        read *= expected_experts(moe.experts, moe.top_k, tokens) / moe.experts
    is_matrix = len(shape) > 1 and not name.endswith(".bias")
    return Cost(2 * tokens * met if is_matrix else 0, read * size, 0)


def _attention_cost(config: ModelConfig, layer: int, segments: Sequence[Segment], kv: str | float) -> Cost:
    """Scores and weighted sums over what each new token sees; visible keys and values read, new ones written."""
    spec = config.attention(layer)
    token_bytes = layer_kv_bytes(config, layer, kv)
    flops = read = write = 0.0
    for segment in segments:
        width = spec.key_width + spec.value_width
        if config.mla and _expands(config, segment):
            width = config.mla.nope_width + config.mla.rope_width + config.mla.value_width
        flops += 2 * config.heads * width * visible_pairs(segment.new_tokens, segment.context, spec.window)
        behind = segment.context if spec.window is None else min(segment.context, spec.window - 1)
        read += behind * token_bytes
        write += segment.new_tokens * token_bytes
    return Cost(flops, read, write)


def _expands(config: ModelConfig, segment: Segment) -> bool:
    """Whether MLA does less in its unfolded form than in its absorbed form; the first suits prefill, the second decode.

    Unfolded: k_up and v_up turn the latents of the whole context into keys and values. Absorbed: they are applied to
    queries and results instead, and attention works on the wider latents. The results are equal, and so is the cache
    that is read. Source: DeepSeek-V2, section 2.1.2.
    """
    mla = config.mla
    pairs = visible_pairs(segment.new_tokens, segment.context)
    more_per_pair = (2 * mla.kv_rank + mla.rope_width) - (mla.nope_width + mla.rope_width + mla.value_width)
    unfolding = segment.context * (mla.nope_width + mla.value_width) * mla.kv_rank
    return unfolding < pairs * more_per_pair
