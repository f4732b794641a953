"""Parameters and FLOPs as an independent implementation counts them: transformers' models, built without memory.

On torch's "meta" device a model of any size has shapes and no numbers, so that the real sizes of all presets are tried.
"""

import warnings
from collections.abc import Iterable
from dataclasses import replace

import pytest
import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

from llminfer.basics import steps
from llminfer.basics.config import ModelConfig
from llminfer.basics.parameters import parameter_count
from llminfer.basics.presets import PRESETS, preset
from llminfer.basics.steps import Segment, step_costs, visible_pairs

ONE_OF_EACH_FAMILY = (
    "gpt2-xl",
    "llama-3-8b",
    "mistral-7b-v0.1",
    "qwen2.5-7b",
    "qwen3-8b",
    "qwen3-30b-a3b",
    "mixtral-8x7b",
    "gemma-2-27b",
    "gemma-3-4b",
    "gpt-oss-20b",
    "deepseek-v2-lite",
    "deepseek-v3",
)
QUICK = ("llama-3-8b", "qwen3-30b-a3b", "deepseek-v3")


def some_quick(names: Iterable[str], quick: Iterable[str]) -> list:
    """The names, all but the quick ones marked as slow."""
    return [pytest.param(name, marks=[] if name in quick else [pytest.mark.slow]) for name in names]


def twin(config: ModelConfig) -> torch.nn.Module:
    """The same model in transformers, on the meta device."""
    described = {
        "num_hidden_layers": config.layers,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_width,
        "intermediate_size": config.feed_forward,
        "vocab_size": config.vocabulary,
        "tie_word_embeddings": config.tied,
        "attn_implementation": "eager",
        "experts_implementation": "batched_mm",  # the one whose FLOPs do not depend on where tokens are routed
    }
    if config.windows:
        kinds = ["full_attention" if window is None else "sliding_attention" for window in config.windows]
        described |= {"layer_types": kinds, "sliding_window": config.windows[0]}
    if moe := config.moe:
        described |= {
            "num_experts_per_tok": moe.top_k,
            "moe_intermediate_size": moe.expert_width,
            "first_k_dense_replace": moe.first_layer,
            "n_shared_experts": moe.shared_width // moe.expert_width,
            "n_group": moe.groups,
            "topk_group": moe.top_groups,
        }
    if mla := config.mla:
        described |= {
            "head_dim": mla.rope_width,
            "q_lora_rank": mla.q_rank,
            "kv_lora_rank": mla.kv_rank,
            "qk_rope_head_dim": mla.rope_width,
            "qk_nope_head_dim": mla.nope_width,
            "v_head_dim": mla.value_width,
        }
    family = transformers_family(config)
    if family in ("GPT2", "OPT"):
        described |= {"n_layer": config.layers, "n_embd": config.width, "n_head": config.heads}
        described |= {"ffn_dim": config.feed_forward, "n_positions": config.context}
        described = {name: value for name, value in described.items() if name not in ("head_dim", "intermediate_size")}
    kind = {"Gemma3": "Gemma3Text"}.get(family, family)
    settings = getattr(transformers, f"{kind}Config")
    experts = {"Mixtral": "num_local_experts", "GptOss": "num_local_experts", "Qwen3Moe": "num_experts"}
    described |= {experts.get(family, "n_routed_experts"): config.moe.experts} if config.moe else {}
    described |= {"num_mtp_layers": 0} if family == "DeepseekV3" else {}
    head = "LMHeadModel" if family == "GPT2" else "ForCausalLM"
    with torch.device("meta"):
        return getattr(transformers, family + head)(settings(**described))


def transformers_family(config: ModelConfig) -> str:
    families = {
        "gpt2": "GPT2",
        "opt": "OPT",
        "mistral": "Mistral",
        "mixtral": "Mixtral",
        "qwen2.5": "Qwen2",
        "qwen3": "Qwen3Moe" if config.moe else "Qwen3",
        "deepseek-v2": "DeepseekV2",
        "deepseek": "DeepseekV3",
        "gemma-2": "Gemma2",
        "gemma-3": "Gemma3",
        "gpt-oss": "GptOss",
    }
    return next((family for prefix, family in families.items() if config.name.startswith(prefix)), "Llama")


