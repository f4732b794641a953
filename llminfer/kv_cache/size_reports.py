"""What `llminfer kv` shows: what a model's cache takes on a device and how much fits, or twenty models side by side.

Only the description of a model is read, never its weights.
"""

from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path

from llminfer.basics.checkpoints import available_models, model_path
from llminfer.basics.config import ModelConfig
from llminfer.basics.gguf_files import read_gguf
from llminfer.basics.gguf_models import config_from_gguf
from llminfer.basics.hugging_face import config_from_hugging_face
from llminfer.basics.presets import preset
from llminfer.basics.safetensors_files import read_json
from llminfer.core.hardware import device as device_called
from llminfer.core.pair_reports import Report
from llminfer.kv_cache.kv_formats import kv_format
from llminfer.kv_cache.sizes import (
    RESERVE,
    STEP_TOKENS,
    attention_kind,
    bytes_per_token,
    cache_bytes,
    max_batch,
    memory_need,
)

TWENTY: tuple[str, ...] = (
    *("gpt2-xl", "opt-13b", "llama-2-7b", "llama-2-70b", "llama-3-8b", "llama-3-70b", "llama-3.1-405b"),
    *("mistral-7b-v0.1", "mixtral-8x7b", "qwen2.5-7b", "qwen3-32b", "qwen3-235b-a22b"),
    *(
        "deepseek-v2-lite",
        "deepseek-v3",
        "gemma-2-27b",
        "gemma-3-1b",
        "gemma-3-27b",
        "gpt-oss-20b",
        "gpt-oss-120b",
        "smollm2-135m",
    ),
)
"""Twenty models of the presets, one or more of each way to store keys and values."""


@dataclass(frozen=True)
class DescribedModel:
    """A model's numbers, and the type of its weights or their bytes an element as it was published; None: unknown."""

    config: ModelConfig
    weights: str | float | None


def describe_model(source: str | Path) -> DescribedModel:
    """A preset, "tiny", "smollm2", a GGUF file, a config.json, or the folder of one.

    Raises ValueError when it is none of these, and when the description is damaged or of an unknown kind.
    Book section 3.2.1.
    """
    try:
        return DescribedModel(preset(str(source)), "bfloat16")
    except ValueError as unknown:
        named = str(source) in {model.name for model in available_models()}
        path = model_path(source) if named else Path(source).expanduser()
        if not path.exists():
            raise ValueError(f"{unknown}. There is no file or folder of that name either") from None
    if path.is_dir() or path.suffix == ".json":
        return _from_json(path / "config.json" if path.is_dir() else path)
    file = read_gguf(path)
    elements = sum(prod(tensor.shape) for tensor in file.tensors.values())
    stored = sum(tensor.nbytes for tensor in file.tensors.values())
    return DescribedModel(config_from_gguf(file, path.stem), stored / elements if elements else None)


def _from_json(path: Path) -> DescribedModel:
    if not path.is_file():
        raise ValueError(f"{path.parent} has no config.json; expected a folder as Hugging Face lays it out")
    raw = read_json(path)
    config = config_from_hugging_face(raw, path.parent.name, str(path))
    named = raw.get("dtype") or raw.get("torch_dtype")  # the newer name first
    plain = raw.get("quantization_config") is None and named in ("float32", "float16", "bfloat16")
    return DescribedModel(config, named if plain else None)


