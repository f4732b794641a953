"""config.json as it is published becomes the preset of that model; what cannot be computed is refused by name."""

import json
from dataclasses import replace

import pytest

from llminfer.basics.hugging_face import FAMILIES, config_from_hugging_face
from llminfer.basics.presets import PRESETS

# The fields that matter of config.json as published with each model, written by transformers 4: RoPE stands at the top
# level or in rope_scaling, and what was a family's default in that version is often left out.
PUBLISHED = {
    "gpt2": dict(
        model_type="gpt2", activation_function="gelu_new", bos_token_id=50256, eos_token_id=50256, n_ctx=1024,
        n_embd=768, n_head=12, n_layer=12, n_positions=1024, layer_norm_epsilon=1e-05, vocab_size=50257,
    ),
    "llama-3.1-8b": dict(
        model_type="llama", attention_bias=False, bos_token_id=128000, eos_token_id=[128001, 128008, 128009],
        hidden_act="silu", hidden_size=4096, intermediate_size=14336, max_position_embeddings=131072, mlp_bias=False,
        num_attention_heads=32, num_hidden_layers=32, num_key_value_heads=8, pretraining_tp=1, rms_norm_eps=1e-05,
        rope_scaling=dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, rope_type="llama3",
                          original_max_position_embeddings=8192),
        rope_theta=500000.0, tie_word_embeddings=False, vocab_size=128256,
    ),
    "mistral-7b-v0.1": dict(
        model_type="mistral", bos_token_id=1, eos_token_id=2, hidden_act="silu", hidden_size=4096,
        intermediate_size=14336, max_position_embeddings=32768, num_attention_heads=32, num_hidden_layers=32,
        num_key_value_heads=8, rms_norm_eps=1e-05, rope_theta=10000.0, sliding_window=4096, vocab_size=32000,
        tie_word_embeddings=False,
    ),
    "mixtral-8x7b": dict(
        model_type="mixtral", bos_token_id=1, eos_token_id=2, hidden_act="silu", hidden_size=4096,
        intermediate_size=14336, max_position_embeddings=32768, num_attention_heads=32, num_experts_per_tok=2,
        num_hidden_layers=32, num_key_value_heads=8, num_local_experts=8, rms_norm_eps=1e-05, rope_theta=1000000.0,
        sliding_window=None, vocab_size=32000,
    ),
    "qwen2.5-7b": dict(
        model_type="qwen2", bos_token_id=151643, eos_token_id=[151645, 151643], hidden_act="silu", hidden_size=3584,
        intermediate_size=18944, max_position_embeddings=32768, max_window_layers=28, num_attention_heads=28,
        num_hidden_layers=28, num_key_value_heads=4, rms_norm_eps=1e-06, rope_theta=1000000.0, sliding_window=131072,
        use_sliding_window=False, tie_word_embeddings=False, vocab_size=152064,
    ),
    "qwen3-30b-a3b": dict(
        model_type="qwen3_moe", attention_bias=False, bos_token_id=151643, eos_token_id=[151645, 151643],
        decoder_sparse_step=1, head_dim=128, hidden_act="silu", hidden_size=2048, intermediate_size=6144,
        max_position_embeddings=40960, max_window_layers=48, mlp_only_layers=[], moe_intermediate_size=768,
        norm_topk_prob=True, num_attention_heads=32, num_experts=128, num_experts_per_tok=8, num_hidden_layers=48,
        num_key_value_heads=4, rms_norm_eps=1e-06, rope_scaling=None, rope_theta=1000000.0, sliding_window=None,
        use_sliding_window=False, tie_word_embeddings=False, vocab_size=151936,
    ),
    "gemma-2-2b": dict(
        model_type="gemma2", attn_logit_softcapping=50.0, bos_token_id=2, cache_implementation="hybrid",
        eos_token_id=[1, 107], final_logit_softcapping=30.0, head_dim=256, hidden_act="gelu_pytorch_tanh",
        hidden_activation="gelu_pytorch_tanh", hidden_size=2304, intermediate_size=9216, max_position_embeddings=8192,
        num_attention_heads=8, num_hidden_layers=26, num_key_value_heads=4, query_pre_attn_scalar=256,
        rms_norm_eps=1e-06, rope_theta=10000.0, sliding_window=4096, vocab_size=256000,
    ),
    "gemma-3-1b": dict(
        model_type="gemma3_text", attn_logit_softcapping=None, bos_token_id=2, eos_token_id=[1, 106],
        final_logit_softcapping=None, head_dim=256, hidden_activation="gelu_pytorch_tanh", hidden_size=1152,
        intermediate_size=6912, max_position_embeddings=32768, num_attention_heads=4, num_hidden_layers=26,
        num_key_value_heads=1, query_pre_attn_scalar=256, rms_norm_eps=1e-06, rope_local_base_freq=10000,
        rope_scaling=None, rope_theta=1000000, sliding_window=512, sliding_window_pattern=6, vocab_size=262144,
    ),
    "deepseek-v2-lite": dict(
        model_type="deepseek_v2", bos_token_id=100000, eos_token_id=100001, first_k_dense_replace=1, hidden_act="silu",
        hidden_size=2048, intermediate_size=10944, kv_lora_rank=512, max_position_embeddings=163840,
        moe_intermediate_size=1408, moe_layer_freq=1, n_group=1, n_routed_experts=64, n_shared_experts=2,
        norm_topk_prob=False, num_attention_heads=16, num_experts_per_tok=6, num_hidden_layers=27,
        num_key_value_heads=16, q_lora_rank=None, qk_nope_head_dim=128, qk_rope_head_dim=64, rms_norm_eps=1e-06,
        rope_scaling=dict(beta_fast=32, beta_slow=1, factor=40, mscale=0.707, mscale_all_dim=0.707,
                          original_max_position_embeddings=4096, type="yarn"),
        rope_theta=10000, routed_scaling_factor=1.0, scoring_func="softmax", topk_group=1, topk_method="greedy",
        v_head_dim=128, vocab_size=102400,
    ),
    "deepseek-v3": dict(
        model_type="deepseek_v3", bos_token_id=0, eos_token_id=1, ep_size=1, first_k_dense_replace=3, hidden_act="silu",
        hidden_size=7168, intermediate_size=18432, kv_lora_rank=512, max_position_embeddings=163840,
        moe_intermediate_size=2048, moe_layer_freq=1, n_group=8, n_routed_experts=256, n_shared_experts=1,
        norm_topk_prob=True, num_attention_heads=128, num_experts_per_tok=8, num_hidden_layers=61,
        num_key_value_heads=128, num_nextn_predict_layers=1, q_lora_rank=1536, qk_nope_head_dim=128,
        qk_rope_head_dim=64, rms_norm_eps=1e-06,
        rope_scaling=dict(beta_fast=32, beta_slow=1, factor=40, mscale=1.0, mscale_all_dim=1.0,
                          original_max_position_embeddings=4096, type="yarn"),
        rope_theta=10000, routed_scaling_factor=2.5, scoring_func="sigmoid", tie_word_embeddings=False, topk_group=4,
        topk_method="noaux_tc", v_head_dim=128, vocab_size=129280,
    ),
    "gpt-oss-20b": dict(
        model_type="gpt_oss", attention_bias=True, eos_token_id=200002, experts_per_token=4, head_dim=64,
        hidden_act="silu", hidden_size=2880, initial_context_length=4096, intermediate_size=2880,
        layer_types=["sliding_attention", "full_attention"] * 12, max_position_embeddings=131072,
        num_attention_heads=64, num_experts_per_tok=4, num_hidden_layers=24, num_key_value_heads=8,
        num_local_experts=32, rms_norm_eps=1e-05,
        rope_scaling=dict(beta_fast=32.0, beta_slow=1.0, factor=32.0, original_max_position_embeddings=4096,
                          rope_type="yarn", truncate=False),
        rope_theta=150000, sliding_window=128, swiglu_limit=7.0, tie_word_embeddings=False, vocab_size=201088,
    ),
}  # fmt: skip
LLAMA = PUBLISHED["llama-3.1-8b"]


