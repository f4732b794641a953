"""Tensors under their Hugging Face names, turned into the weights a Transformer takes.

What happens on the way: q|k|v and gate|up are fused, experts are stacked, Gemma's gains become 1 + w, and the
up-projections of MLA are split into one matrix per head for keys and one for values.
"""

import re

import numpy as np

from llminfer.basics.config import ModelConfig
from llminfer.basics.weight_reading import TensorSource, WeightReader

Weights = dict[str, np.ndarray]

NEVER_READ = (  # tables that older checkpoints store although they follow from the config
    r"rotary_emb\.inv_freq$",
    r"^(transformer\.)?h\.\d+\.attn\.(bias|masked_bias)$",
)


def weights_from_hugging_face(
    config: ModelConfig, tensors: TensorSource, family: str, dtype: np.dtype | str = "float32"
) -> Weights:
    """All weights of `config`, from tensors named as `family` (the model_type of config.json) names them.

    Raises ValueError when a tensor is missing, has another shape than the config says, or is left without a place.
    """
    take = WeightReader(tensors, np.dtype(dtype))
    weights = _gpt2(config, take) if family == "gpt2" else _decoder(config, take, family)
    ignored = [name for name in tensors.shapes if _may_be_left(config, family, name)]
    take.refuse_leftovers(ignored)
    return weights


def _gpt2(config: ModelConfig, take: WeightReader) -> Weights:
    """GPT-2 keeps its matrices [in, out] and q|k|v fused, so they are taken as they are."""
    D, F = config.width, config.feed_forward
    prefix = "transformer." if "transformer.wte.weight" in take.tensors.shapes else ""
    weights = {
        "embedding": take.array(f"{prefix}wte.weight", (config.vocabulary, D)),
        "position_embedding": take.array(f"{prefix}wpe.weight", (config.context, D)),
        "final_norm": take.array(f"{prefix}ln_f.weight", (D,)),
        "final_norm.bias": take.array(f"{prefix}ln_f.bias", (D,)),
    }
    if not config.tied:
        weights["head"] = take.matrix(D, {"lm_head.weight": config.vocabulary})
    parts = {  # ours: (theirs, in, out); a width of 0 marks a vector
        "attention_norm": ("ln_1", 0, D),
        "qkv": ("attn.c_attn", D, 3 * D),
        "output": ("attn.c_proj", D, D),
        "feed_forward_norm": ("ln_2", 0, D),
        "up": ("mlp.c_fc", D, F),
        "down": ("mlp.c_proj", F, D),
    }
    for i in range(config.layers):
        for ours, (theirs, width, out) in parts.items():
            shape = (width, out) if width else (out,)
            weights[f"layers.{i}.{ours}"] = take.array(f"{prefix}h.{i}.{theirs}.weight", shape)
            weights[f"layers.{i}.{ours}.bias"] = take.array(f"{prefix}h.{i}.{theirs}.bias", (out,))
    return weights


def _decoder(config: ModelConfig, take: WeightReader, family: str) -> Weights:
    """Llama and all that came after it."""
    D, V = config.width, config.vocabulary
    prefix = "" if "embed_tokens.weight" in take.tensors.shapes else "model."
    offset = 1 if family.startswith("gemma") else 0  # Gemma stores a gain as its distance from 1
    weights = {
        "embedding": take.array(f"{prefix}embed_tokens.weight", (V, D)),
        "final_norm": take.array(f"{prefix}norm.weight", (D,)) + offset,
    }
    if not config.tied:
        weights["head"] = take.matrix(D, {"lm_head.weight": V})
    for i in range(config.layers):
        theirs = f"{prefix}layers.{i}."
        layer = {ours: take.array(theirs + name, (D,)) + offset for ours, name in _norm_names(config).items()}
        if config.mla:
            layer |= _latent_attention(config, take, f"{theirs}self_attn.")
        else:
            layer |= _attention(config, take, f"{theirs}self_attn.", offset)
        if not config.is_moe(i):
            layer |= _feed_forward(config, take, f"{theirs}mlp.")
        elif family == "gpt_oss":
            layer |= _biased_experts(config, take, f"{theirs}mlp.")
        elif family == "mixtral":
            layer |= _experts(config, take, f"{theirs}block_sparse_moe.", ("w1", "w3", "w2"))
        else:
            layer |= _experts(config, take, f"{theirs}mlp.", ("gate_proj", "up_proj", "down_proj"))
        weights |= {f"layers.{i}.{ours}": array for ours, array in layer.items()}
    return weights


def _norm_names(config: ModelConfig) -> dict[str, str]:
    """Ours: theirs. With four norms a layer "post attention" is meant; with two it is the next block's norm."""
    if config.post_norms:
        return {
            "attention_norm": "input_layernorm.weight",
            "post_attention_norm": "post_attention_layernorm.weight",
            "feed_forward_norm": "pre_feedforward_layernorm.weight",
            "post_feed_forward_norm": "post_feedforward_layernorm.weight",
        }
    return {"attention_norm": "input_layernorm.weight", "feed_forward_norm": "post_attention_layernorm.weight"}


def _attention(config: ModelConfig, take: WeightReader, theirs: str, offset: int) -> Weights:
    D, E, q, kv = config.width, config.head_width, config.heads * config.head_width, config.kv_heads * config.head_width
    outputs = {f"{theirs}q_proj": q, f"{theirs}k_proj": kv, f"{theirs}v_proj": kv}
    layer = {
        "qkv": take.matrix(D, {f"{name}.weight": out for name, out in outputs.items()}),
        "output": take.matrix(q, {f"{theirs}o_proj.weight": D}),
    }
    if config.qkv_bias:
        layer["qkv.bias"] = take.joined([f"{name}.bias" for name in outputs], [(out,) for out in outputs.values()])
    if config.output_bias:
        layer["output.bias"] = take.array(f"{theirs}o_proj.bias", (D,))
    if config.qk_norm:
        layer["q_norm"] = take.array(f"{theirs}q_norm.weight", (E,)) + offset
        layer["k_norm"] = take.array(f"{theirs}k_norm.weight", (E,)) + offset
    if config.sinks:
        layer["sinks"] = take.array(f"{theirs}sinks", (config.heads,))
    return layer


