"""The memories of a device from the nearest to the farthest, and how long one layer's weights take through each.

Each step away from the arithmetic is several times slower. Sizes are less orderly: the three memories on a chip are of
much the same size, registers often larger than shared memory, and only main memory is a thousand times larger. A layer
of a large model fits into none on the chip, so every step of decoding reads it from main memory. What its time there
exceeds that in a nearer memory is what a kernel can win by using what it has read more than once.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

from llminfer.basics.config import ModelConfig
from llminfer.basics.parameters import layer_shapes
from llminfer.basics.steps import element_bytes
from llminfer.core.hardware import Device


@dataclass(frozen=True)
class MemoryLevel:
    """One memory of a device, summed over its multiprocessors; None where no maker's figure is known.

    bandwidth: bytes/s that the level can be read with (a link: each way). note: where it comes from, or why there is
    none. Book section 3.1.5.
    """

    name: str
    capacity_bytes: float | None
    bandwidth: float | None
    note: str


@dataclass(frozen=True)
class Crossing:
    """How long bytes take through one level, and whether it can hold them; None where its figure is not known.

    Book section 3.1.5.
    """

    level: MemoryLevel
    bytes: float
    time_s: float | None
    fits: bool | None


def memory_levels(device: Device) -> tuple[MemoryLevel, ...]:
    """Registers, shared memory, L2, main memory and link of a device, nearest first. Book section 3.1.5."""
    return (
        _registers(device),
        _shared_memory(device),
        MemoryLevel("L2", device.l2_bytes, device.l2_bandwidth, _l2_note(device)),
        MemoryLevel("main memory", device.memory_bytes, device.bandwidth, device.source),
        MemoryLevel("link", None, device.link_bandwidth, device.link or "no link in the table"),
    )


def layer_weight_bytes(config: ModelConfig, layer: int = 0, weights: str | float = "bfloat16") -> float:
    """Bytes of all weights of one layer, all experts of a mixture included, stored as the type (or bytes) `weights`.

    Raises ValueError for a layer that the model does not have. Book section 3.1.5.
    """
    if not 0 <= layer < config.layers:
        raise ValueError(f"{config.name!r} has the layers 0..{config.layers - 1}, got {layer}")
    return sum(prod(shape) for shape in layer_shapes(config, layer).values()) * element_bytes(weights)


def layer_crossings(
    config: ModelConfig, device: Device, layer: int = 0, weights: str | float = "bfloat16"
) -> tuple[Crossing, ...]:
    """The time to move one layer's weights through each memory of a device, at the bandwidth its maker prints.

    A level that is too small to hold them passes them on piece by piece, which its bandwidth allows as well. A mixture
    is moved with all its experts; one token needs few of them. Raises ValueError for a layer the model does not have.
    Book section 3.1.5.
    """
    moved = layer_weight_bytes(config, layer, weights)
    return tuple(
        Crossing(
            level,
            moved,
            None if level.bandwidth is None else moved / level.bandwidth,
            None if level.capacity_bytes is None else moved <= level.capacity_bytes,
        )
        for level in memory_levels(device)
    )


def draw_crossings(
    config: ModelConfig,
    device: Device,
    layer: int = 0,
    weights: str | float = "bfloat16",
    *,
    alt: str,
    title: str = "",
    axes: Any = None,
) -> Any:
    """`layer_crossings` as a tower: capacities to the left, times to the right, both logarithmic; matplotlib Axes.

    Book section 3.1.5.
    """
    from llminfer.core.plots import Tier, hierarchy  # matplotlib: only for those who draw

    crossings = layer_crossings(config, device, layer, weights)
    tiers = [
        Tier(crossing.level.name, crossing.level.capacity_bytes, crossing.level.bandwidth, crossing.time_s)
        for crossing in crossings
    ]
    moved = f"one layer of {config.name}"
    return hierarchy(tiers, moved=moved, moved_bytes=crossings[0].bytes, alt=alt, title=title or device.name, axes=axes)


def _registers(device: Device) -> MemoryLevel:
    """Nobody prints what registers deliver, but arithmetic at its peak tells what they must: 3 operands a multiply-add.

    Three float32 of 4 bytes for 2 FLOPs are 6 bytes a FLOP.
    """
    peak = device.peak_flops.get("float32") if device.register_file_bytes else None
    note = "at least: three operands of each float32 multiply-add at the peak rate" if peak else "not published"
    return MemoryLevel("registers", _of_all(device, device.register_file_bytes), peak and 6 * peak, note)


def _shared_memory(device: Device) -> MemoryLevel:
    known = device.shared_memory_bandwidth is not None
    note = "32 banks of 4 bytes a clock in each multiprocessor" if known else "not published, or its clock is not"
    return MemoryLevel(
        "shared memory", _of_all(device, device.shared_memory_bytes), device.shared_memory_bandwidth, note
    )


def _l2_note(device: Device) -> str:
    return "not published by its maker" if device.l2_bandwidth is None else "bytes read a clock, as its maker prints"


def _of_all(device: Device, each: int | None) -> int | None:
    return None if each is None or device.sms is None else each * device.sms
