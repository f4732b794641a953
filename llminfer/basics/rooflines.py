"""How long a step takes at best: its FLOPs and bytes against what a device can do.

The roofline says that work takes the longer of computing and of moving bytes. Kernels run one after another, so a step
takes the sum over its parts of the longer of the two. What no part shows is left out: launches, gaps between kernels,
communication between devices, and everything by which a kernel falls short of its device.
"""

from collections.abc import Sequence

from llminfer.basics.config import ModelConfig
from llminfer.basics.parameters import parameter_count
from llminfer.basics.steps import Segment, check_at_least, decode, element_bytes, layer_kv_bytes, step_costs
from llminfer.core.cost import Cost
from llminfer.core.hardware import Device


def attainable(device: Device, intensity: float, math: str = "bfloat16") -> float:
    """FLOP/s that work of `intensity` FLOPs per byte can reach: a slope up to `device.ridge(math)`, a flat roof beyond.

    Raises ValueError unless the intensity is at least 0; it is infinite for work that moves nothing.
    Source: Williams, Waterman and Patterson 2009, "Roofline", section 3. Book section 3.1.4.
    """
    if not intensity >= 0:
        raise ValueError(f"intensity must be at least 0 FLOPs per byte, got {intensity}")
    return min(device.flops(math), intensity * device.bandwidth)


def roofline_time(cost: Cost, device: Device, math: str = "bfloat16", devices: int = 1) -> float:
    """Seconds that work takes at least, with arithmetic in `math`, shared evenly among `devices`.

    Book section 3.1.4.
    """
    check_at_least("devices", devices, 1)
    return max(cost.flops / device.flops(math), cost.bytes / device.bandwidth) / devices


def critical_batch(device: Device, weights: str | float = "bfloat16", math: str = "bfloat16") -> float:
    """Tokens per step at which a weight matrix turns from memory-bound to compute-bound.

    A token costs 2 FLOPs an element, reading it costs its bytes once for all tokens. Smaller weights lower it, faster
    arithmetic raises it. With k of X experts a token it is X/k times as many, as each expert sees k/X of the tokens.
    Book section 3.1.4.
    """
    return device.flops(math) * element_bytes(weights) / (2 * device.bandwidth)


def attention_intensity(queries: int, keys: int, group: int = 1, dtype: str | float = "bfloat16") -> float:
    """FLOPs per byte of a fused attention kernel in which every query sees every key, `group` query heads a key head.

    Reads q, k and v and writes o, once each. In bfloat16 S·T·G / (S + T·G): T/2 for a prompt that sees all of itself
    with G = 1, and near G for a decode, however long the context and however large the batch: batching cannot help it.
    Raises ValueError for counts below 1. Book section 3.1.4.
    """
    for name, count in (("queries", queries), ("keys", keys), ("group", group)):
        check_at_least(name, count, 1)
    flops = 4 * queries * group * keys  # per key head and element of its width: scores, and the weighted sum
    return flops / ((2 * keys + 2 * queries * group) * element_bytes(dtype))


def step_times(
    config: ModelConfig,
    segments: Sequence[Segment],
    device: Device,
    weights: str | float = "bfloat16",
    kv: str | float = "bfloat16",
    math: str = "bfloat16",
    devices: int = 1,
) -> dict[str, float]:
    """Seconds at least for each part of a step (see `step_costs`), weights and cache split evenly among `devices`.

    Book section 3.1.4.
    """
    costs = step_costs(config, segments, weights, kv)
    return {part: roofline_time(cost, device, math, devices) for part, cost in costs.items()}


def step_time(
    config: ModelConfig,
    segments: Sequence[Segment],
    device: Device,
    weights: str | float = "bfloat16",
    kv: str | float = "bfloat16",
    math: str = "bfloat16",
    devices: int = 1,
) -> float:
    """Seconds at least for a step of any mix of prefill chunks and decodes.

    `weights` and `kv` are the types they are stored in, `math` the type products are computed in.
    Book section 3.1.4.
    """
    return sum(step_times(config, segments, device, weights, kv, math, devices).values())


def decode_ceiling(
    config: ModelConfig,
    device: Device,
    context: int = 0,
    batch: int = 1,
    weights: str | float = "bfloat16",
    kv: str | float = "bfloat16",
    math: str = "bfloat16",
    devices: int = 1,
) -> float:
    """Tokens per second of decoding that nothing on this device can exceed, all sequences of the batch together.

    Book section 3.1.4.
    """
    return batch / step_time(config, decode(context, batch), device, weights, kv, math, devices)


def max_batch(
    config: ModelConfig,
    device: Device,
    context: int,
    weights: str | float = "bfloat16",
    kv: str | float = "bfloat16",
    devices: int = 1,
) -> int:
    """How many sequences of `context` tokens fit beside the weights; 0 if not one does.

    Layers with a window keep no more than the window. Activations and the runtime's own memory are not counted.
    Raises ValueError for a context or devices below 1. Book section 3.1.4.
    """
    check_at_least("context", context, 1)
    check_at_least("devices", devices, 1)
    free = device.memory_bytes * devices - parameter_count(config).total * element_bytes(weights)
    sequence = sum(
        min(context, config.window(layer) or context) * layer_kv_bytes(config, layer, kv)
        for layer in range(config.layers)
    )
    return max(int(free // sequence), 0)