def size_report(
    model: str | Path,
    context: int = 8192,
    batch: int = 1,
    device: str = "h100-sxm",
    dtype: str | float = "bfloat16",
    weights: str | float | None = None,
    devices: int = 1,
) -> Report:
    """What `batch` sequences of up to `context` tokens need on a device, part by part, and how many would fit.

    weights: their type or bytes an element; None: as the model was published. Raises ValueError where that is not
    known, and as `describe_model`, `memory_need` and `device` do. Book section 3.2.1.
    """
    described, target = describe_model(model), device_called(device)
    config, weights = described.config, described.weights if weights is None else weights
    if weights is None:
        raise ValueError(
            f"{model} does not say how its weights are stored; name a type or bytes an element (--weights)"
        )
    need = memory_need(config, target, batch, context, dtype, weights, devices=devices)
    most = max_batch(config, target, context, dtype, weights, devices=devices)
    token, later = bytes_per_token(config, dtype), bytes_per_token(config, dtype, context)
    sizes = {
        f"a sequence of {context:,} tokens": cache_bytes(config, 1, context, dtype, devices=devices),
        f"{batch:,} of them": need.cache_bytes,
        "weights": need.weight_bytes,
        f"activations of a step of {STEP_TOKENS:,} tokens": need.activation_bytes,
        f"reserve, {RESERVE:.0%}": need.reserve_bytes,
        f"all, with {batch:,}": need.total_bytes,
    }
    fits = need.total_bytes <= target.memory_bytes
    where = target.name if devices == 1 else f"each of {devices} {target.name}"
    answer = f"This {'fits' if fits else 'does not fit'} in the {target.memory_bytes / 1e9:g} GB of {where}. " + (
        f"At most {most:,} sequences of {context:,} tokens do."
        if most
        else "Nor does a single sequence: more devices, or fewer bits for weights or cache, would make room."
    )
    data = asdict(need) | {"total_bytes": need.total_bytes, "memory_bytes": target.memory_bytes, "fits": fits}
    data |= {"bytes_per_token": token, "bytes_per_token_behind_context": later, "max_batch": most}
    data |= {"model": config.name, "attention": attention_kind(config), "context": context, "devices": devices}
    return Report(
        f"KV cache of {config.name} in {kv_format(dtype).name}, on {where}",
        ("", "bytes", "GB", "GiB"),
        tuple((what, f"{size:,}", f"{size / 1e9:.2f}", f"{size / 2**30:.2f}") for what, size in sizes.items()),
        [data],
        notes=(answer, *_on_tokens(config, token, later, context)),
    )


@dataclass(frozen=True)
class ModelSize:
    """One row of `models_report`. Widths are those of what is stored: of MLA the latent and the rotated part."""

    model: str
    attention: str
    layers: int
    kv_heads: int
    key_width: int
    bytes_per_token: float
    bytes_per_token_behind_context: float
    sequence_bytes: int


def models_report(context: int = 8192, dtype: str | float = "bfloat16") -> Report:
    """Twenty models side by side: what a token and a sequence of `context` tokens take. Book section 3.2.1."""
    sizes = [_model_size(preset(name), context, dtype) for name in TWENTY]
    rows = tuple(
        (
            *(size.model, size.attention, f"{size.layers}", f"{size.kv_heads}", f"{size.key_width}"),
            *(f"{size.bytes_per_token:,}", f"{size.bytes_per_token_behind_context:,}"),
            *(f"{size.sequence_bytes / 1e9:.3f}", f"{size.sequence_bytes / 2**30:.3f}"),
        )
        for size in sizes
    )
    columns = ("model", "attention", "L", "K", "E", "bytes a token", f"behind {context:,}", "GB", "GiB")
    note = (
        f"GB and GiB: a sequence of {context:,} tokens, whether or not the model was made for as many. "
        f'"Behind {context:,}": what a token adds behind so many others; a layer whose window is full grows no more.'
    )
    return Report(
        f"Twenty models, cache in {kv_format(dtype).name}", columns, rows, [*map(asdict, sizes)], notes=(note,)
    )


def _model_size(config: ModelConfig, context: int, dtype: str | float) -> ModelSize:
    spec = config.attention(0)
    return ModelSize(
        config.name,
        attention_kind(config),
        config.layers,
        spec.kv_heads,
        spec.key_width,
        bytes_per_token(config, dtype),
        bytes_per_token(config, dtype, context),
        cache_bytes(config, 1, context, dtype),
    )


def _on_tokens(config: ModelConfig, token: float, later: float, context: int) -> list[str]:
    """A note on tokens, and others on windows and on the model's own context where they matter."""
    notes = [f"{attention_kind(config)}: a token takes {token:,} bytes in {config.layers} layers."]
    if context > config.context:
        notes.append(f"The model was made for {config.context:,} tokens.")
    with_window = [window for layer in range(config.layers) if (window := config.window(layer))]
    if with_window:
        shown = " or ".join(f"{window:,}" for window in sorted(set(with_window)))
        notes.append(
            f"{len(with_window)} layers keep the latest {shown} tokens: behind {context:,} others it takes {later:,}."
        )
    return notes