@pytest.mark.parametrize("name", some_quick(PRESETS, quick=ONE_OF_EACH_FAMILY))
def test_transformers_counts_the_same_parameters(name):
    config = preset(name)
    expected = twin(config).num_parameters()
    if config.moe and config.moe.scoring == "sigmoid":  # transformers keeps this bias as a buffer, no parameter
        expected += (config.layers - config.moe.first_layer) * config.moe.experts
    if name.startswith("opt"):
        expected -= 2 * config.width  # two rows of its position table that no token uses
    assert parameter_count(config).total == expected


def few_layers(name: str) -> ModelConfig:
    """The preset with its first layers only, enough to have every kind of layer."""
    config = preset(name)
    return replace(config, layers=6, windows=config.windows[:6])


def transformers_flops(model: torch.nn.Module, tokens: int, context: int) -> int:
    """FLOPs of the matrix products of one forward pass; causal attention computes the whole square."""
    with torch.device("meta"), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        past = transformers.DynamicCache(config=model.config)
        if context:
            model(torch.zeros(1, context, dtype=torch.long), past_key_values=past, use_cache=True)
        with FlopCounterMode(display=False) as counter:
            model(torch.zeros(1, tokens, dtype=torch.long), past_key_values=past, use_cache=True, logits_to_keep=1)
    return counter.get_total_flops()


def our_flops_without_mask(config: ModelConfig, tokens: int, context: int) -> float:
    """Our count, but with attention over every (query, key) pair, also those that the mask hides."""
    costs = step_costs(config, [Segment(tokens, context)])
    seen = sum(visible_pairs(tokens, context, config.window(layer)) for layer in range(config.layers))
    hidden_too = config.layers * tokens * (context + tokens)
    attention = costs.pop("attention").flops * hidden_too / seen
    return sum(cost.flops for cost in costs.values()) + attention


@pytest.mark.parametrize("name", some_quick(ONE_OF_EACH_FAMILY, quick=QUICK))
def test_transformers_spends_the_same_flops_on_a_prompt(name):
    config = few_layers(name)
    assert our_flops_without_mask(config, 48, 0) == transformers_flops(twin(config), 48, 0)


@pytest.mark.parametrize("name", some_quick(ONE_OF_EACH_FAMILY, quick=QUICK))
def test_transformers_spends_the_same_flops_on_a_decode(name, monkeypatch):
    config = few_layers(name)
    if config.mla:  # transformers has no absorbed form: it unfolds the latents of the whole context at every step
        monkeypatch.setattr(steps, "_expands", lambda config, segment: True)
    assert our_flops_without_mask(config, 1, 40) == transformers_flops(twin(config), 1, 40)


def test_absorbed_mla_spends_the_flops_of_its_four_products():
    config = preset("deepseek-v3")
    H, mla, S = config.heads, config.mla, 1000
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        q_nope, q_rope = torch.empty(H, 1, mla.nope_width), torch.empty(H, 1, mla.rope_width)
        latent = torch.empty(S + 1, mla.kv_rank + mla.rope_width)
        query = torch.cat([torch.bmm(q_nope, torch.empty(H, mla.nope_width, mla.kv_rank)), q_rope], dim=-1)
        scores = query.squeeze(1) @ latent.T  # [H, S + 1]
        value = scores @ latent[:, : mla.kv_rank]  # [H, kv_rank]
        torch.bmm(value.unsqueeze(1), torch.empty(H, mla.kv_rank, mla.value_width))
    costs = step_costs(config, [Segment(1, S)])
    ours = sum(costs[part].flops for part in ("k_up", "attention", "v_up"))
    assert ours == config.layers * counter.get_total_flops()
