"""Every family, randomly initialised by transformers, saved by it, loaded by us: the same tokens give the same logits.

transformers computes norms, softmax and rotation in float32 whatever the model's dtype. So float64 agrees to 1e-6 only;
with every cast made double (`FloatIsDouble`) the two agree to the last digits, which no small error survives.
"""

import numpy as np
import pytest
import torch
import transformers
from torch.overrides import TorchFunctionMode
from transformers import (
    DeepseekV2Config,
    DeepseekV3Config,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    GptOssConfig,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
)

from llminfer.basics.checkpoints import load_model
from llminfer.basics.memory import NoCache

V, T = 101, 29  # the windows below are shorter than the text

DECODER = dict(
    vocab_size=V,
    hidden_size=48,
    intermediate_size=56,
    num_hidden_layers=3,
    num_attention_heads=6,
    num_key_value_heads=2,
    max_position_embeddings=64,
    tie_word_embeddings=False,
)
LATENT = DECODER | dict(
    num_attention_heads=3,
    num_key_value_heads=3,
    kv_lora_rank=20,
    qk_nope_head_dim=10,
    qk_rope_head_dim=6,
    head_dim=6,
    v_head_dim=14,
    moe_intermediate_size=18,
    n_routed_experts=8,
    n_shared_experts=2,
    num_experts_per_tok=3,
    first_k_dense_replace=1,
    routed_scaling_factor=1.7,
    n_group=4,
    topk_group=2,
)
LLAMA3 = dict(
    rope_type="llama3",
    rope_theta=10_000.0,
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=16,
)
YARN = dict(rope_type="yarn", rope_theta=10_000.0, factor=4.0, original_max_position_embeddings=16, beta_fast=2.0)

