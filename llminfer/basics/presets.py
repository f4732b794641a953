"""The models the book speaks of, as numbers: sizes, and what their architectures add to the plain Transformer.

From the config.json that its makers published with each model. Sizes alone decide costs; the rest (RoPE, epsilons,
token ids) is what running the weights would take.
"""

from difflib import get_close_matches
from math import log, sqrt
from typing import Any

from llminfer.basics.config import MlaSpec, ModelConfig, MoeSpec, RopeSpec


def preset(name: str) -> ModelConfig:
    """The model called `name`, such as "llama-3-8b" or "Qwen3 30B A3B", however it is capitalised.

    Raises ValueError with the nearest names for one that is not in the table. Book section 3.1.2.
    """
    key = name.strip().lower().replace(" ", "-").replace("_", "-")
    if key in PRESETS:
        return PRESETS[key]
    near = [known for known in PRESETS if known.startswith(key)] or get_close_matches(key, PRESETS, n=3, cutoff=0.5)
    remedy = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(PRESETS)}."
    raise ValueError(f"no model called {name!r} among the presets; {remedy} Describe any other with ModelConfig(...)")


Row = tuple[str, int, int, int, int, int, int] | tuple[str, int, int, int, int, int, int, dict[str, Any]]


def _family(*rows: Row, **shared: Any) -> list[ModelConfig]:
    """Models that share most fields; a row is name, L, D, H, K, E, F, and what is the model's own."""
    return [ModelConfig(*row[:7], **(shared | (row[7] if len(row) > 7 else {}))) for row in rows]


def _windows(layers: int, window: int, period: int) -> tuple[int | None, ...]:
    """A window for all layers but the last of every `period`, which sees everything."""
    return tuple(None if (layer + 1) % period == 0 else window for layer in range(layers))


_GPT2 = _family(
    ("gpt2", 12, 768, 12, 12, 64, 4 * 768),
    ("gpt2-medium", 24, 1024, 16, 16, 64, 4 * 1024),
    ("gpt2-large", 36, 1280, 20, 20, 64, 4 * 1280),
    ("gpt2-xl", 48, 1600, 25, 25, 64, 4 * 1600),
    vocabulary=50257, context=1024, tied=True, bos_id=50256, eos_ids=(50256,),
    norm="layernorm", activation="gelu", positions="learned",
    qkv_bias=True, output_bias=True, feed_forward_bias=True,
)  # fmt: skip

# The published position table has two rows more than the context, which no token uses; they are left out here.
_OPT = _family(
    ("opt-13b", 40, 5120, 40, 40, 128, 4 * 5120),
    ("opt-66b", 64, 9216, 72, 72, 128, 4 * 9216),
    ("opt-175b", 96, 12288, 96, 96, 128, 4 * 12288),
    vocabulary=50272, context=2048, tied=True, bos_id=2, eos_ids=(2,),
    norm="layernorm", activation="relu", positions="learned",
    qkv_bias=True, output_bias=True, feed_forward_bias=True,
)  # fmt: skip

_LLAMA_2 = _family(
    ("llama-2-7b", 32, 4096, 32, 32, 128, 11008),
    ("llama-2-13b", 40, 5120, 40, 40, 128, 13824),
    ("llama-2-70b", 80, 8192, 64, 8, 128, 28672),
    ("tinyllama-1.1b", 22, 2048, 32, 4, 64, 5632, {"context": 2048}),
    vocabulary=32000, context=4096, bos_id=1, eos_ids=(2,),
)  # fmt: skip

_LLAMA_3 = _family(
    ("llama-3-8b", 32, 4096, 32, 8, 128, 14336),
    ("llama-3-70b", 80, 8192, 64, 8, 128, 28672),
    vocabulary=128256, context=8192, rope=RopeSpec(theta=500_000.0), bos_id=128000, eos_ids=(128001,),
)  # fmt: skip


def _llama_3_rope(factor: float) -> RopeSpec:
    return RopeSpec(theta=500_000.0, scaling="llama3", factor=factor, original_context=8192)


# From 3.1 on the ends of a text, of a message to a tool, and of a turn all stop.
_LLAMA_3_1 = _family(
    ("llama-3.1-8b", 32, 4096, 32, 8, 128, 14336),
    ("llama-3.1-70b", 80, 8192, 64, 8, 128, 28672),
    ("llama-3.1-405b", 126, 16384, 128, 8, 128, 53248),
    ("llama-3.2-1b", 16, 2048, 32, 8, 64, 8192, {"tied": True, "rope": _llama_3_rope(32.0)}),
    ("llama-3.2-3b", 28, 3072, 24, 8, 128, 8192, {"tied": True, "rope": _llama_3_rope(32.0)}),
    vocabulary=128256, context=131072, rope=_llama_3_rope(8.0), bos_id=128000, eos_ids=(128001, 128008, 128009),
)  # fmt: skip