def but(preset: str = "llama-3.1-8b", **changes) -> dict:
    """A published config with some fields changed; ... takes a field away."""
    return {name: value for name, value in (PUBLISHED[preset] | changes).items() if value is not ...}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_config_is_the_preset(name):
    config = config_from_hugging_face(PUBLISHED[name], name)
    assert config == replace(PRESETS[name], bos_id=config.bos_id, eos_ids=config.eos_ids)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_form_of_transformers_5_says_the_same(name):
    """rope_parameters in place of rope_theta and rope_scaling; two of them where layers differ."""
    old = PUBLISHED[name]
    scaling = {"rope_type" if key == "type" else key: value for key, value in (old.get("rope_scaling") or {}).items()}
    rope = {"rope_type": "default", "rope_theta": old.get("rope_theta", 10000.0)} | scaling
    if "rope_local_base_freq" in old:
        local = {"rope_type": "default", "rope_theta": old["rope_local_base_freq"]}
        rope = {"full_attention": rope, "sliding_attention": local}
    new = but(name, rope_theta=..., rope_scaling=..., rope_local_base_freq=..., rope_parameters=rope)
    assert config_from_hugging_face(new, name) == config_from_hugging_face(old, name)


def test_token_ids_come_singly_or_listed():
    config = config_from_hugging_face(LLAMA, "x")
    assert config.bos_id == 128000 and config.eos_ids == (128001, 128008, 128009)
    config = config_from_hugging_face(but(bos_token_id=None, eos_token_id=7), "x")
    assert config.bos_id is None and config.eos_ids == (7,)


