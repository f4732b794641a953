"""Numbers as GGUF stores them: in blocks of one scale and some small codes, decoded to float32.

A block of Q4_0 is 18 bytes for 32 numbers: a float16 scale d and 32 codes of 4 bits; number i is d * (code i - 8).
The sizes of all of GGML's types are known here, so that any file can be measured; those of DECODERS can be read.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from jaxtyping import Float, Int8, UInt8


@dataclass(frozen=True)
class BlockType:
    """One of GGML's storage types: `number` stands in the file, `bytes` hold `elements` numbers of a row."""

    name: str
    number: int
    elements: int
    bytes: int

    @property
    def bits_per_weight(self) -> float:
        """Bits a number takes, its share of the block's scales included."""
        return 8 * self.bytes / self.elements

    def nbytes(self, shape: tuple[int, ...]) -> int:
        """Bytes of a tensor. Raises ValueError when its rows are not whole blocks."""
        if shape[-1] % self.elements:
            raise ValueError(f"rows of {shape[-1]} elements are not whole blocks of {self.elements} ({self.name})")
        return prod(shape) // self.elements * self.bytes


def _types(*rows: tuple[str, int, int, int]) -> dict[int, BlockType]:
    return {number: BlockType(name, number, elements, size) for name, number, elements, size in rows}


# Source: enum ggml_type in ggml.h and the block structs in ggml-common.h; numbers that are not here were withdrawn.
BLOCK_TYPES = _types(
    ("F32", 0, 1, 4), ("F16", 1, 1, 2), ("BF16", 30, 1, 2), ("F64", 28, 1, 8),
    ("I8", 24, 1, 1), ("I16", 25, 1, 2), ("I32", 26, 1, 4), ("I64", 27, 1, 8),
    ("Q4_0", 2, 32, 18), ("Q4_1", 3, 32, 20), ("Q5_0", 6, 32, 22), ("Q5_1", 7, 32, 24),
    ("Q8_0", 8, 32, 34), ("Q8_1", 9, 32, 40),
    ("Q2_K", 10, 256, 84), ("Q3_K", 11, 256, 110), ("Q4_K", 12, 256, 144), ("Q5_K", 13, 256, 176),
    ("Q6_K", 14, 256, 210), ("Q8_K", 15, 256, 292),
    ("IQ2_XXS", 16, 256, 66), ("IQ2_XS", 17, 256, 74), ("IQ3_XXS", 18, 256, 98), ("IQ1_S", 19, 256, 50),
    ("IQ4_NL", 20, 32, 18), ("IQ3_S", 21, 256, 110), ("IQ2_S", 22, 256, 82), ("IQ4_XS", 23, 256, 136),
    ("IQ1_M", 29, 256, 56), ("TQ1_0", 34, 256, 54), ("TQ2_0", 35, 256, 66),
    ("MXFP4", 39, 32, 17), ("NVFP4", 40, 64, 36), ("Q1_0", 41, 128, 18),
)  # fmt: skip


def dequantize(raw: UInt8[np.ndarray, "size"], type_name: str, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """Decode the bytes of a tensor to float32; an F32 tensor is a view of its bytes, nothing is copied.

    Raises ValueError when the type has no decoder here, or `raw` is not exactly as long as the shape says.
    Source: ggml-quants.c, dequantize_row_*; how the codes are chosen is chapter 3.6. Book section 3.1.1.
    """
    by_name = {known.name: known for known in BLOCK_TYPES.values()}
    if type_name not in DECODERS:
        raise ValueError(f"{type_name} is not decoded; supported: {', '.join(DECODERS)}")
    expected = by_name[type_name].nbytes(shape)
    if raw.size != expected:
        raise ValueError(f"{type_name} of shape {list(shape)} takes {expected} bytes, got {raw.size}")
    return DECODERS[type_name](raw).reshape(shape)


def _f32(raw: UInt8[np.ndarray, "size"]) -> Float[np.ndarray, "n"]:
    return raw.view("<f4")


def _f16(raw: UInt8[np.ndarray, "size"]) -> Float[np.ndarray, "n"]:
    return raw.view("<f2").astype(np.float32)


def _bf16(raw: UInt8[np.ndarray, "size"]) -> Float[np.ndarray, "n"]:
    """bfloat16 is the upper half of a float32."""
    return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)


Q4_0 = np.dtype([("scale", "<f2"), ("codes", "u1", 16)])
Q4_1 = np.dtype([("scale", "<f2"), ("least", "<f2"), ("codes", "u1", 16)])
Q5_0 = np.dtype([("scale", "<f2"), ("fifth_bits", "u1", 4), ("codes", "u1", 16)])
Q5_1 = np.dtype([("scale", "<f2"), ("least", "<f2"), ("fifth_bits", "u1", 4), ("codes", "u1", 16)])
Q8_0 = np.dtype([("scale", "<f2"), ("codes", "i1", 32)])


def _q4_0(raw: UInt8[np.ndarray, "size"]) -> Float[np.ndarray, "blocks 32"]:
    blocks = raw.view(Q4_0)
    return _column(blocks["scale"]) * (_nibbles(blocks["codes"]) - np.int8(8))


def _q4_1(raw: UInt8[np.ndarray, "size"]) -> Float[np.ndarray, "blocks 32"]:
    blocks = raw.view(Q4_1)
    return _column(blocks["scale"]) * _nibbles(blocks["codes"]) + _column(blocks["least"])


def _q5_0(raw: UInt8[np.ndarray, "size"]) -> Float[np.ndarray, "blocks 32"]:
    blocks = raw.view(Q5_0)
    codes = _nibbles(blocks["codes"]) | _fifth_bits(blocks["fifth_bits"])
    return _column(blocks["scale"]) * (codes - np.int8(16))


def _q5_1(raw: UInt8[np.ndarray, "size"]) -> Float[np.ndarray, "blocks 32"]:
    blocks = raw.view(Q5_1)
    codes = _nibbles(blocks["codes"]) | _fifth_bits(blocks["fifth_bits"])
    return _column(blocks["scale"]) * codes + _column(blocks["least"])


def _q8_0(raw: UInt8[np.ndarray, "size"]) -> Float[np.ndarray, "blocks 32"]:
    blocks = raw.view(Q8_0)
    return _column(blocks["scale"]) * blocks["codes"]


DECODERS = {
    "F32": _f32,
    "F16": _f16,
    "BF16": _bf16,
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
}


def _column(halves: Float[np.ndarray, "blocks"]) -> Float[np.ndarray, "blocks 1"]:
    """One float32 per block, ready to be spread over the block's numbers."""
    return halves.astype(np.float32)[:, None]


def _nibbles(codes: UInt8[np.ndarray, "blocks 16"]) -> Int8[np.ndarray, "blocks 32"]:
    """Byte i holds the code of number i in its low half and that of number i + 16 in its high half."""
    return np.concatenate([codes & 0x0F, codes >> 4], axis=1).view(np.int8)


def _fifth_bits(packed: UInt8[np.ndarray, "blocks 4"]) -> Int8[np.ndarray, "blocks 32"]:
    """Bit i of the little-endian 32 is the highest of the five bits of code i."""
    return np.unpackbits(packed, axis=1, bitorder="little").view(np.int8) << 4
