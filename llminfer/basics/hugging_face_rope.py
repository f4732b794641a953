"""The rotary embedding that a config.json describes, in the form of transformers 5 and in the older one.

Since version 5 all of it stands in rope_parameters; before, the base stood at the top level, the rest in rope_scaling.
"""

import math
from dataclasses import replace

from llminfer.basics.config import RopeSpec
from llminfer.basics.model_fields import Fields


def rope_from_config(fields: Fields, interleaved: bool = False) -> RopeSpec:
    """The RoPE of a model all of whose layers share one. Raises ValueError naming the field that is unsupported."""
    rope = _rope_fields(fields)
    for kind in ("full_attention", "sliding_attention"):
        if kind in rope:
            raise rope.error(kind, "a RoPE of its own for each kind of layer is supported for gemma3_text only")
    return rope_from_section(rope, fields, fields.number("rope_theta", 1e4), interleaved)


def rope_from_section(rope: Fields, model: Fields, theta: float, interleaved: bool = False) -> RopeSpec:
    """One RoPE section; `theta` holds where the section itself names none."""
    model.demand("partial_rotary_factor", 1.0, 1.0, 1)
    rope.demand("partial_rotary_factor", 1.0, 1.0, 1)
    plain = RopeSpec(theta=rope.number("rope_theta", theta), interleaved=interleaved)
    key = "rope_type" if "rope_type" in rope else "type"
    scaling = rope.demand(key, "default", "default", "linear", "llama3", "yarn")
    if scaling == "default":
        return plain
    factor = rope.number("factor")
    if scaling == "linear":
        return replace(plain, scaling="linear", factor=factor)
    original = rope.integer("original_max_position_embeddings", model.integer("max_position_embeddings"))
    if scaling == "llama3":
        low, high = rope.number("low_freq_factor"), rope.number("high_freq_factor")
        if low >= high:
            raise rope.error("low_freq_factor", f"expected less than high_freq_factor {high}")
        return replace(
            plain, scaling="llama3", factor=factor, original_context=original, low_factor=low, high_factor=high
        )
    return replace(
        plain,
        scaling="yarn",
        factor=factor,
        original_context=original,
        beta_fast=rope.number("beta_fast", 32.0),
        beta_slow=rope.number("beta_slow", 1.0),
        attention_factor=_yarn_attention_factor(rope, factor),
        truncate=rope.flag("truncate", True),
    )


def yarn_score_scale(fields: Fields) -> float:
    """DeepSeek grows the scores of the unrotated part too: by mscale squared, which RoPE's own factor cannot reach."""
    rope = _rope_fields(fields)
    if rope.values.get("mscale_all_dim") and "factor" in rope:
        return _yarn_growth(rope.number("factor"), rope.number("mscale_all_dim")) ** 2
    return 1.0


def _rope_fields(fields: Fields) -> Fields:
    """Where the file keeps its RoPE: rope_parameters since transformers 5, rope_scaling before."""
    return fields.section("rope_parameters" if "rope_parameters" in fields else "rope_scaling")


def _yarn_growth(factor: float, weight: float = 1.0) -> float:
    """What YaRN multiplies queries and keys by when a context is stretched by `factor`. Peng et al. 2023, eq. 22."""
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0


def _yarn_attention_factor(rope: Fields, factor: float) -> float:
    if "attention_factor" in rope:
        return rope.number("attention_factor")
    if rope.values.get("mscale") and rope.values.get("mscale_all_dim"):
        return _yarn_growth(factor, rope.number("mscale")) / _yarn_growth(factor, rope.number("mscale_all_dim"))
    return _yarn_growth(factor)
