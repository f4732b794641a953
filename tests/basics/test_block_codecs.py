"""Block decoders against the gguf package on the same bytes, and against the published tables."""

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType, quants

from llminfer.basics.block_codecs import BLOCK_TYPES, DECODERS, dequantize

BY_NAME = {known.name: known for known in BLOCK_TYPES.values()}

# Published table Q-01: elements and bytes of a block (ggml-common.h).
PUBLISHED_BLOCKS = {
    "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22), "Q5_1": (32, 24), "Q8_0": (32, 34),
    "Q2_K": (256, 84), "Q3_K": (256, 110), "Q4_K": (256, 144), "Q5_K": (256, 176), "Q6_K": (256, 210),
    "Q8_K": (256, 292), "IQ4_NL": (32, 18), "IQ4_XS": (256, 136), "MXFP4": (32, 17), "NVFP4": (64, 36),
    "Q1_0": (128, 18),
}  # fmt: skip
PUBLISHED_BITS = {
    "Q4_0": 4.5, "Q4_1": 5.0, "Q5_0": 5.5, "Q5_1": 6.0, "Q8_0": 8.5, "Q2_K": 2.625, "Q3_K": 3.4375, "Q4_K": 4.5,
    "Q5_K": 5.5, "Q6_K": 6.5625, "Q8_K": 9.125, "IQ4_NL": 4.5, "IQ4_XS": 4.25, "IQ3_S": 3.4375, "IQ3_XXS": 3.0625,
    "IQ2_S": 2.5625, "IQ2_XS": 2.3125, "IQ2_XXS": 2.0625, "IQ1_M": 1.75, "IQ1_S": 1.5625, "TQ1_0": 1.6875,
    "TQ2_0": 2.0625, "MXFP4": 4.25, "NVFP4": 4.5, "Q1_0": 1.125,
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED_BLOCKS)
def test_a_block_has_the_published_size(name):
    assert (BY_NAME[name].elements, BY_NAME[name].bytes) == PUBLISHED_BLOCKS[name]


@pytest.mark.parametrize("name", PUBLISHED_BITS)
def test_a_weight_takes_the_published_bits(name):
    assert BY_NAME[name].bits_per_weight == PUBLISHED_BITS[name]


def test_types_are_those_of_the_gguf_package():
    theirs = {(kind.name, kind.value, *gguf.GGML_QUANT_SIZES[kind]) for kind in GGMLQuantizationType}
    ours = {(kind.name, number, kind.elements, kind.bytes) for number, kind in BLOCK_TYPES.items()}
    assert ours == theirs


@pytest.mark.parametrize("name", DECODERS)
def test_any_bytes_decode_as_in_the_gguf_package(name):
    kind = BY_NAME[name]
    raw = np.random.default_rng(7).integers(0, 256, 512 * kind.bytes, np.uint8)  # infinite and NaN scales among them
    with np.errstate(invalid="ignore"):
        ours = dequantize(raw, name, (4, 128 * kind.elements))
        theirs = quants.dequantize(raw.reshape(4, -1), GGMLQuantizationType[name])
    finite = np.isfinite(theirs)
    assert ours.dtype == np.float32 and finite.mean() > 0.8
    np.testing.assert_array_equal(ours[finite].view(np.uint32), theirs[finite].view(np.uint32))
    np.testing.assert_array_equal(ours, theirs)


# Published row Q-08: the root mean square error over linspace(-1, 1, 32), and the bytes it comes from.
@pytest.mark.parametrize(
    ("name", "error"), [("Q4_0", 0.04181), ("Q4_1", 0.03779), ("Q5_0", 0.02091), ("Q5_1", 3.55e-5), ("Q8_0", 0.002237)]
)
def test_the_published_error_over_a_line(name, error):
    line = np.linspace(-1, 1, 32, dtype=np.float32)
    raw = quants.quantize(line, GGMLQuantizationType[name])
    decoded = dequantize(raw, name, (32,))
    assert np.sqrt(np.mean((decoded - line) ** 2)) == pytest.approx(error, rel=2e-3)


def test_the_published_bytes_of_a_line_decode_to_it():
    raw = np.frombuffer(bytes.fromhex("0030809191a2a2b3b3c4c4d5d5e6e6f7f7f8"), np.uint8)
    line = np.linspace(-1, 1, 32)
    decoded = dequantize(raw, "Q4_0", (32,))
    assert decoded[0] == -1  # scale 0.125, code 0
    assert np.sqrt(np.mean((decoded - line) ** 2)) == pytest.approx(0.04181, abs=5e-6)


def test_the_published_scale_of_a_line_in_q8_0():
    raw = quants.quantize(np.linspace(-1, 1, 32, dtype=np.float32), GGMLQuantizationType.Q8_0)
    assert raw[:2].tobytes().hex() == "0820"
    assert np.abs(dequantize(raw, "Q8_0", (32,))).max() == 127 * np.float32(np.float16(1 / 127))


def test_float32_is_not_copied():
    raw = np.arange(16, dtype=np.uint8)
    assert np.shares_memory(dequantize(raw, "F32", (2, 2)), raw)


@pytest.mark.parametrize(
    ("raw_bytes", "name", "shape", "message"),
    [
        (18, "Q4_0", (31,), "rows of 31 elements are not whole blocks of 32"),
        (17, "Q4_0", (32,), "takes 18 bytes, got 17"),
        (144, "Q4_K", (256,), "Q4_K is not decoded; supported: F32, F16, BF16, Q4_0"),
        (1, "Q9_9", (1,), "Q9_9 is not decoded"),
    ],
)
def test_what_cannot_be_decoded_is_named(raw_bytes, name, shape, message):
    with pytest.raises(ValueError, match=message):
        dequantize(np.zeros(raw_bytes, np.uint8), name, shape)
