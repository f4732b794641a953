"""config.json of a Hugging Face folder, read into a ModelConfig.

Knows the families of `FAMILIES` and says so about any other; what a family can switch on but this library does not
compute (another activation, partial rotation, another scaling of RoPE) is refused rather than ignored.
"""

from collections.abc import Callable, Mapping
from typing import Any

from llminfer.basics import hugging_face_dense as dense
from llminfer.basics import hugging_face_experts as experts
from llminfer.basics.config import ModelConfig
from llminfer.basics.hugging_face_rope import rope_from_config
from llminfer.basics.model_fields import Fields

FAMILIES: dict[str, Callable[[Fields], dict[str, Any]]] = {
    "gpt2": dense.gpt2,
    "llama": dense.llama,
    "mistral": dense.mistral,
    "mixtral": experts.mixtral,
    "qwen2": dense.qwen2,
    "qwen3": dense.qwen3,
    "qwen3_moe": experts.qwen3_moe,
    "gemma2": dense.gemma2,
    "gemma3_text": dense.gemma3,
    "deepseek_v2": experts.deepseek_v2,
    "deepseek_v3": experts.deepseek_v3,
    "gpt_oss": experts.gpt_oss,
}


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