_SMOLLM2 = _family(
    ("smollm2-135m", 30, 576, 9, 3, 64, 1536),
    ("smollm2-360m", 32, 960, 15, 5, 64, 2560),
    ("smollm2-1.7b", 24, 2048, 32, 32, 64, 8192, {"rope": RopeSpec(theta=130_000.0)}),
    vocabulary=49152, context=8192, tied=True, rope=RopeSpec(theta=100_000.0), bos_id=1, eos_ids=(2,),
)  # fmt: skip

_MISTRAL = _family(
    ("mistral-7b-v0.1", 32, 4096, 32, 8, 128, 14336, {"windows": (4096,) * 32, "rope": RopeSpec()}),
    ("mistral-7b-v0.3", 32, 4096, 32, 8, 128, 14336, {"vocabulary": 32768}),
    ("mixtral-8x7b", 32, 4096, 32, 8, 128, 14336, {"moe": MoeSpec(8, 2, 14336)}),
    ("mixtral-8x22b", 56, 6144, 48, 8, 128, 16384,
     {"moe": MoeSpec(8, 2, 16384), "vocabulary": 32768, "context": 65536}),
    vocabulary=32000, context=32768, rope=RopeSpec(theta=1_000_000.0), bos_id=1, eos_ids=(2,),
)  # fmt: skip

# The instruction-tuned models; the base models of 1.5B and of 7B upward were published with a context of 131,072.
_QWEN_2_5 = _family(
    ("qwen2.5-0.5b", 24, 896, 14, 2, 64, 4864, {"tied": True}),
    ("qwen2.5-1.5b", 28, 1536, 12, 2, 128, 8960, {"tied": True}),
    ("qwen2.5-3b", 36, 2048, 16, 2, 128, 11008, {"tied": True}),
    ("qwen2.5-7b", 28, 3584, 28, 4, 128, 18944, {"vocabulary": 152064}),
    ("qwen2.5-14b", 48, 5120, 40, 8, 128, 13824, {"vocabulary": 152064, "norm_eps": 1e-5}),
    ("qwen2.5-32b", 64, 5120, 40, 8, 128, 27648, {"vocabulary": 152064, "norm_eps": 1e-5}),
    ("qwen2.5-72b", 80, 8192, 64, 8, 128, 29568, {"vocabulary": 152064, "norm_eps": 1e-5}),
    vocabulary=151936, context=32768, norm_eps=1e-6, qkv_bias=True,
    rope=RopeSpec(theta=1_000_000.0), bos_id=151643, eos_ids=(151645, 151643),
)  # fmt: skip

# F of the two mixtures stands in their config.json, but no layer uses it.
_QWEN_3 = _family(
    ("qwen3-0.6b", 28, 1024, 16, 8, 128, 3072, {"tied": True}),
    ("qwen3-1.7b", 28, 2048, 16, 8, 128, 6144, {"tied": True}),
    ("qwen3-4b", 36, 2560, 32, 8, 128, 9728, {"tied": True}),
    ("qwen3-8b", 36, 4096, 32, 8, 128, 12288),
    ("qwen3-14b", 40, 5120, 40, 8, 128, 17408),
    ("qwen3-32b", 64, 5120, 64, 8, 128, 25600),
    ("qwen3-30b-a3b", 48, 2048, 32, 4, 128, 6144, {"moe": MoeSpec(128, 8, 768)}),
    ("qwen3-235b-a22b", 94, 4096, 64, 4, 128, 12288, {"moe": MoeSpec(128, 8, 1536)}),
    vocabulary=151936, context=40960, norm_eps=1e-6, qk_norm=True,
    rope=RopeSpec(theta=1_000_000.0), bos_id=151643, eos_ids=(151645, 151643),
)  # fmt: skip

_DEEPSEEK_CONTEXT = {
    "context": 163840,
    "rope": RopeSpec(interleaved=True, scaling="yarn", factor=40.0, original_context=4096),
}


def _deepseek_scale(mscale: float) -> float:
    """1/sqrt(key width), grown for the longer context as DeepSeek does: on the scores, so that cos and sin stay."""
    return (128 + 64) ** -0.5 * (0.1 * mscale * log(40.0) + 1.0) ** 2


