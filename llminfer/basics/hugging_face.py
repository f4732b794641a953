"""config.json of a Hugging Face folder, read into a ModelConfig.

Knows the families of `FAMILIES` and says so about any other; what a family can switch on but this library does not
compute (another activation, partial rotation, another scaling of RoPE) is refused rather than ignored.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from llminfer.basics.config import MlaSpec, ModelConfig, MoeSpec, RopeSpec
from llminfer.basics.hugging_face_rope import rope_from_config, rope_from_section, yarn_score_scale
from llminfer.basics.model_fields import MOST_LAYERS, Fields, shown


def config_from_hugging_face(raw: Mapping[str, Any], name: str, where: str = "config.json") -> ModelConfig:
    """The model that a config.json describes; `raw` is the parsed file, `name` what to call the model.

    Fields that are absent take the defaults of the family, as old files leave them out.
    Raises ValueError naming the field when it is missing, malformed or asks for something unsupported.
    """
    fields = Fields(raw, where)
    family = fields.text("model_type")
    if family not in FAMILIES:
        raise ValueError(f"{where}: model_type is {family!r}; supported: {', '.join(sorted(FAMILIES))}")
    described = FAMILIES[family](fields)
    rope = described.pop("rope", None) or rope_from_config(fields)
    bos, eos = fields.token_ids("bos_token_id"), fields.token_ids("eos_token_id")
    try:
        return ModelConfig(name=name, bos_id=bos[0] if bos else None, eos_ids=eos, rope=rope, **described)
    except ValueError as contradiction:
        raise ValueError(f"{where}: {contradiction}") from None


def _decoder(fields: Fields, tied: bool = False) -> dict[str, Any]:
    """What the families after Llama share."""
    width, heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    return {
        "layers": fields.integer("num_hidden_layers", most=MOST_LAYERS),
        "width": width,
        "heads": heads,
        "kv_heads": fields.integer("num_key_value_heads", heads),
        "head_width": fields.integer("head_dim", max(1, width // heads)),
        "feed_forward": fields.integer("intermediate_size"),
        "vocabulary": fields.integer("vocab_size"),
        "context": fields.integer("max_position_embeddings"),
        "norm_eps": fields.number("rms_norm_eps", 1e-6),
        "tied": fields.flag("tie_word_embeddings", tied),
    }


def _gpt2(fields: Fields) -> dict[str, Any]:
    fields.demand("activation_function", "gelu_new", "gelu_new", "gelu_pytorch_tanh")
    fields.demand("scale_attn_by_inverse_layer_idx", False, False)
    fields.demand("add_cross_attention", False, False)
    width, heads = fields.integer("n_embd"), fields.integer("n_head")
    return {
        "layers": fields.integer("n_layer", most=MOST_LAYERS),
        "width": width,
        "heads": heads,
        "kv_heads": heads,
        "head_width": max(1, width // heads),
        "feed_forward": fields.integer("n_inner", 4 * width),
        "vocabulary": fields.integer("vocab_size"),
        "context": fields.integer("n_positions"),
        "norm": "layernorm",
        "norm_eps": fields.number("layer_norm_epsilon", 1e-5),
        "activation": "gelu",
        "positions": "learned",
        "tied": fields.flag("tie_word_embeddings", True),
        "qkv_bias": True,
        "output_bias": True,
        "feed_forward_bias": True,
        "query_scale": None if fields.flag("scale_attn_weights", True) else 1.0,
    }


def _llama(fields: Fields) -> dict[str, Any]:
    _demand_silu(fields)
    bias = fields.flag("attention_bias", False)
    return _decoder(fields) | {
        "qkv_bias": bias,
        "output_bias": bias,
        "feed_forward_bias": fields.flag("mlp_bias", False),
    }


def _mistral(fields: Fields) -> dict[str, Any]:
    _demand_silu(fields)
    described = _decoder(fields)
    return described | {"windows": _windows(fields, described["layers"], lambda layer: True)}


def _mixtral(fields: Fields) -> dict[str, Any]:
    described = _mistral(fields)
    moe = MoeSpec(
        experts=fields.integer("num_local_experts", 8),
        top_k=fields.integer("num_experts_per_tok", 2),
        expert_width=described["feed_forward"],
    )
    return described | {"moe": moe}


def _qwen2(fields: Fields) -> dict[str, Any]:
    _demand_silu(fields)
    described = _decoder(fields) | {"qkv_bias": True}
    if fields.flag("use_sliding_window", False):
        first = fields.integer("max_window_layers", 28, least=0)
        described["windows"] = _windows(fields, described["layers"], lambda layer: layer >= first)
    return described


def _qwen_with_qk_norm(fields: Fields) -> dict[str, Any]:
    bias = fields.flag("attention_bias", False)
    return _qwen2(fields) | {"qk_norm": True, "qkv_bias": bias, "output_bias": bias}


def _qwen3(fields: Fields) -> dict[str, Any]:
    return _qwen_with_qk_norm(fields) | {"head_width": fields.integer("head_dim", 128)}


def _qwen3_moe(fields: Fields) -> dict[str, Any]:
    described = _qwen_with_qk_norm(fields)
    if fields.flag("use_sliding_window", False):  # here max_window_layers does not exist
        described["windows"] = _windows(fields, described["layers"], lambda layer: True)
    fields.demand("decoder_sparse_step", 1, 1)
    dense = fields.values.get("mlp_only_layers") or []
    if not isinstance(dense, list) or dense != list(range(len(dense))):
        raise fields.error("mlp_only_layers", "supported: the first layers only, [] or [0, 1, ...]")
    moe = MoeSpec(
        experts=fields.integer("num_experts" if "num_experts" in fields else "num_local_experts"),
        top_k=fields.integer("num_experts_per_tok"),
        expert_width=fields.integer("moe_intermediate_size"),
        first_layer=len(dense),
        normalize=fields.flag("norm_topk_prob", False),
    )
    return described | {"moe": moe}


def _gemma2(fields: Fields) -> dict[str, Any]:
    """Gemma 2; Gemma 3 is this with another order of layers, q and k normed and no soft caps."""
    fields.demand("hidden_activation", "gelu_pytorch_tanh", "gelu_pytorch_tanh")
    fields.demand("use_bidirectional_attention", False, False)
    described = _decoder(fields, tied=True)
    bias = fields.flag("attention_bias", False)
    return described | {
        "head_width": fields.integer("head_dim", 256),
        "activation": "geglu",
        "post_norms": True,
        "embedding_scale": math.sqrt(described["width"]),
        "query_scale": fields.number("query_pre_attn_scalar", 256) ** -0.5,
        "attention_soft_cap": _cap(fields, "attn_logit_softcapping", 50.0),
        "final_soft_cap": _cap(fields, "final_logit_softcapping", 30.0),
        "qkv_bias": bias,
        "output_bias": bias,
        "windows": _windows(fields, described["layers"], lambda layer: layer % 2 == 0, default=4096),
    }


def _gemma3(fields: Fields) -> dict[str, Any]:
    described = _gemma2(fields) | {
        "qk_norm": True,
        "attention_soft_cap": _cap(fields, "attn_logit_softcapping", None),
        "final_soft_cap": _cap(fields, "final_logit_softcapping", None),
    }
    key = "sliding_window_pattern" if "sliding_window_pattern" in fields else "_sliding_window_pattern"
    period = fields.integer(key, 6)
    windows = _windows(fields, described["layers"], lambda layer: (layer + 1) % period != 0, default=4096)
    if "rope_parameters" in fields:
        kinds = fields.section("rope_parameters")
        if "full_attention" not in kinds or "sliding_attention" not in kinds:
            raise fields.error("rope_parameters", "expected full_attention and sliding_attention in it")
        rope = rope_from_section(kinds.section("full_attention"), fields, 1e6)
        local = rope_from_section(kinds.section("sliding_attention"), fields, 1e4)
    else:
        rope = rope_from_section(fields.section("rope_scaling"), fields, fields.number("rope_theta", 1e6))
        local = RopeSpec(theta=fields.number("rope_local_base_freq", 1e4))
    return described | {"windows": windows, "rope": rope, "local_rope": local}


def _deepseek(fields: Fields, scoring: str) -> dict[str, Any]:
    """What DeepSeek-V2 and V3 share: latent attention, a few dense layers, then experts with shared ones beside."""
    _demand_silu(fields)
    fields.demand("attention_bias", False, False)
    fields.demand("mlp_bias", False, False)
    fields.demand("moe_layer_freq", 1, 1)
    described = _decoder(fields)
    mla = MlaSpec(
        kv_rank=fields.integer("kv_lora_rank", 512),
        rope_width=fields.integer("qk_rope_head_dim", 64),
        nope_width=fields.integer("qk_nope_head_dim", 128),
        value_width=fields.integer("v_head_dim", 128),
        q_rank=fields.integer("q_lora_rank") if "q_lora_rank" in fields else None,
    )
    expert_width = fields.integer("moe_intermediate_size")
    moe = MoeSpec(
        experts=fields.integer("n_routed_experts"),
        top_k=fields.integer("num_experts_per_tok"),
        expert_width=expert_width,
        shared_width=expert_width * fields.integer("n_shared_experts", 0, least=0),
        first_layer=fields.integer("first_k_dense_replace", 0, least=0),
        scoring=scoring,
        normalize=fields.flag("norm_topk_prob", scoring == "sigmoid"),
        routed_scale=fields.number("routed_scaling_factor", 1.0),
        router_bias=scoring == "sigmoid",
        groups=fields.integer("n_group", 1),
        top_groups=fields.integer("topk_group", 1),
    )
    if moe.experts % moe.groups or moe.top_groups > moe.groups:
        raise fields.error("n_group", f"expected a divisor of {moe.experts} experts, at least topk_group")
    key_width = mla.nope_width + mla.rope_width
    return described | {
        "kv_heads": described["heads"],
        "head_width": key_width,
        "mla": mla,
        "moe": moe,
        "query_scale": key_width**-0.5 * yarn_score_scale(fields),
    }


def _deepseek_v2(fields: Fields) -> dict[str, Any]:
    fields.demand("norm_topk_prob", False, False)
    method = fields.demand("topk_method", "greedy", "greedy", "group_limited_greedy")
    grouped = Fields(
        fields.values if method != "greedy" else {**fields.values, "n_group": 1, "topk_group": 1}, fields.where
    )
    described = _deepseek(grouped, "softmax")
    return described | {"rope": rope_from_config(fields, interleaved=True)}


def _deepseek_v3(fields: Fields) -> dict[str, Any]:
    fields.demand("topk_method", "noaux_tc", "noaux_tc")
    fields.demand("scoring_func", "sigmoid", "sigmoid")
    described = _deepseek(fields, "sigmoid")
    return described | {"rope": rope_from_config(fields, interleaved=fields.flag("rope_interleave", True))}


def _gpt_oss(fields: Fields) -> dict[str, Any]:
    fields.demand("attention_bias", True, True)
    fields.demand("swiglu_limit", 7.0, 7.0)
    fields.demand("swiglu_alpha", 1.702, 1.702)
    described = _decoder(fields)
    moe = MoeSpec(
        experts=fields.integer("num_local_experts"),
        top_k=fields.integer("num_experts_per_tok", 4),
        expert_width=described["feed_forward"],
        scoring="softmax_top_k",
        router_bias=True,
        expert_bias=True,
    )
    return described | {
        "activation": "swiglu_clamped",
        "qkv_bias": True,
        "output_bias": True,
        "sinks": True,
        "windows": _windows(fields, described["layers"], lambda layer: layer % 2 == 0, default=128),
        "moe": moe,
    }


FAMILIES: dict[str, Callable[[Fields], dict[str, Any]]] = {
    "gpt2": _gpt2,
    "llama": _llama,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "deepseek_v2": _deepseek_v2,
    "deepseek_v3": _deepseek_v3,
    "gpt_oss": _gpt_oss,
}


def _demand_silu(fields: Fields) -> None:
    fields.demand("hidden_act", "silu", "silu")


def _cap(fields: Fields, name: str, default: float | None) -> float | None:
    """A soft cap; null in the file means none, absence the family's own."""
    if name in fields:
        return fields.number(name)
    return None if name in fields.values else default


def _windows(
    fields: Fields, layers: int, slides: Callable[[int], bool], default: int | None = None
) -> tuple[int | None, ...]:
    """One window per layer: by layer_types where the file has them, else where `slides` says so."""
    if "sliding_window" not in fields and default is None:
        return ()
    window = fields.integer("sliding_window", default)
    kinds = fields.values.get("layer_types")
    if kinds is None:
        kinds = ["sliding_attention" if slides(layer) else "full_attention" for layer in range(layers)]
    if not isinstance(kinds, list) or len(kinds) != layers:
        raise fields.error("layer_types", f"expected a list with one entry for each of {layers} layers")
    unknown = [kind for kind in kinds if kind not in ("sliding_attention", "full_attention")]
    if unknown:
        raise fields.error(
            "layer_types", f"{shown(unknown[0])} in it is unsupported; supported: sliding_attention, full_attention"
        )
    if "sliding_attention" not in kinds:
        return ()
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)
