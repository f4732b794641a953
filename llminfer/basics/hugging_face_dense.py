"""Families of Hugging Face without experts: config.json to ModelConfig's fields."""

import math
from collections.abc import Callable
from typing import Any

from llminfer.basics.config import RopeSpec
from llminfer.basics.hugging_face_rope import rope_from_section
from llminfer.basics.model_fields import MOST_LAYERS, Fields, shown


def decoder(fields: Fields, tied: bool = False) -> dict[str, Any]:
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


def gpt2(fields: Fields) -> dict[str, Any]:
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


def llama(fields: Fields) -> dict[str, Any]:
    demand_silu(fields)
    bias = fields.flag("attention_bias", False)
    return decoder(fields) | {
        "qkv_bias": bias,
        "output_bias": bias,
        "feed_forward_bias": fields.flag("mlp_bias", False),
    }


def mistral(fields: Fields) -> dict[str, Any]:
    demand_silu(fields)
    described = decoder(fields)
    return described | {"windows": sliding_windows(fields, described["layers"], lambda layer: True)}


def qwen2(fields: Fields) -> dict[str, Any]:
    demand_silu(fields)
    described = decoder(fields) | {"qkv_bias": True}
    if fields.flag("use_sliding_window", False):
        first = fields.integer("max_window_layers", 28, least=0)
        described["windows"] = sliding_windows(fields, described["layers"], lambda layer: layer >= first)
    return described


def qwen_with_qk_norm(fields: Fields) -> dict[str, Any]:
    bias = fields.flag("attention_bias", False)
    return qwen2(fields) | {"qk_norm": True, "qkv_bias": bias, "output_bias": bias}


def qwen3(fields: Fields) -> dict[str, Any]:
    return qwen_with_qk_norm(fields) | {"head_width": fields.integer("head_dim", 128)}


def gemma2(fields: Fields) -> dict[str, Any]:
    """Gemma 2; Gemma 3 is this with another order of layers, q and k normed and no soft caps."""
    fields.demand("hidden_activation", "gelu_pytorch_tanh", "gelu_pytorch_tanh")
    fields.demand("use_bidirectional_attention", False, False)
    described = decoder(fields, tied=True)
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
        "windows": sliding_windows(fields, described["layers"], lambda layer: layer % 2 == 0, default=4096),
    }


def gemma3(fields: Fields) -> dict[str, Any]:
    described = gemma2(fields) | {
        "qk_norm": True,
        "attention_soft_cap": _cap(fields, "attn_logit_softcapping", None),
        "final_soft_cap": _cap(fields, "final_logit_softcapping", None),
    }
    key = "sliding_window_pattern" if "sliding_window_pattern" in fields else "_sliding_window_pattern"
    period = fields.integer(key, 6)
    windows = sliding_windows(fields, described["layers"], lambda layer: (layer + 1) % period != 0, default=4096)
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


def demand_silu(fields: Fields) -> None:
    fields.demand("hidden_act", "silu", "silu")


def _cap(fields: Fields, name: str, default: float | None) -> float | None:
    """A soft cap; null in the file means none, absence the family's own."""
    if name in fields:
        return fields.number(name)
    return None if name in fields.values else default


def sliding_windows(
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
