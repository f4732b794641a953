"""transformers' side of the benchmark: our weights in its Llama, float32, with "eager" attention and its own cache."""

import warnings
from functools import partial

import numpy as np
import torch
from bench_sides import Case, Step
from contiguous_cache import ContiguousCache
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from llminfer.basics.config import ModelConfig, RopeSpec
from llminfer.basics.transformer import Transformer

warnings.filterwarnings("ignore", "`past_key_values`", FutureWarning)  # the name that every version 5 knows


class TransformersSide:
    """A LlamaForCausalLM on the very memory of our weights, in inference mode. Makes torch use `threads` threads.

    Raises ValueError for a model that is not a plain Llama.
    """

    def __init__(self, model: Transformer, threads: int) -> None:
        torch.set_num_threads(threads)
        self.config = model.config
        self.model = LlamaForCausalLM(llama_config(model.config)).eval()
        self.model.load_state_dict(llama_state(model), assign=True)

    def open(self, case: Case, stored: ContiguousCache) -> Step:
        """See `bench_sides.Side.open`."""
        ids = torch.from_numpy(case.ids(self.config)).reshape(case.batch, case.new)  # [B, new]
        if case.is_prefill:
            return lambda: self._step(ids, DynamicCache())
        cache = DynamicCache()
        for layer in range(self.config.layers):
            cache.update(*(rows(array[layer], case) for array in (stored.keys, stored.values)), layer)
        return partial(self._step, ids, cache)

    @torch.inference_mode()
    def _step(self, ids: torch.Tensor, cache: DynamicCache) -> np.ndarray:
        return self.model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1].numpy()


def rows(stored: np.ndarray, case: Case) -> torch.Tensor:
    """[K, S, E] of one sequence -> [B, K, context, E], the same for all."""
    return torch.from_numpy(stored[:, : case.context]).expand(case.batch, -1, -1, -1)


def llama_config(config: ModelConfig) -> LlamaConfig:
    """Its config of the same model. Raises ValueError when a plain Llama is not the same model."""
    plain = ModelConfig(
        name=config.name,
        layers=config.layers,
        width=config.width,
        heads=config.heads,
        kv_heads=config.kv_heads,
        head_width=config.head_width,
        feed_forward=config.feed_forward,
        vocabulary=config.vocabulary,
        context=config.context,
        norm_eps=config.norm_eps,
        rope=RopeSpec(theta=config.rope.theta),
        tied=config.tied,
        bos_id=config.bos_id,
        eos_ids=config.eos_ids,
    )
    if config != plain:
        raise ValueError(f"{config.name} is not a plain Llama, and the benchmark makes nothing else in transformers")
    return LlamaConfig(
        num_hidden_layers=config.layers,
        hidden_size=config.width,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        head_dim=config.head_width,
        intermediate_size=config.feed_forward,
        vocab_size=config.vocabulary,
        max_position_embeddings=config.context,
        rms_norm_eps=config.norm_eps,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope.theta},
        tie_word_embeddings=config.tied,
        attn_implementation="eager",
    )


def llama_state(model: Transformer) -> dict[str, torch.Tensor]:
    """Our weights under its names, the fused ones apart. Nothing is copied: both are stored [out, in]."""
    config, weights = model.config, model.weights
    H, K, E, F = config.heads, config.kv_heads, config.head_width, config.feed_forward
    state = {
        "model.embed_tokens.weight": torch.from_numpy(weights["embedding"].array),
        "model.norm.weight": torch.from_numpy(weights["final_norm"]),
        "lm_head.weight": torch.from_numpy(model.unembedding.array.T),
    }
    for i in range(config.layers):
        w, prefix = model.layers[i], f"model.layers.{i}."
        fused = {
            ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"): ("qkv", (H * E, K * E, K * E)),
            ("self_attn.o_proj",): ("output", (config.width,)),
            ("mlp.gate_proj", "mlp.up_proj"): ("gate_up", (F, F)),
            ("mlp.down_proj",): ("down", (config.width,)),
        }
        for names, (ours, widths) in fused.items():
            for name, part in zip(names, torch.from_numpy(w[ours].array.T).split(widths), strict=True):
                state[f"{prefix}{name}.weight"] = part
        state[f"{prefix}input_layernorm.weight"] = torch.from_numpy(w["attention_norm"])
        state[f"{prefix}post_attention_layernorm.weight"] = torch.from_numpy(w["feed_forward_norm"])
    return state
