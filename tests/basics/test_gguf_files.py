"""The GGUF reader: what the gguf package writes is read back; whatever lies is named with its byte."""

import struct
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFWriter, quants

from llminfer.basics.block_codecs import DECODERS
from llminfer.basics.fetching import RELEASES
from llminfer.basics.gguf_files import read_gguf

SCALARS = {
    "uint8": 255, "int8": -128, "uint16": 65535, "int16": -32768, "uint32": 2**32 - 1, "int32": -(2**31),
    "uint64": 2**64 - 1, "int64": -(2**63), "float32": 0.5, "float64": 0.1, "bool": True, "string": "naïve 🙂",
}  # fmt: skip


def written(path: Path, **arrays: np.ndarray) -> Path:
    """A file of the gguf package with some metadata and the given tensors, named by type: q4_0=..., f32=..."""
    writer = GGUFWriter(path, "llama")
    for kind, value in SCALARS.items():
        getattr(writer, f"add_{kind}")(f"a.{kind}", value)
    writer.add_array("an.array.of.text", ["one", "", "drei"])
    writer.add_array("an.array.of.numbers", [3, -1, 2])
    for name, array in arrays.items():
        kind = GGMLQuantizationType[name.upper()]
        raw = array if name in ("f32", "f16") else quants.quantize(array, kind)
        writer.add_tensor(name, raw, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def row(name: str, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    """A line of the tensor table; shape in the file's order, fastest first."""
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def built(*parts: bytes, tensors: int = 0, entries: int = 0, version: int = 3, data: int = 0) -> bytes:
    """A file by hand: header, the parts, zeros up to a multiple of 32, then `data` bytes."""
    head = b"GGUF" + struct.pack("<IQQ", version, tensors, entries) + b"".join(parts)
    return head + bytes(-len(head) % 32) + bytes(data)


@pytest.fixture
def read(tmp_path):
    """Reads bytes as a file."""

    def reading(content: bytes):
        path = tmp_path / "model.gguf"
        path.write_bytes(content)
        return read_gguf(path)

    return reading


def test_metadata_of_every_type_comes_back(tmp_path):
    metadata = read_gguf(written(tmp_path / "model.gguf")).metadata
    for kind, value in SCALARS.items():
        assert metadata[f"a.{kind}"] == value and type(metadata[f"a.{kind}"]) is type(value)
    assert metadata["an.array.of.text"] == ["one", "", "drei"]
    assert metadata["an.array.of.numbers"].tolist() == [3, -1, 2]


@pytest.mark.parametrize("name", [name.lower() for name in DECODERS])
def test_a_tensor_of_every_type_comes_back(tmp_path, name):
    dtype = {"f16": np.float16}.get(name, np.float32)
    array = np.random.default_rng(1).standard_normal((3, 64)).astype(dtype)
    file = read_gguf(written(tmp_path / "model.gguf", **{"f32": np.ones((5,), np.float32), name: array}))
    kind = GGMLQuantizationType[name.upper()]
    expected = array if name in ("f32", "f16") else quants.dequantize(quants.quantize(array, kind), kind)
    assert file.tensors[name].shape == (3, 64) and file.tensors[name].type.name == name.upper()
    np.testing.assert_array_equal(file.load(name), expected)


def test_version_2_is_read_like_version_3(read):
    assert read(built(entry("k", 4, b"\7\0\0\0"), entries=1, version=2)).metadata == {"k": 7}


def test_nested_arrays_are_lists_of_arrays(read):
    inner = struct.pack("<IQ2B", 0, 2, 8, 9)
    file = read(built(entry("k", 9, struct.pack("<IQ", 9, 2) + inner + inner), entries=1))
    assert [part.tolist() for part in file.metadata["k"]] == [[8, 9], [8, 9]]


def test_alignment_moves_the_data(read):
    content = built(entry("general.alignment", 4, struct.pack("<I", 128)), row("w", (2,)), tensors=1, entries=1)
    content += bytes(128 - len(content)) + struct.pack("<2f", 1.5, 2.5)
    assert read(content).load("w").tolist() == [1.5, 2.5]


def test_a_float32_tensor_is_a_view_of_the_file(tmp_path):
    file = read_gguf(written(tmp_path / "model.gguf", f32=np.ones((2, 32), np.float32)))
    assert np.shares_memory(file.load("f32"), file.data)
    assert not file.load("f32").flags.writeable


def test_a_type_without_a_decoder_is_measured_but_not_loaded(read):
    file = read(built(row("w", (256,), 12), tensors=1, data=144))
    assert file.tensors["w"].nbytes == 144
    with pytest.raises(ValueError, match="tensor w: Q4_K is not decoded"):
        file.load("w")


HUGE = 2**62

LIES = {
    "not a GGUF file": (b"GGML" + bytes(60), "magic at byte 0: b'GGML' instead of b'GGUF'"),
    "shorter than a header": (b"GGUF\3\0\0\0", "8 bytes; a GGUF file has a header of 24"),
    "version 1": (built(version=1), "version at byte 4: 1; supported: 2 and 3"),
    "big-endian": (b"GGUF" + struct.pack(">I", 3) + bytes(60), "version at byte 4: .* big-endian"),
    "more tensors than bytes": (built(tensors=HUGE), f"tensor count at byte 8: {HUGE} items of at least 32 bytes"),
    "more metadata than bytes": (built(entries=HUGE), f"metadata count at byte 16: {HUGE} items of at least 13 bytes"),
    "counts that exceed the file together": (
        built(data=72, tensors=2, entries=3),
        "tensor count at byte 8: 2 tensors and 3",
    ),
    "a key longer than the file": (
        built(struct.pack("<Q", 500), bytes(40), entries=1),
        "length of key of metadata entry 0 at byte 24: 500 bytes, but 64 are left",
    ),
    "a key that is not UTF-8": (
        built(struct.pack("<Q", 1) + b"\xff" + bytes(40), entries=1),
        "key .* at byte 24: not UTF-8",
    ),
    "a key twice": (built(entry("k", 0, b"\1"), entry("k", 0, b"\2"), entries=2), "metadata k at byte 38: .* twice"),
    "a type of metadata that does not exist": (
        built(entry("k", 13, bytes(20)), entries=1),
        "type of metadata k at byte 37: unknown",
    ),
    "a truth value of 2": (built(entry("k", 7, b"\2"), entries=1), "metadata k at byte 37: a truth value of 2"),
    "a text longer than the file": (
        built(entry("k", 8, struct.pack("<Q", 2**63)), entries=1),
        f"length of metadata k at byte 37: {2**63} bytes, but",
    ),
    "an array of numbers longer than the file": (
        built(entry("k", 9, struct.pack("<IQ", 10, 10**9)), entries=1),
        "length of metadata k at byte 41: 1000000000 items of at least 8 bytes",
    ),
    "an array of texts longer than the file": (
        built(entry("k", 9, struct.pack("<IQ", 8, 10**9)), entries=1),
        "length of metadata k at byte 41: 1000000000 items of at least 8 bytes",
    ),
    "arrays nested without end": (
        built(entry("k", 9, struct.pack("<IQ", 9, 1) * 50), entries=1),
        "arrays nested more than 4 deep",
    ),
    "no dimensions": (
        built(row("w", ()), bytes(40), tensors=1),
        "number of dimensions of tensor w at byte 33: 0; expected 1..4",
    ),
    "five dimensions": (built(row("w", (1,) * 5), tensors=1), "number of dimensions of tensor w at byte 33: 5"),
    "a dimension of 0": (built(row("w", (4, 0)), tensors=1), r"dimensions of tensor w at byte 37: \[4, 0\]: empty"),
    "dimensions whose product overflows": (
        built(row("w", (2**33, 2**33)), tensors=1),
        "dimensions of tensor w at byte 37",
    ),
    "a type of tensor that does not exist": (
        built(row("w", (1,), 99), tensors=1),
        "type of tensor w at byte 45: unknown type 99",
    ),
    "rows that are not whole blocks": (
        built(row("w", (33,), 2), tensors=1),
        "tensor w at byte 24: rows of 33 elements",
    ),
    "an offset between alignments": (
        built(row("w", (1,), 0, 4), tensors=1, data=64),
        "tensor w at byte 24: its offset 4",
    ),
    "a tensor that ends after the file": (
        built(row("w", (9,)), tensors=1, data=32),
        "tensor w at byte 24: 36 bytes from byte 64 on, but the file has 96",
    ),
    "an offset far away": (
        built(row("w", (1,), 0, 2**63), tensors=1, data=32),
        "tensor w at byte 24: 4 bytes from byte",
    ),
    "a tensor name twice": (
        built(row("w", (1,)), row("w", (1,), 0, 32), tensors=2, data=64),
        "tensor w at byte 57: .* twice",
    ),
    "tensors that overlap": (
        built(row("a", (16,)), row("b", (1,), 0, 32), tensors=2, data=64),
        "tensor b at byte 128: its bytes overlap those of a",
    ),
    "an alignment of 0": (
        built(entry("general.alignment", 4, bytes(4)), entries=1),
        "metadata general.alignment at byte 53: 0; expected a power of two",
    ),
    "an alignment of 24": (
        built(entry("general.alignment", 4, b"\x18\0\0\0"), entries=1),
        "general.alignment at byte 53: 24; expected",
    ),
    "an alignment that is a text": (
        built(entry("general.alignment", 8, text("32")), entries=1),
        "general.alignment at byte 53: '32'",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lying_file_is_refused_with_field_and_byte(read, lie):
    content, message = LIES[lie]
    with pytest.raises(ValueError, match=message):
        read(content)


def test_a_file_cut_anywhere_is_refused(tmp_path):
    path = written(tmp_path / "model.gguf", q8_0=np.ones((2, 32), np.float32))
    content = path.read_bytes()
    used = read_gguf(path).tensors["q8_0"].offset + 68  # padding after the last tensor may be missing
    cut = tmp_path / "cut.gguf"
    for length in range(0, used, 3):
        cut.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"cut\.gguf"):
            read_gguf(cut)


SMOLLM2 = RELEASES["smollm2"].path


@pytest.mark.skipif(not SMOLLM2.is_file(), reason="SmolLM2 is not in the cache; run: llminfer fetch smollm2")
def test_the_published_facts_of_the_smollm2_file():
    """Published row Q-09, read there with the gguf package."""
    file = read_gguf(SMOLLM2)
    types = [tensor.type.name for tensor in file.tensors.values()]
    assert len(file.data) == 98_362_432
    assert len(types) == 272
    assert {name: types.count(name) for name in types} == {"Q4_1": 210, "F32": 61, "Q8_0": 1}
    assert file.tensors["token_embd.weight"].type.name == "Q8_0"
    assert sum(tensor.nbytes for tensor in file.tensors.values()) == 96_576_768
    assert sum(int(np.prod(shape)) for shape in file.shapes.values()) == 134_515_008
