"""What a model is, in numbers: one frozen description from which weights, caches and costs all follow."""

from dataclasses import dataclass, field
from math import inf
from numbers import Integral
from typing import Any, Literal


def check_counts(spec: Any, *names: str, least: int = 1) -> None:
    """Raise ValueError unless each of these fields is a whole number of at least `least`."""
    for name in names:
        value = getattr(spec, name)
        if not isinstance(value, Integral) or value < least:
            whose = repr(getattr(spec, "name", type(spec).__name__))
            raise ValueError(f"{name} of {whose} must be at least {least}, got {value}; counts are whole numbers")


def check_choice(spec: Any, name: str, *choices: str) -> None:
    """Raise ValueError unless the field is one of the choices."""
    if getattr(spec, name) not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {getattr(spec, name)!r}")


@dataclass(frozen=True)
class AttentionSpec:
    """What one layer asks of the memory it attends to; a view needs nothing else about the model.

    scale multiplies q·k; window is how many latest tokens a query sees, itself included (None: all);
    soft_cap c bends scores to c·tanh(s/c); sinks says that a learned logit per head joins the softmax;
    shared_kv says that a value is the first value_width numbers of its key, as in absorbed MLA. Book section 3.1.2.
    """

    kv_heads: int
    key_width: int
    value_width: int
    scale: float
    window: int | None = None
    soft_cap: float | None = None
    sinks: bool = False
    shared_kv: bool = False


@dataclass(frozen=True)
class RopeSpec:
    """Rotary position embedding: base frequency, how pairs are laid out, and how the context was stretched.

    scaling "linear" divides every frequency by factor; "llama3" divides only the slow ones, blending between
    original_context / low_factor and original_context / high_factor; "yarn" blends by rotations (beta_slow, beta_fast)
    and multiplies cos and sin by attention_factor; truncate says that its blend begins and ends at whole pairs.
    Book section 3.1.2.
    """

    theta: float = 10_000.0
    interleaved: bool = False
    scaling: Literal["none", "linear", "llama3", "yarn"] = "none"
    factor: float = 1.0
    original_context: int = 0
    low_factor: float = 1.0
    high_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float = 1.0
    truncate: bool = True

    def __post_init__(self) -> None:
        check_choice(self, "scaling", "none", "linear", "llama3", "yarn")
        for name in ("theta", "factor", "attention_factor"):
            if not 0 < getattr(self, name) < inf:
                raise ValueError(f"{name} of a RopeSpec must be positive and finite, got {getattr(self, name)}")


@dataclass(frozen=True)
class MlaSpec:
    """Multi-head latent attention: widths of the latent, of the parts of a key, and of a value.

    Source: DeepSeek-V2, section 2.1. q_rank None means that queries are not compressed. Book section 3.1.2.
    """

    kv_rank: int
    rope_width: int
    nope_width: int
    value_width: int
    q_rank: int | None = None

    def __post_init__(self) -> None:
        check_counts(self, "kv_rank", "rope_width", "nope_width", "value_width")
        if self.q_rank is not None:
            check_counts(self, "q_rank")


@dataclass(frozen=True)
class MoeSpec:
    """A mixture of experts in place of the feed-forward block, from layer first_layer on.

    scoring turns router logits into weights: "softmax" over all experts, "softmax_top_k" over the chosen ones,
    "sigmoid" (DeepSeek-V3, where router_bias moves the choice and never the weight). With groups > 1 only the experts
    of the top_groups best groups can be chosen. Book section 3.1.2.
    """

    experts: int
    top_k: int
    expert_width: int
    shared_width: int = 0
    first_layer: int = 0
    scoring: Literal["softmax", "softmax_top_k", "sigmoid"] = "softmax"
    normalize: bool = True
    routed_scale: float = 1.0
    router_bias: bool = False
    expert_bias: bool = False
    groups: int = 1
    top_groups: int = 1

    def check(self) -> None:
        """Raise ValueError when the numbers contradict each other; the model's config asks for it."""
        check_counts(self, "experts", "expert_width", "groups", "top_groups")
        check_counts(self, "top_k", "shared_width", "first_layer", least=0)
        check_choice(self, "scoring", "softmax", "softmax_top_k", "sigmoid")
        if not 1 <= self.top_k <= self.experts:
            raise ValueError(f"top_k must lie in 1..{self.experts} (the experts), got {self.top_k}")
        if self.experts % self.groups or self.top_groups > self.groups:
            raise ValueError(
                f"groups must divide the experts, and top_groups be among them, got {self.experts} experts, "
                f"{self.groups} groups and {self.top_groups} top_groups"
            )
        if self.groups > 1 and self.top_groups * self.experts // self.groups < self.top_k:
            raise ValueError(
                f"{self.top_groups} of {self.groups} groups hold {self.top_groups * self.experts // self.groups} of "
                f"{self.experts} experts, too few for top_k {self.top_k}"
            )