FAMILIES = {
    "gpt2": GPT2Config(vocab_size=V, n_positions=32, n_embd=40, n_layer=3, n_head=5),
    "llama": LlamaConfig(**DECODER),
    "llama-tied": LlamaConfig(**DECODER | dict(tie_word_embeddings=True)),
    "llama-biased": LlamaConfig(**DECODER, attention_bias=True, mlp_bias=True),
    "llama3-rope": LlamaConfig(**DECODER, rope_parameters=LLAMA3),
    "llama-linear": LlamaConfig(**DECODER, rope_parameters=dict(rope_type="linear", rope_theta=10_000.0, factor=4.0)),
    "llama-yarn": LlamaConfig(**DECODER, rope_parameters=YARN),
    "mistral": MistralConfig(**DECODER, sliding_window=7),
    "qwen2": Qwen2Config(**DECODER),
    "qwen2-window": Qwen2Config(**DECODER, use_sliding_window=True, sliding_window=9, max_window_layers=1),
    "qwen3": Qwen3Config(**DECODER, head_dim=16),
    "gemma2": Gemma2Config(
        **DECODER | dict(tie_word_embeddings=True),
        head_dim=16,
        query_pre_attn_scalar=24,
        sliding_window=8,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=3.0,
    ),
    "gemma3_text": Gemma3TextConfig(
        **DECODER | dict(tie_word_embeddings=True),
        head_dim=16,
        query_pre_attn_scalar=24,
        sliding_window=8,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
    "mixtral": MixtralConfig(**DECODER, num_local_experts=5, num_experts_per_tok=2),
    "qwen3_moe": Qwen3MoeConfig(
        **DECODER, head_dim=16, num_experts=7, num_experts_per_tok=3, moe_intermediate_size=20, norm_topk_prob=True
    ),
    "qwen3_moe-raw-weights": Qwen3MoeConfig(
        **DECODER, head_dim=16, num_experts=7, num_experts_per_tok=3, moe_intermediate_size=20, mlp_only_layers=[0]
    ),
    "deepseek_v2-lite": DeepseekV2Config(**LATENT, q_lora_rank=None, topk_method="greedy"),
    "deepseek_v2": DeepseekV2Config(**LATENT, q_lora_rank=22, topk_method="group_limited_greedy"),
    "deepseek_v3": DeepseekV3Config(
        **LATENT, q_lora_rank=22, rope_parameters=YARN | dict(mscale=0.8, mscale_all_dim=1.0), norm_topk_prob=True
    ),
    "gpt_oss": GptOssConfig(**DECODER, head_dim=16, sliding_window=8, num_local_experts=5, num_experts_per_tok=2),
}


def random_model(name: str, dtype: torch.dtype) -> transformers.PreTrainedModel:
    """A model with every parameter random, gains and biases included, so that each of them shows in the logits."""
    torch.manual_seed(len(name))
    model = transformers.AutoModelForCausalLM.from_config(FAMILIES[name], attn_implementation="eager", dtype=dtype)
    model.set_experts_implementation("eager")
    gemma = name.startswith("gemma")
    with torch.no_grad():
        for weight_name, weight in model.named_parameters():
            if weight.ndim == 1 and "norm" in weight_name or ".ln_" in weight_name and weight_name.endswith("weight"):
                weight.copy_((0.0 if gemma else 1.0) + 0.2 * torch.randn_like(weight))
            else:
                weight.copy_(torch.randn_like(weight) * (0.12 if weight.ndim > 1 else 0.3))
        for buffer_name, buffer in model.named_buffers():
            if buffer_name.endswith("e_score_correction_bias"):
                buffer.copy_(0.2 * torch.randn_like(buffer))
    return model.eval()


def expected_logits(model: transformers.PreTrainedModel, tokens: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return model(torch.from_numpy(tokens)[None], use_cache=False).logits[0].numpy()


def our_logits(model, tokens: np.ndarray) -> np.ndarray:
    view = NoCache(model.config).step([0], [len(tokens)])
    return model.head(model.hidden(tokens, np.arange(len(tokens)), view))


def relative_error(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Largest difference over largest logit; NaN never passes a comparison."""
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


class FloatIsDouble(TorchFunctionMode):
    """While it is on, whatever asks torch for float32 gets float64."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        func = torch.Tensor.double if func is torch.Tensor.float else func
        args = [torch.float64 if arg is torch.float32 else arg for arg in args]
        kwargs = {name: torch.float64 if arg is torch.float32 else arg for name, arg in (kwargs or {}).items()}
        return func(*args, **kwargs)


@pytest.fixture(scope="module")
def tokens() -> np.ndarray:
    return np.random.default_rng(7).integers(0, V, T)


@pytest.mark.parametrize("name", FAMILIES)
def test_float32_logits_agree_with_transformers(name, tokens, tmp_path):
    theirs = random_model(name, torch.float32)
    theirs.save_pretrained(tmp_path)
    ours = our_logits(load_model(tmp_path), tokens)
    assert ours.dtype == np.float32
    assert relative_error(ours, expected_logits(theirs, tokens)) < 1e-4


@pytest.mark.parametrize("name", FAMILIES)
def test_float64_logits_agree_to_the_last_digits(name, tokens, tmp_path):
    with FloatIsDouble():
        theirs = random_model(name, torch.float64)
        exact = expected_logits(theirs, tokens)
    rounded_inside = expected_logits(theirs, tokens)
    theirs.save_pretrained(tmp_path)
    ours = our_logits(load_model(tmp_path, dtype="float64"), tokens)
    assert ours.dtype == np.float64
    assert relative_error(ours, rounded_inside) < 1e-6
    assert relative_error(ours, exact) < 1e-10


def test_taps_are_the_hidden_states_that_transformers_reports(tokens, tmp_path):
    theirs = random_model("llama", torch.float32)
    theirs.save_pretrained(tmp_path)
    with torch.no_grad():
        states = theirs(torch.from_numpy(tokens)[None], use_cache=False, output_hidden_states=True).hidden_states
    model = load_model(tmp_path)
    tapped = model.hidden(tokens, np.arange(T), NoCache(model.config).step([0], [T]), taps=(0, 1))
    for layer, ours in tapped.after.items():  # theirs begin with the embedding, and their last one is normed
        assert relative_error(ours, states[layer + 1][0].numpy()) < 1e-5
