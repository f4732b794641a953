"""Families of Hugging Face with experts, DeepSeek's with latent attention too: config.json to ModelConfig's fields."""

from typing import Any

from llminfer.basics.config import MlaSpec, MoeSpec
from llminfer.basics.hugging_face_dense import decoder, demand_silu, mistral, qwen_with_qk_norm, sliding_windows
from llminfer.basics.hugging_face_rope import rope_from_config, yarn_score_scale
from llminfer.basics.model_fields import Fields


def mixtral(fields: Fields) -> dict[str, Any]:
    described = mistral(fields)
    moe = MoeSpec(
        experts=fields.integer("num_local_experts", 8),
        top_k=fields.integer("num_experts_per_tok", 2),
        expert_width=described["feed_forward"],
    )
    return described | {"moe": moe}


def qwen3_moe(fields: Fields) -> dict[str, Any]:
    described = qwen_with_qk_norm(fields)
    if fields.flag("use_sliding_window", False):  # here max_window_layers does not exist
        described["windows"] = sliding_windows(fields, described["layers"], lambda layer: True)
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


def _deepseek(fields: Fields, scoring: str) -> dict[str, Any]:
    """What DeepSeek-V2 and V3 share: latent attention, a few dense layers, then experts with shared ones beside."""
    demand_silu(fields)
    fields.demand("attention_bias", False, False)
    fields.demand("mlp_bias", False, False)
    fields.demand("moe_layer_freq", 1, 1)
    described = decoder(fields)
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


def deepseek_v2(fields: Fields) -> dict[str, Any]:
    fields.demand("norm_topk_prob", False, False)
    method = fields.demand("topk_method", "greedy", "greedy", "group_limited_greedy")
    grouped = Fields(
        fields.values if method != "greedy" else {**fields.values, "n_group": 1, "topk_group": 1}, fields.where
    )
    described = _deepseek(grouped, "softmax")
    return described | {"rope": rope_from_config(fields, interleaved=True)}


def deepseek_v3(fields: Fields) -> dict[str, Any]:
    fields.demand("topk_method", "noaux_tc", "noaux_tc")
    fields.demand("scoring_func", "sigmoid", "sigmoid")
    described = _deepseek(fields, "sigmoid")
    return described | {"rope": rope_from_config(fields, interleaved=fields.flag("rope_interleave", True))}


def gpt_oss(fields: Fields) -> dict[str, Any]:
    fields.demand("attention_bias", True, True)
    fields.demand("swiglu_limit", 7.0, 7.0)
    fields.demand("swiglu_alpha", 1.702, 1.702)
    described = decoder(fields)
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
        "windows": sliding_windows(fields, described["layers"], lambda layer: layer % 2 == 0, default=128),
        "moe": moe,
    }