@dataclass(frozen=True)
class ModelConfig:
    """A decoder-only Transformer. Counts are counts, widths are elements.

    windows holds one entry per layer (None: that layer sees everything); empty means none has a window.
    Raises ValueError on construction when the numbers contradict each other. Book section 3.1.2.
    """

    name: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_width: int
    feed_forward: int
    vocabulary: int
    context: int
    norm: Literal["rmsnorm", "layernorm"] = "rmsnorm"
    norm_eps: float = 1e-5
    activation: Literal["swiglu", "geglu", "gelu", "relu", "swiglu_clamped"] = "swiglu"
    positions: Literal["rope", "learned"] = "rope"
    rope: RopeSpec = field(default_factory=RopeSpec)
    local_rope: RopeSpec | None = None  # for layers with a window, where it differs (Gemma 3)
    tied: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    feed_forward_bias: bool = False
    qk_norm: bool = False
    post_norms: bool = False  # a norm after each block too (Gemma 2 and 3)
    embedding_scale: float = 1.0
    query_scale: float | None = None  # attention scale; None: 1/sqrt(key width)
    attention_soft_cap: float | None = None
    final_soft_cap: float | None = None
    sinks: bool = False
    windows: tuple[int | None, ...] = ()
    mla: MlaSpec | None = None
    moe: MoeSpec | None = None
    bos_id: int | None = None
    eos_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_counts(
            self, "layers", "width", "heads", "kv_heads", "head_width", "feed_forward", "vocabulary", "context"
        )
        if self.moe:
            self.moe.check()
        check_choice(self, "norm", "rmsnorm", "layernorm")
        check_choice(self, "positions", "rope", "learned")
        for name in ("norm_eps", "embedding_scale", "query_scale", "attention_soft_cap", "final_soft_cap"):
            value = getattr(self, name)
            if value is not None and not 0 < value < inf:
                raise ValueError(f"{name} of {self.name!r} must be positive and finite, got {value}")
        if self.heads % self.kv_heads:
            raise ValueError(
                f"heads must be a multiple of kv_heads, got {self.heads} and {self.kv_heads}: "
                "each key/value head serves the same number of query heads"
            )
        if self.positions == "rope" and self.rope_width % 2:
            raise ValueError(f"RoPE turns pairs of elements, so its width must be even, got {self.rope_width}")
        if self.windows and len(self.windows) != self.layers:
            raise ValueError(
                f"windows needs one entry per layer, got {len(self.windows)} for {self.layers} layers; "
                "use () when no layer has a window"
            )
        if any(window is not None and window < 1 for window in self.windows):
            raise ValueError(f"a window must be at least 1 token, or None for no window, got {self.windows}")

    @property
    def group(self) -> int:
        """G: how many query heads share one key/value head."""
        return self.heads // self.kv_heads

    @property
    def rope_width(self) -> int:
        """How many elements of a query or key are rotated."""
        return self.mla.rope_width if self.mla else self.head_width

    def window(self, layer: int) -> int | None:
        """How many latest tokens a query of this layer sees; None: all of them."""
        return self.windows[layer] if self.windows else None

    def rope_of(self, layer: int) -> RopeSpec:
        """The rotary embedding of a layer; layers with a window may have their own."""
        return self.local_rope if self.local_rope and self.window(layer) is not None else self.rope

    def is_moe(self, layer: int) -> bool:
        """Whether the layer has experts in place of a dense feed-forward block."""
        return self.moe is not None and layer >= self.moe.first_layer

    def attention(self, layer: int) -> AttentionSpec:
        """What this layer asks of a cache. MLA stands in its absorbed form: one shared latent key per token."""
        if self.mla:
            scale = self.query_scale or (self.mla.nope_width + self.mla.rope_width) ** -0.5
            return AttentionSpec(
                kv_heads=1,
                key_width=self.mla.kv_rank + self.mla.rope_width,
                value_width=self.mla.kv_rank,
                scale=scale,
                shared_kv=True,
            )
        return AttentionSpec(
            kv_heads=self.kv_heads,
            key_width=self.head_width,
            value_width=self.head_width,
            scale=self.query_scale or self.head_width**-0.5,
            window=self.window(layer),
            soft_cap=self.attention_soft_cap,
            sinks=self.sinks,
        )