def test_what_llama_leaves_out_takes_its_defaults():
    config = config_from_hugging_face(
        but(num_key_value_heads=..., rms_norm_eps=..., rope_theta=..., rope_scaling=..., tie_word_embeddings=...), "x"
    )
    assert config.kv_heads == 32 and config.norm_eps == 1e-6 and config.rope.theta == 10_000 and not config.tied


def test_layer_types_say_which_layers_have_a_window():
    kinds = ["full_attention", *["sliding_attention"] * 25]
    config = config_from_hugging_face(but("gemma-2-2b", layer_types=kinds), "x")
    assert config.windows == (None, *[4096] * 25)


def test_qwen2_windows_begin_at_max_window_layers():
    config = config_from_hugging_face(but("qwen2.5-7b", use_sliding_window=True, max_window_layers=20), "x")
    assert config.windows == (None,) * 20 + (131072,) * 8


def test_an_unknown_family_is_named_beside_those_that_are_known():
    with pytest.raises(ValueError, match=r"config.json: model_type is 'mamba'; supported: deepseek_v2, .*, qwen3_moe"):
        config_from_hugging_face({"model_type": "mamba"}, "x")


REFUSED = {
    "model_type is missing": but(model_type=...),
    "hidden_size is missing": but(hidden_size=...),
    "hidden_size is '4096'; expected an integer": but(hidden_size="4096"),
    "hidden_size is 0; expected an integer in 1": but(hidden_size=0),
    "hidden_size is True; expected an integer": but(hidden_size=True),
    "hidden_size is 4096.0; expected an integer": but(hidden_size=4096.0),
    "num_hidden_layers is 1000000000; expected an integer in 1..4096": but(num_hidden_layers=10**9),
    "vocab_size is .*expected an integer in": but(vocab_size=10**4000),
    "rms_norm_eps is nan; expected a finite number": but(rms_norm_eps=float("nan")),
    "rms_norm_eps is 1000.*fits a float": but(rms_norm_eps=10**400),
    r"hidden_size is \[\[\[.*; expected an integer": but(hidden_size=json.loads("[" * 900 + "]" * 900)),
    "rope_theta is -1; expected a finite number above 0": but(rope_theta=-1),
    "tie_word_embeddings is 1; expected true or false": but(tie_word_embeddings=1),
    "eos_token_id is 'x'; expected a token id": but(eos_token_id="x"),
    "eos_token_id is .*expected a token id": but(eos_token_id=[1, -1]),
    "hidden_act is 'relu'; supported: 'silu'": but(hidden_act="relu"),
    "config.json: heads must be a multiple of kv_heads": but(num_key_value_heads=7),
    "rope_scaling is 'linear'; expected an object": but(rope_scaling="linear"),
    "rope_scaling: rope_type is 'longrope'; supported: 'default', 'linear', 'llama3', 'yarn'": but(
        rope_scaling=dict(rope_type="longrope")
    ),
    "rope_parameters: full_attention is .*for gemma3_text only": but(rope_parameters=dict(full_attention={})),
    "rope_parameters is .*; expected full_attention and": but("gemma-3-1b", rope_parameters=dict(rope_type="default")),
    "rope_scaling: factor is missing": but(rope_scaling=dict(type="linear")),
    "low_freq_factor is 4.0; expected less than high_freq_factor": but(
        rope_scaling=LLAMA["rope_scaling"] | {"low_freq_factor": 4.0}
    ),
    "partial_rotary_factor is 0.5; supported: 1.0": but(partial_rotary_factor=0.5),
    "layer_types is .*one entry for each of 26 layers": but("gemma-2-2b", layer_types=["full_attention"]),
    "layer_types.*'chunked_attention' in it is unsupported": but("gemma-2-2b", layer_types=["chunked_attention"] * 26),
    "scale_attn_by_inverse_layer_idx is True": but("gpt2", scale_attn_by_inverse_layer_idx=True),
    "activation_function is 'relu'": but("gpt2", activation_function="relu"),
    "mlp_only_layers is .*the first layers only": but("qwen3-30b-a3b", mlp_only_layers=[3]),
    "mlp_only_layers is 5": but("qwen3-30b-a3b", mlp_only_layers=5),
    "n_group is 7; expected a divisor of 256 experts": but("deepseek-v3", n_group=7),
    "config.json: top_k must lie in 1..128": but("qwen3-30b-a3b", num_experts_per_tok=129),
    "topk_method is 'greedy'; supported: 'noaux_tc'": but("deepseek-v3", topk_method="greedy"),
    "norm_topk_prob is True; supported: False": but("deepseek-v2-lite", norm_topk_prob=True),
    "moe_layer_freq is 2": but("deepseek-v3", moe_layer_freq=2),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_computed_is_refused_by_name(message):
    with pytest.raises(ValueError, match=message):
        config_from_hugging_face(REFUSED[message], "x")


def test_every_family_that_is_offered_has_a_published_config_here():
    assert FAMILIES.keys() - {config["model_type"] for config in PUBLISHED.values()} == {"qwen3"}  # qwen3_moe shares it