# E is the width of a query: 128 unrotated elements and 64 rotated. V3 is without its multi-token prediction layer.
_DEEPSEEK = _family(
    ("deepseek-v2-lite", 27, 2048, 16, 16, 192, 10944, {
        "mla": MlaSpec(kv_rank=512, rope_width=64, nope_width=128, value_width=128),
        "moe": MoeSpec(64, 6, 1408, shared_width=2 * 1408, first_layer=1, normalize=False),
        "query_scale": _deepseek_scale(0.707),
    }),
    ("deepseek-v2", 60, 5120, 128, 128, 192, 12288, {
        "moe": MoeSpec(160, 6, 1536, shared_width=2 * 1536, first_layer=1, normalize=False, routed_scale=16.0,
                       groups=8, top_groups=3),
    }),
    *((name, 61, 7168, 128, 128, 192, 18432, {
        "vocabulary": 129280, "bos_id": 0, "eos_ids": (1,),
        "moe": MoeSpec(256, 8, 2048, shared_width=2048, first_layer=3, scoring="sigmoid", routed_scale=2.5,
                       router_bias=True, groups=8, top_groups=4),
    }) for name in ("deepseek-v3", "deepseek-r1")),
    vocabulary=102400, norm_eps=1e-6, bos_id=100000, eos_ids=(100001,), **_DEEPSEEK_CONTEXT,
    mla=MlaSpec(kv_rank=512, rope_width=64, nope_width=128, value_width=128, q_rank=1536),
    query_scale=_deepseek_scale(1.0),
)  # fmt: skip


def _gemma(layers: int, width: int, window: int, period: int) -> dict[str, Any]:
    """What depends on the row: which layers have a window, and embeddings that grow by sqrt(D)."""
    return {"windows": _windows(layers, window, period), "embedding_scale": sqrt(width), "query_scale": 256**-0.5}


# The largest scale scores by 1/sqrt(D/H), not by 1/sqrt(E).
_GEMMA_2 = _family(
    ("gemma-2-2b", 26, 2304, 8, 4, 256, 9216, _gemma(26, 2304, 4096, 2)),
    ("gemma-2-9b", 42, 3584, 16, 8, 256, 14336, _gemma(42, 3584, 4096, 2)),
    ("gemma-2-27b", 46, 4608, 32, 16, 128, 36864, _gemma(46, 4608, 4096, 2) | {"query_scale": 144**-0.5}),
    vocabulary=256000, context=8192, tied=True, norm_eps=1e-6, activation="geglu", post_norms=True,
    attention_soft_cap=50.0, final_soft_cap=30.0, bos_id=2, eos_ids=(1, 107),
)  # fmt: skip

# Language models only: 4b, 12b and 27b come with a vision tower, which is not counted here.
_GEMMA_3_ROPE = RopeSpec(theta=1_000_000.0, scaling="linear", factor=8.0)
_GEMMA_3 = _family(
    ("gemma-3-1b", 26, 1152, 4, 1, 256, 6912, _gemma(26, 1152, 512, 6) |
     {"vocabulary": 262144, "context": 32768, "rope": RopeSpec(theta=1_000_000.0)}),
    ("gemma-3-4b", 34, 2560, 8, 4, 256, 10240, _gemma(34, 2560, 1024, 6)),
    ("gemma-3-12b", 48, 3840, 16, 8, 256, 15360, _gemma(48, 3840, 1024, 6)),
    ("gemma-3-27b", 62, 5376, 32, 16, 128, 21504, _gemma(62, 5376, 1024, 6) | {"query_scale": 168**-0.5}),
    vocabulary=262208, context=131072, tied=True, norm_eps=1e-6, activation="geglu", post_norms=True, qk_norm=True,
    rope=_GEMMA_3_ROPE, local_rope=RopeSpec(), bos_id=2, eos_ids=(1, 106),
)  # fmt: skip

_GPT_OSS = _family(
    ("gpt-oss-20b", 24, 2880, 64, 8, 64, 2880, {
        "windows": _windows(24, 128, 2),
        "moe": MoeSpec(32, 4, 2880, scoring="softmax_top_k", router_bias=True, expert_bias=True),
    }),
    ("gpt-oss-120b", 36, 2880, 64, 8, 64, 2880, {
        "windows": _windows(36, 128, 2),
        "moe": MoeSpec(128, 4, 2880, scoring="softmax_top_k", router_bias=True, expert_bias=True),
    }),
    vocabulary=201088, context=131072, activation="swiglu_clamped", qkv_bias=True, output_bias=True, sinks=True,
    rope=RopeSpec(theta=150_000.0, scaling="yarn", factor=32.0, original_context=4096,
                  attention_factor=0.1 * log(32.0) + 1.0, truncate=False),
    bos_id=199998, eos_ids=(200002, 199999, 200012),
)  # fmt: skip

_ALL = (
    *_GPT2, *_OPT, *_LLAMA_2, *_LLAMA_3, *_LLAMA_3_1, *_SMOLLM2, *_MISTRAL,
    *_QWEN_2_5, *_QWEN_3, *_DEEPSEEK, *_GEMMA_2, *_GEMMA_3, *_GPT_OSS,
)  # fmt: skip

PRESETS: dict[str, ModelConfig] = {config.name: config for config in _ALL}
