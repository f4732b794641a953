"""Every weight of a model by name and shape, and from them how many parameters it has.

The names are those of the loaders and of `Transformer`, so that one table serves counting, checking and costs.
"""

from collections import Counter
from dataclasses import dataclass
from math import prod

from llminfer.basics.config import ModelConfig

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class ParameterCount:
    """How many parameters a model has, by what they do. Adds up to `total`.

    embedding: token and learned position tables. attention: with MLA's projections, and sinks. feed_forward: dense
    blocks and shared experts. experts: routed experts, of which a token meets only `chosen_experts`. norms: all gains,
    those inside attention too. head: 0 where the embedding serves as head too. Book section 3.1.2.
    """

    embedding: int
    attention: int
    feed_forward: int
    experts: int
    chosen_experts: int
    router: int
    norms: int
    head: int

    @property
    def total(self) -> int:
        """All parameters: what memory must hold."""
        return self.active - self.chosen_experts + self.experts

    @property
    def active(self) -> int:
        """Parameters on the path of one token: all but the experts it does not choose.

        Model cards differ in what they leave out: gpt-oss's "active" is this without the embedding.
        """
        return (
            self.embedding
            + self.attention
            + self.feed_forward
            + self.chosen_experts
            + self.router
            + self.norms
            + self.head
        )


def parameter_count(config: ModelConfig) -> ParameterCount:
    """Count the parameters of a model, exactly. Book section 3.1.2."""
    counts = Counter()
    for name, shape in weight_shapes(config).items():
        counts[_role(name)] += prod(shape)
    share = (config.moe.top_k, config.moe.experts) if config.moe else (0, 1)
    return ParameterCount(
        embedding=counts["embedding"],
        attention=counts["attention"],
        feed_forward=counts["feed_forward"],
        experts=counts["experts"],
        chosen_experts=counts["experts"] * share[0] // share[1],
        router=counts["router"],
        norms=counts["norms"],
        head=counts["head"],
    )


def weight_shapes(config: ModelConfig) -> Shapes:
    """Every weight of a model, name -> shape, layers as "layers.3.qkv"; a matrix is [in, out]."""
    D, V = config.width, config.vocabulary
    shapes = {"embedding": (V, D)}
    if config.positions == "learned":
        shapes["position_embedding"] = (config.context, D)
    for layer in range(config.layers):
        shapes |= {f"layers.{layer}.{name}": shape for name, shape in layer_shapes(config, layer).items()}
    shapes |= _norm(config, "final_norm")
    if not config.tied:
        shapes["head"] = (D, V)
    return shapes


def layer_shapes(config: ModelConfig, layer: int) -> Shapes:
    """The weights of one layer, name -> shape, in the order in which a token meets them."""
    attention = _latent_attention(config) if config.mla else _attention(config)
    feed_forward = _experts(config) if config.is_moe(layer) else _feed_forward(config)
    return (
        _norm(config, "attention_norm")
        | attention
        | (_norm(config, "post_attention_norm") if config.post_norms else {})
        | _norm(config, "feed_forward_norm")
        | feed_forward
        | (_norm(config, "post_feed_forward_norm") if config.post_norms else {})
    )


def _norm(config: ModelConfig, name: str) -> Shapes:
    return {name: (config.width,)} | ({f"{name}.bias": (config.width,)} if config.norm == "layernorm" else {})


def _linear(name: str, inputs: int, outputs: int, bias: bool = False) -> Shapes:
    return {name: (inputs, outputs)} | ({f"{name}.bias": (outputs,)} if bias else {})


def _attention(config: ModelConfig) -> Shapes:
    D, H, K, E = config.width, config.heads, config.kv_heads, config.head_width
    return (
        _linear("qkv", D, (H + 2 * K) * E, config.qkv_bias)
        | ({"q_norm": (E,), "k_norm": (E,)} if config.qk_norm else {})
        | ({"sinks": (H,)} if config.sinks else {})
        | _linear("output", H * E, D, config.output_bias)
    )


def _latent_attention(config: ModelConfig) -> Shapes:
    """MLA: queries straight or through a narrow latent; keys and values always from one. DeepSeek-V2, section 2.1."""
    D, H, mla = config.width, config.heads, config.mla
    q_width = H * (mla.nope_width + mla.rope_width)
    if mla.q_rank is None:
        queries = _linear("q", D, q_width)
    else:
        queries = (
            _linear("q_down", D, mla.q_rank) | {"q_latent_norm": (mla.q_rank,)} | _linear("q_up", mla.q_rank, q_width)
        )
    return (
        queries
        | _linear("kv_down", D, mla.kv_rank + mla.rope_width)
        | {"kv_latent_norm": (mla.kv_rank,)}
        | {"k_up": (H, mla.nope_width, mla.kv_rank), "v_up": (H, mla.kv_rank, mla.value_width)}
        | _linear("output", H * mla.value_width, D)
    )


def _feed_forward(config: ModelConfig) -> Shapes:
    D, F, bias = config.width, config.feed_forward, config.feed_forward_bias
    gated = config.activation not in ("gelu", "relu")
    first = _linear("gate_up", D, 2 * F, bias) if gated else _linear("up", D, F, bias)
    return first | _linear("down", F, D, bias)


def _experts(config: ModelConfig) -> Shapes:
    D, moe = config.width, config.moe
    X, F, S = moe.experts, moe.expert_width, moe.shared_width
    routed = {"experts.gate_up": (X, D, 2 * F), "experts.down": (X, F, D)}
    biases = {"experts.gate_up.bias": (X, 2 * F), "experts.down.bias": (X, D)} if moe.expert_bias else {}
    shared = {"shared.gate_up": (D, 2 * S), "shared.down": (S, D)} if S else {}
    return _linear("router", D, X, moe.router_bias) | routed | biases | shared


def _role(name: str) -> str:
    """The field of ParameterCount that a weight counts towards."""
    weight = name.removesuffix(".bias").split(".", 2)[2] if name.startswith("layers.") else name.removesuffix(".bias")
    if weight.endswith("norm"):
        return "norms"
    if weight.endswith("embedding"):
        return "embedding"
    if weight in ("gate_up", "up", "down", "shared.gate_up", "shared.down"):
        return "feed_forward"
    if weight in ("head", "router"):
        return weight
    return "experts" if weight.startswith("experts.") else "attention"
