"""A model in a GGUF file: its metadata read into a ModelConfig, its tensors presented under their Hugging Face names.

llama.cpp reorders the rows of q and k in "llama" files so that RoPE turns neighbours; here they are put back, because
the library keeps pairs in halves.
"""

import re

import numpy as np

from llminfer.basics.config import ModelConfig, RopeSpec
from llminfer.basics.gguf_files import GgufFile
from llminfer.basics.model_fields import MOST_LAYERS, Fields
from llminfer.basics.rotary import rope_frequencies

ARCHITECTURES = ("llama", "qwen2", "qwen3")
LLAMA3_CONTEXT = 8192  # what Llama 3 was trained on before its RoPE was stretched; the file does not say

NAMES = {  # llama.cpp's name: Hugging Face's
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def config_from_gguf(file: GgufFile, name: str) -> ModelConfig:
    """The model that a GGUF file describes, `name` being what to call it.

    Raises ValueError naming the metadata key when it is missing, malformed or asks for something unsupported.
    """
    fields = Fields(file.metadata, file.where)
    architecture = fields.demand("general.architecture", None, *ARCHITECTURES)
    fields.demand(f"{architecture}.expert_count", 0, 0)

    def count(key: str, default: int | None = None) -> int:
        return fields.integer(f"{architecture}.{key}", default)

    heads, width = count("attention.head_count"), count("embedding_length")
    head_width = count("attention.key_length", count("rope.dimension_count", max(1, width // heads)))
    fields.demand(f"{architecture}.attention.value_length", head_width, head_width)
    fields.demand(f"{architecture}.rope.dimension_count", head_width, head_width)
    bos, eos = fields.token_ids("tokenizer.ggml.bos_token_id"), fields.token_ids("tokenizer.ggml.eos_token_id")
    tokens = file.metadata.get("tokenizer.ggml.tokens")
    described = {
        "layers": fields.integer(f"{architecture}.block_count", most=MOST_LAYERS),
        "width": width,
        "heads": heads,
        "kv_heads": count("attention.head_count_kv", heads),
        "head_width": head_width,
        "feed_forward": count("feed_forward_length"),
        "vocabulary": count("vocab_size", len(tokens) if isinstance(tokens, list) else None),
        "context": count("context_length"),
        "norm_eps": fields.number(f"{architecture}.attention.layer_norm_rms_epsilon"),
        "rope": _rope(file, fields, architecture, head_width),
        "tied": "output.weight" not in file.tensors,
        "qkv_bias": "blk.0.attn_q.bias" in file.tensors,
        "output_bias": "blk.0.attn_output.bias" in file.tensors,
        "qk_norm": architecture == "qwen3",
    }
    try:
        return ModelConfig(name=name, bos_id=bos[0] if bos else None, eos_ids=eos, **described)
    except ValueError as contradiction:
        raise ValueError(f"{file.where}: {contradiction}") from None


class GgufTensors:
    """A GGUF file as a `TensorSource` in the Hugging Face layout: other names, and q and k in halves again."""

    def __init__(self, file: GgufFile, config: ModelConfig) -> None:
        self.where = file.where
        self._file = file
        self._heads = {"q_proj": config.heads, "k_proj": config.kv_heads}
        self._permuted = file.metadata.get("general.architecture") == "llama"
        self._theirs = {hugging_face_name(name): name for name in file.tensors if name != "rope_freqs.weight"}
        self.shapes = {ours: file.tensors[theirs].shape for ours, theirs in self._theirs.items()}

    def load(self, name: str) -> np.ndarray:
        """One tensor in float32."""
        tensor = self._file.load(self._theirs[name])
        projection = name.rpartition(".")[0].rpartition(".")[2]
        if self._permuted and projection in self._heads:
            return halves_from_neighbours(tensor, self._heads[projection])
        return tensor


def hugging_face_name(name: str) -> str:
    """blk.3.attn_q.weight -> model.layers.3.self_attn.q_proj.weight; a name that is not known stays as it is."""
    found = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)", name)
    if not found or found[2] not in NAMES:
        return name
    prefix = "" if found[1] is None else f"model.layers.{found[1]}."
    return f"{prefix}{NAMES[found[2]]}.{found[3]}"


def halves_from_neighbours(rows: np.ndarray, heads: int) -> np.ndarray:
    """Undo llama.cpp's order of the rows of q or k: within each head, row 2i goes to i and 2i + 1 to i + E/2."""
    split = rows.reshape(heads, -1, 2, *rows.shape[1:])  # [H, E/2, 2, ...]
    return split.swapaxes(1, 2).reshape(rows.shape)


def _rope(file: GgufFile, fields: Fields, architecture: str, head_width: int) -> RopeSpec:
    scaling = fields.demand(f"{architecture}.rope.scaling.type", "none", "none", "linear")
    theta = fields.number(f"{architecture}.rope.freq_base", 1e4)
    if "rope_freqs.weight" in file.tensors:
        return _llama3_rope(file, theta, head_width)
    if scaling == "linear":
        return RopeSpec(theta=theta, scaling="linear", factor=fields.number(f"{architecture}.rope.scaling.factor"))
    return RopeSpec(theta=theta)


def _llama3_rope(file: GgufFile, theta: float, head_width: int) -> RopeSpec:
    """llama.cpp stores what Llama 3.1 divides each frequency by; find the scaling that gives these divisors."""
    divisors = file.load("rope_freqs.weight")
    plain = RopeSpec(theta=theta)
    spec = RopeSpec(theta, scaling="llama3", factor=float(divisors.max()), original_context=LLAMA3_CONTEXT)
    if divisors.shape == (head_width // 2,) and 1 < spec.factor < np.inf:
        expected = rope_frequencies(plain, head_width) / rope_frequencies(spec, head_width)
        if np.allclose(divisors, expected, rtol=1e-4):
            return spec
    raise ValueError(f"{file.where}: tensor rope_freqs.weight is not Llama 3.1's scaling of RoPE, the one known here")
