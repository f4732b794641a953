"""How large a KV cache is, to the byte, and how many sequences fit beside the weights.

All follows from what each layer asks of a cache (`ModelConfig.attention`): heads, widths, window, and whether a value
is the beginning of its key, as in MLA. Sizes are bytes; a GB is 1e9 of them and a GiB 2**30.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import ceil
from typing import Any

from llminfer.basics.config import AttentionSpec, ModelConfig
from llminfer.basics.parameters import parameter_count
from llminfer.basics.steps import check_at_least, element_bytes
from llminfer.core.hardware import Device
from llminfer.kv_cache.kv_formats import KVFormat, kv_format, widths

LOGIT_BYTES = 4  # logits are kept in float32
STEP_TOKENS = 2048  # a common limit of the tokens that engines put in a step
RESERVE = 0.1  # a common default: engines fill 90% of the memory


def bytes_per_token(
    config: ModelConfig, dtype: str | float | KVFormat = "bfloat16", context: int = 0, kv_owner: Sequence[int] = ()
) -> float:
    """Bytes that a token adds to the cache, behind `context` others: 2·L·K·E elements without windows, sharing or MLA.

    A layer whose window is full already adds nothing: it forgets a token for each that it takes in.
    dtype: see `kv_format`; scales that grow with the tokens are counted, and a token of a quantized format as one that
        has left the tail.
    kv_owner: for each layer the layer whose keys and values it reads, itself or an earlier one; () if all store theirs.
    Raises ValueError for a negative context and for a kv_owner that cannot be.
    Sources: vLLM, section 3 (MHA); DeepSeek-V2, table 1 (GQA, MQA, MLA); Brandon et al. 2024 (layers that share).
    Book section 3.2.1.
    """
    check_at_least("context", context, 0)
    stored, form = _stored_layers(config, tuple(kv_owner)), kv_format(dtype)
    growing = {spec: layers for spec, layers in stored.items() if spec.window is None or context < spec.window}
    return sum(layers * form.token_bytes(spec) for spec, layers in growing.items())


def cache_bytes(
    config: ModelConfig,
    batch: int,
    length: int,
    dtype: str | float | KVFormat = "bfloat16",
    block_size: int = 1,
    max_rollback: int = 0,
    windows: bool = True,
    kv_owner: Sequence[int] = (),
    devices: int = 1,
) -> int:
    """Bytes of a cache for `batch` sequences of up to `length` tokens, on each of `devices` that share the heads.

    A layer with a window keeps its window and max_rollback tokens, unless windows is False: then it keeps all. What a
    layer keeps of a sequence is rounded up to whole blocks. dtype and kv_owner: as for `bytes_per_token`.
    A device holds at least one head; MLA's latent, which all heads read, lies whole on each of them.
    Raises ValueError for counts that cannot be, and where devices and key/value heads do not divide evenly.
    Book section 3.2.1.
    """
    for name, count, least in (("batch", batch, 1), ("length", length, 1), ("block_size", block_size, 1)):
        check_at_least(name, count, least)
    check_at_least("max_rollback", max_rollback, 0)
    form, total = kv_format(dtype), 0
    for spec, layers in _stored_layers(config, tuple(kv_owner)).items():
        kept = min(length, spec.window + max_rollback) if spec.window and windows else length
        slots = ceil(kept / block_size) * block_size
        total += layers * form.layer_bytes(_on_one_device(config, spec, devices), batch, slots, max_rollback)
    return total


def activation_bytes(config: ModelConfig, tokens: int, rows: int, dtype: str | float = "bfloat16") -> int:
    """Bytes that a step of `tokens` tokens holds at its widest moment, the logits of `rows` of them included.

    The residual stream and a layer's input, and beside them whichever is most: q, k, v and the result of attention;
    gate, up and their product, of all chosen experts; or the logits in float32. A sum of tensors that must be there at
    once: real kernels keep less where they fuse, and more as workspace. Raises ValueError for negative counts.
    Book section 3.2.1.
    """
    check_at_least("tokens", tokens, 0)
    check_at_least("rows", rows, 0)
    size = element_bytes(dtype)
    widest = _widest_layer(config)
    logits = rows * config.vocabulary * LOGIT_BYTES
    return ceil(tokens * 2 * config.width * size + max(tokens * widest * size, logits))


@dataclass(frozen=True)
class MemoryNeed:
    """What each device must hold to run `batch` sequences, in bytes; `reserve_bytes` is left to everything else.

    Book section 3.2.1.
    """

    batch: int
    weight_bytes: int
    cache_bytes: int
    activation_bytes: int
    reserve_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.weight_bytes + self.cache_bytes + self.activation_bytes + self.reserve_bytes


def memory_need(
    config: ModelConfig,
    device: Device,
    batch: int,
    length: int,
    dtype: str | float | KVFormat = "bfloat16",
    weights: str | float = "bfloat16",
    step_tokens: int = STEP_TOKENS,
    reserve: float = RESERVE,
    devices: int = 1,
    **layout: Any,
) -> MemoryNeed:
    """What `batch` sequences of up to `length` tokens need on each of `devices`, beside evenly split weights.

    dtype: of the cache, see `kv_format`. weights: their type, or bytes an element.
    step_tokens: the most tokens of a step, which decide the activations; at least one for each sequence. Activations
        are counted whole on each device, in 16 bits.
    reserve: the fraction of a device's memory that the runtime, its graphs and fragmentation may take.
    layout: block_size, max_rollback, windows and kv_owner of `cache_bytes`.
    Raises ValueError as `cache_bytes` does, and for a reserve outside 0..1. Book section 3.2.1.
    """
    if not 0 <= reserve < 1:
        raise ValueError(f"reserve is a fraction of the memory, at least 0 and below 1, got {reserve}")
    check_at_least("step_tokens", step_tokens, 1)
    return MemoryNeed(
        batch,
        weight_bytes=ceil(_weight_count(config) * element_bytes(weights) / devices),
        cache_bytes=cache_bytes(config, batch, length, dtype, devices=devices, **layout),
        activation_bytes=activation_bytes(config, max(step_tokens, batch), batch),
        reserve_bytes=ceil(device.memory_bytes * reserve),
    )


def max_batch(
    config: ModelConfig,
    device: Device,
    length: int,
    dtype: str | float | KVFormat = "bfloat16",
    weights: str | float = "bfloat16",
    step_tokens: int = STEP_TOKENS,
    reserve: float = RESERVE,
    devices: int = 1,
    **layout: Any,
) -> int:
    """How many sequences of up to `length` tokens fit at once; 0 if not one does. Arguments as for `memory_need`.

    Book section 3.2.1.
    """

    def total(batch: int) -> int:
        need = memory_need(config, device, batch, length, dtype, weights, step_tokens, reserve, devices, **layout)
        return need.total_bytes

    too_many = 1
    while total(too_many) <= device.memory_bytes:
        too_many *= 2
    return bisect_right(range(1, too_many), device.memory_bytes, key=total)  # how many of these batches fit


def attention_kind(config: ModelConfig) -> str:
    """How query heads share keys: "MHA", "GQA", "MQA" or "MLA". Book section 3.2.3."""
    if config.mla:
        return "MLA"
    if config.group == 1:
        return "MHA"
    return "MQA" if config.kv_heads == 1 else "GQA"


@cache
def _weight_count(config: ModelConfig) -> int:
    return parameter_count(config).total


@cache
def _stored_layers(config: ModelConfig, kv_owner: tuple[int, ...]) -> Counter[AttentionSpec]:
    """What the layers that store keys and values ask for, and how many ask for the same."""
    specs = [config.attention(layer) for layer in range(config.layers)]
    if not kv_owner:
        return Counter(specs)
    if len(kv_owner) != config.layers:
        raise ValueError(f"kv_owner names a layer for each of {config.layers}, got {len(kv_owner)}")
    for layer, owner in enumerate(kv_owner):
        if not 0 <= owner <= layer or kv_owner[owner] != owner or specs[owner] != specs[layer]:
            raise ValueError(
                f"layer {layer} cannot read the keys of layer {owner}: an owner is the layer itself, or an earlier one "
                "that owns its keys and asks for the same heads, widths and window"
            )
    return Counter(specs[owner] for owner in dict.fromkeys(kv_owner))


def _on_one_device(config: ModelConfig, spec: AttentionSpec, devices: int) -> AttentionSpec:
    check_at_least("devices", devices, 1)
    heads = spec.kv_heads
    if not spec.shared_kv and (config.heads % devices or (heads % devices and devices % heads)):
        raise ValueError(
            f"{config.heads} query heads and {heads} key/value heads of {config.name!r} cannot be split evenly among "
            f"{devices} devices"
        )
    return replace(spec, kv_heads=max(heads // devices, 1))


@cache
def _widest_layer(config: ModelConfig) -> int:
    """Elements a token has at the widest moment of any layer, beside the residual stream and the layer's input."""
    layers = range(config.layers)
    return max(max(_attention_width(config, layer), _feed_forward_width(config, layer)) for layer in layers)


def _attention_width(config: ModelConfig, layer: int) -> int:
    """Elements a token has as q, k, v and as the result of attention; with MLA in its absorbed form, the wider one."""
    spec = config.attention(layer)
    return config.heads * (spec.key_width + spec.value_width) + spec.kv_heads * sum(widths(spec))


def _feed_forward_width(config: ModelConfig, layer: int) -> int:
    """Elements a token has inside the feed-forward block: what the first matrix makes, and what the second takes."""
    moe = config.moe
    inner = moe.top_k * moe.expert_width + moe.shared_width if config.is_moe(layer) else config.feed_forward
    return inner * (2 if config.activation in ("gelu", "relu") else 3)