def _latent_attention(config: ModelConfig, take: WeightReader, theirs: str) -> Weights:
    """MLA: kv_b_proj holds, head after head, the rows that make keys from the latent and those that make values."""
    D, H, mla = config.width, config.heads, config.mla
    key_width = mla.nope_width + mla.rope_width
    if mla.q_rank is None:
        layer = {"q": take.matrix(D, {f"{theirs}q_proj.weight": H * key_width})}
    else:
        layer = {
            "q_down": take.matrix(D, {f"{theirs}q_a_proj.weight": mla.q_rank}),
            "q_latent_norm": take.array(f"{theirs}q_a_layernorm.weight", (mla.q_rank,)),
            "q_up": take.matrix(mla.q_rank, {f"{theirs}q_b_proj.weight": H * key_width}),
        }
    both = mla.nope_width + mla.value_width
    up = take.array(f"{theirs}kv_b_proj.weight", (H * both, mla.kv_rank)).reshape(H, both, mla.kv_rank)
    return (
        layer
        | {
            "kv_down": take.matrix(D, {f"{theirs}kv_a_proj_with_mqa.weight": mla.kv_rank + mla.rope_width}),
            "kv_latent_norm": take.array(f"{theirs}kv_a_layernorm.weight", (mla.kv_rank,)),
            "k_up": up[:, : mla.nope_width],  # [H, nope, kv_rank]
            "v_up": up[:, mla.nope_width :].swapaxes(1, 2),  # [H, kv_rank, value]
            "output": take.matrix(H * mla.value_width, {f"{theirs}o_proj.weight": D}),
        }
    )


def _feed_forward(config: ModelConfig, take: WeightReader, theirs: str) -> Weights:
    D, F = config.width, config.feed_forward
    layer = _gated(take, theirs, D, F)
    if config.feed_forward_bias:
        layer["gate_up.bias"] = take.joined([f"{theirs}gate_proj.bias", f"{theirs}up_proj.bias"], [(F,), (F,)])
        layer["down.bias"] = take.array(f"{theirs}down_proj.bias", (D,))
    return layer


def _gated(take: WeightReader, theirs: str, D: int, F: int) -> Weights:
    """gate_up [D, 2F] and down [F, D]."""
    return {
        "gate_up": take.matrix(D, {f"{theirs}gate_proj.weight": F, f"{theirs}up_proj.weight": F}),
        "down": take.matrix(F, {f"{theirs}down_proj.weight": D}),
    }


def _experts(config: ModelConfig, take: WeightReader, theirs: str, names: tuple[str, str, str]) -> Weights:
    D, moe = config.width, config.moe
    F = moe.expert_width
    gate, up, down = names
    router = take.matrix(D, {f"{theirs}gate.weight": moe.experts})  # first: bears out how many there are
    experts = [f"{theirs}experts.{x}." for x in range(moe.experts)]
    layer = {
        "router": router,
        "experts.gate_up": take.stacked(D, [{f"{x}{gate}.weight": F, f"{x}{up}.weight": F} for x in experts]),
        "experts.down": take.stacked(F, [{f"{x}{down}.weight": D} for x in experts]),
    }
    if moe.router_bias:
        layer["router.bias"] = take.array(f"{theirs}gate.e_score_correction_bias", (moe.experts,))
    if moe.shared_width:
        shared = _gated(take, f"{theirs}shared_experts.", D, moe.shared_width)
        layer |= {f"shared.{name}": array for name, array in shared.items()}
    return layer


def _biased_experts(config: ModelConfig, take: WeightReader, theirs: str) -> Weights:
    """gpt-oss: experts stacked and [in, out] already, columns of gate and up taking turns."""
    D, X, F = config.width, config.moe.experts, config.moe.expert_width
    gate_up = take.array(f"{theirs}experts.gate_up_proj", (X, D, 2 * F))
    gate_up_bias = take.array(f"{theirs}experts.gate_up_proj_bias", (X, 2 * F))
    return {
        "router": take.matrix(D, {f"{theirs}router.weight": X}),
        "router.bias": take.array(f"{theirs}router.bias", (X,)),
        "experts.gate_up": _halves(gate_up),
        "experts.gate_up.bias": _halves(gate_up_bias),
        "experts.down": take.array(f"{theirs}experts.down_proj", (X, F, D)),
        "experts.down.bias": take.array(f"{theirs}experts.down_proj_bias", (X, D)),
    }


def _halves(turns: np.ndarray) -> np.ndarray:
    """Even columns (gate) to the left half, odd ones (up) to the right."""
    return np.concatenate([turns[..., ::2], turns[..., 1::2]], axis=-1)


def _may_be_left(config: ModelConfig, family: str, name: str) -> bool:
    """Tensors that a complete model does not need: derived tables, a copy of a tied head, layers that only draft."""
    if any(re.search(pattern, name) for pattern in NEVER_READ):
        return True
    if name == "lm_head.weight":
        return config.tied
    draft = re.match(r"model\.layers\.(\d+)\.", name) if family == "deepseek_v3" else None
    return draft is not None and len(draft[1]) < 6 and int(draft[1]) >= config.layers  # multi-token prediction
