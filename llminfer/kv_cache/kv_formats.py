"""In what form keys and values are stored, and the bytes it takes: plain types, and fewer bits with their scales.

Knows one layer at a time; how many tokens a layer keeps is for `sizes` to say. Nothing is quantized here.
"""

from dataclasses import dataclass
from math import ceil
from typing import Protocol, runtime_checkable

from llminfer.basics.config import AttentionSpec
from llminfer.basics.steps import element_bytes

SCALE_BYTES = 4  # of a head's float32 scale
GROUP_BYTES = 2 + 2  # of a group's scale and zero point, float16 each
TAIL_BYTES = 2  # of an element that is not quantized yet


@runtime_checkable
class KVFormat(Protocol):
    """How one layer stores what it keeps. Book section 3.2.1."""

    name: str

    def token_bytes(self, spec: AttentionSpec) -> float:
        """Bytes of one more token's keys and values in a long sequence, its share of the scales among them."""
        ...

    def layer_bytes(self, spec: AttentionSpec, sequences: int, slots: int, max_rollback: int = 0) -> int:
        """Bytes of all arrays of a layer that keeps up to `slots` tokens of each of so many sequences."""
        ...


@dataclass(frozen=True)
class PlainFormat:
    """Every element by itself in `element_bytes` bytes, without scales.

    A fraction stands for a format that packs elements, such as 6 / 8 where a paper says "6 bits on average".
    Book section 3.2.1.
    """

    name: str
    element_bytes: float

    def token_bytes(self, spec: AttentionSpec) -> float:
        """See `KVFormat.token_bytes`."""
        return _whole(spec.kv_heads * sum(widths(spec)) * self.element_bytes)

    def layer_bytes(self, spec: AttentionSpec, sequences: int, slots: int, max_rollback: int = 0) -> int:
        """See `KVFormat.layer_bytes`."""
        return ceil(sequences * slots * self.token_bytes(spec))


@dataclass(frozen=True)
class ScaledFormat:
    """FP8 E4M3: a byte an element, and for a layer one float32 scale for each head of keys and one of values.

    The scales are calibrated beforehand and serve all sequences, so that their size does not grow with tokens.
    Source: vLLM's k_scale and v_scale, here by head. Book section 3.2.6.
    """

    name: str = "float8_e4m3fn"

    def token_bytes(self, spec: AttentionSpec) -> float:
        """See `KVFormat.token_bytes`; the scales are not a token's."""
        return spec.kv_heads * sum(widths(spec))

    def layer_bytes(self, spec: AttentionSpec, sequences: int, slots: int, max_rollback: int = 0) -> int:
        """See `KVFormat.layer_bytes`."""
        scales = spec.kv_heads * len(widths(spec)) * SCALE_BYTES
        return sequences * slots * spec.kv_heads * sum(widths(spec)) + scales


@dataclass(frozen=True)
class GroupedFormat:
    """`bits` an element, with a float16 scale and zero point for each group; the latest tokens stay in 16 bits.

    Keys share a scale by channel among `group` tokens, values by token among `group` channels (the last group of a
    token may be smaller). Groups of tokens are quantized whole, oldest first, as soon as more than `tail` tokens would
    be in 16 bits; a rollback needs max_rollback of those tokens longer. A token's codes of one head begin a new byte.
    Raises ValueError unless bits is 2, 4 or 8 and 1 <= group <= tail.
    Source: Liu et al. 2024, "KIVI", section 3; its group of 32 and its residual of 128. Book section 3.2.6.
    """

    bits: int
    group: int = 32
    tail: int = 128

    def __post_init__(self) -> None:
        if self.bits not in (2, 4, 8):
            raise ValueError(f"codes have 2, 4 or 8 bits, so that a byte holds whole ones, got {self.bits}")
        if not 1 <= self.group <= self.tail:
            raise ValueError(f"a group must fit in the tail, 1 <= group <= tail, got {self.group} and {self.tail}")

    @property
    def name(self) -> str:
        return f"int{self.bits}"

    def quantized_tokens(self, length: int) -> int:
        """How many of a sequence's tokens, the oldest, are codes: as few whole groups as leave no more than `tail`."""
        return ceil(max(length - self.tail, 0) / self.group) * self.group

    def token_bytes(self, spec: AttentionSpec) -> float:
        """See `KVFormat.token_bytes`: of a token that has left the tail."""
        return _whole(self._group_of_tokens(spec) / self.group)

    def layer_bytes(self, spec: AttentionSpec, sequences: int, slots: int, max_rollback: int = 0) -> int:
        """See `KVFormat.layer_bytes`."""
        codes = self.quantized_tokens(slots) // self.group * self._group_of_tokens(spec)
        tail = min(slots, self.tail + max_rollback) * spec.kv_heads * sum(widths(spec)) * TAIL_BYTES
        return sequences * (codes + tail)

    def _group_of_tokens(self, spec: AttentionSpec) -> int:
        """Bytes of `group` tokens' codes, of a scale for each channel of their keys, and of their values' scales."""
        codes = sum(ceil(width * self.bits / 8) for width in widths(spec)) * self.group
        key_groups = spec.key_width
        value_groups = 0 if spec.shared_kv else ceil(spec.value_width / self.group) * self.group
        return spec.kv_heads * (codes + (key_groups + value_groups) * GROUP_BYTES)


def widths(spec: AttentionSpec) -> tuple[int, ...]:
    """What a head stores of a token: its key and its value, or the key alone where the value is the key's beginning."""
    return (spec.key_width,) if spec.shared_kv else (spec.key_width, spec.value_width)


KV_FORMATS: dict[str, KVFormat] = {
    **{
        name: PlainFormat(name, size)
        for name, size in (("float64", 8), ("float32", 4), ("float16", 2), ("bfloat16", 2))
    },
    "float8_e4m3fn": ScaledFormat(),
    "int8": GroupedFormat(8),
    "int4": GroupedFormat(4),
    "int2": GroupedFormat(2),
}
"""The forms that have names. The integer ones are KIVI's, with their scales and their tail."""

ALIASES = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "half": "float16", "bf16": "bfloat16"}
ALIASES |= dict.fromkeys(("fp8", "fp8_e4m3", "float8", "float8_e4m3"), "float8_e4m3fn")


def kv_format(dtype: str | float | KVFormat) -> KVFormat:
    """The form called "bfloat16", "bf16", "fp8", "int4" ...; a number is so many bytes an element, without scales.

    Raises ValueError for another name, and for a number that is not positive and finite. Book section 3.2.1.
    """
    if isinstance(dtype, str):
        name = ALIASES.get(dtype, dtype)
        if name not in KV_FORMATS:
            known = ", ".join(KV_FORMATS)
            raise ValueError(f"keys and values can be stored as {known}, or in so many bytes an element, got {dtype!r}")
        return KV_FORMATS[name]
    if isinstance(dtype, KVFormat):
        return dtype
    return PlainFormat(f"{dtype:g} bytes an element", element_bytes(dtype))


def _whole(size: float) -> float:
    """Bytes as an int where they are whole, so that sizes print as sizes."""
    return int(size) if size == int(size) else size
