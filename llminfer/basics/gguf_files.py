"""GGUF, the file of llama.cpp: a header, named metadata, a table of tensors, then their bytes.

Nothing in the file is believed: every length and count is compared with the bytes that are left before memory is taken
for it, and whatever is wrong ends in a ValueError with the field and the byte where it stands.
Source: docs/gguf.md of the ggml project, versions 2 and 3.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from llminfer.basics.block_codecs import BLOCK_TYPES, BlockType, dequantize
from llminfer.basics.byte_cursor import ByteCursor

HEADER_BYTES = 24
DEFAULT_ALIGNMENT = 32
LEAST_METADATA_BYTES = 8 + 4 + 1  # length of the key, type, the smallest value
LEAST_TENSOR_BYTES = 8 + 4 + 8 + 4 + 8  # length of the name, number of dimensions, one of them, type, offset
MOST_DIMENSIONS = 4
DEEPEST_NESTING = 4
SCALARS = {  # number of a metadata type: its dtype
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8",
}  # fmt: skip
STRING, ARRAY = 8, 9


@dataclass(frozen=True)
class GgufTensor:
    """One row of the tensor table. shape is NumPy's, slowest axis first; offset counts from the start of the file."""

    name: str
    shape: tuple[int, ...]
    type: BlockType
    offset: int

    @property
    def nbytes(self) -> int:
        return self.type.nbytes(self.shape)


@dataclass(frozen=True)
class GgufFile:
    """A GGUF file that was found sound: metadata read, tensors measured, their bytes mapped but not yet read.

    Metadata values are int, float, bool, str, a list (of strings or lists), or an array (of numbers).
    It is a `TensorSource`.
    """

    where: str
    metadata: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]
    data: np.ndarray = field(repr=False)  # [bytes of the file], mapped read-only

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: tensor.shape for name, tensor in self.tensors.items()}

    def raw(self, name: str) -> np.ndarray:
        """The bytes of a tensor as they lie in the file."""
        tensor = self.tensors[name]
        return self.data[tensor.offset : tensor.offset + tensor.nbytes]

    def load(self, name: str) -> np.ndarray:
        """A tensor in float32; F32 tensors are read-only views of the file. ValueError when its type has no decoder."""
        tensor = self.tensors[name]
        try:
            return dequantize(self.raw(name), tensor.type.name, tensor.shape)
        except ValueError as problem:
            raise ValueError(f"{self.where}: tensor {name}: {problem}") from None


def read_gguf(path: str | Path) -> GgufFile:
    """Read header, metadata and tensor table of a GGUF file and check them against the file's size.

    Raises ValueError, naming the field and its byte, for anything that is damaged, cut short or contradicts itself.
    Book section 3.1.1.
    """
    path = Path(path)
    size = path.stat().st_size
    if size < HEADER_BYTES:
        raise ValueError(f"{path}: {size} bytes; a GGUF file has a header of {HEADER_BYTES}")
    cursor = ByteCursor(np.asarray(np.memmap(path, np.uint8, mode="r")), str(path))
    tensor_count, metadata_count = _header(cursor)
    metadata = _metadata(cursor, metadata_count)
    rows = _tensor_table(cursor, tensor_count)
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    tensors = {name: _placed(cursor, row, alignment, name) for name, row in rows.items()}
    _refuse_overlaps(cursor, tensors)
    return GgufFile(str(path), metadata, tensors, cursor.data)


def _header(cursor: ByteCursor) -> tuple[int, int]:
    """Magic, version and the two counts."""
    magic = cursor.take(4, "magic").tobytes()
    if magic != b"GGUF":
        raise cursor.error("magic", f"{magic!r} instead of b'GGUF': not a GGUF file", 0)
    version = cursor.number("<I", "version")
    if version not in (2, 3):
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        hint = "; the file is big-endian, written for another kind of machine" if swapped in (2, 3) else ""
        raise cursor.error("version", f"{version}; supported: 2 and 3{hint}", 4)
    at, tensors = cursor.at, cursor.count(LEAST_TENSOR_BYTES, "tensor count")
    metadata = cursor.count(LEAST_METADATA_BYTES, "metadata count")
    if tensors * LEAST_TENSOR_BYTES + metadata * LEAST_METADATA_BYTES > cursor.left:
        raise cursor.error("tensor count", f"{tensors} tensors and {metadata} metadata entries exceed the file", at)
    return tensors, metadata


def _metadata(cursor: ByteCursor, count: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for i in range(count):
        at, key = cursor.at, cursor.text(f"key of metadata entry {i}")
        if key in metadata:
            raise cursor.error(f"metadata {key}", "the key stands twice", at)
        kind = cursor.number("<I", f"type of metadata {key}")
        at = cursor.at
        metadata[key] = _value(cursor, kind, f"metadata {key}", 0)
        if key == "general.alignment" and not _is_power_of_two(metadata[key]):
            raise cursor.error(f"metadata {key}", f"{metadata[key]!r}; expected a power of two", at)
    return metadata


def _is_power_of_two(value: Any) -> bool:
    return type(value) is int and value > 0 and value & (value - 1) == 0


def _value(cursor: ByteCursor, kind: int, what: str, depth: int) -> Any:
    """One metadata value of the type numbered `kind`."""
    if kind == STRING:
        return cursor.text(what)
    if kind == ARRAY:
        return _array(cursor, what, depth)
    return _numbers(cursor, kind, 1, what)[0].item()


def _array(cursor: ByteCursor, what: str, depth: int) -> list[Any] | np.ndarray:
    at = cursor.at
    if depth == DEEPEST_NESTING:
        raise cursor.error(what, f"arrays nested more than {DEEPEST_NESTING} deep", at)
    kind = cursor.number("<I", f"element type of {what}")
    if kind in SCALARS:
        return _numbers(cursor, kind, cursor.count(np.dtype(SCALARS[kind]).itemsize, f"length of {what}"), what)
    if kind == STRING:
        return [cursor.text(f"element {i} of {what}") for i in range(cursor.count(8, f"length of {what}"))]
    if kind == ARRAY:
        inner = range(cursor.count(12, f"length of {what}"))  # 12: each has at least a type and a length
        return [_array(cursor, f"element {i} of {what}", depth + 1) for i in inner]
    raise cursor.error(f"element type of {what}", f"unknown type {kind}", at)


def _numbers(cursor: ByteCursor, kind: int, count: int, what: str) -> np.ndarray:
    if kind not in SCALARS:
        raise cursor.error(f"type of {what}", f"unknown type {kind}")
    dtype, at = np.dtype(SCALARS[kind]), cursor.at
    values = cursor.take(count * dtype.itemsize, what)
    if dtype == np.bool_ and values.size and values.max() > 1:
        raise cursor.error(what, f"a truth value of {values.max()}; expected 0 or 1", at)
    return values.copy().view(dtype)  # a copy, so that metadata does not keep the file mapped


@dataclass(frozen=True)
class _Row:
    """The tensor table as it stands in the file: offset counts from the start of the data."""

    shape: tuple[int, ...]
    type: BlockType
    offset: int
    at: int


def _tensor_table(cursor: ByteCursor, count: int) -> dict[str, _Row]:
    rows: dict[str, _Row] = {}
    for i in range(count):
        at, name = cursor.at, cursor.text(f"name of tensor {i}")
        if name in rows:
            raise cursor.error(f"tensor {name}", "the name stands twice", at)
        rows[name] = _Row(_shape(cursor, name), _type(cursor, name), cursor.number("<Q", f"offset of {name}"), at)
    return rows


def _shape(cursor: ByteCursor, name: str) -> tuple[int, ...]:
    """Dimensions, which the file lists fastest first."""
    at, count = cursor.at, cursor.number("<I", f"number of dimensions of tensor {name}")
    if not 1 <= count <= MOST_DIMENSIONS:
        raise cursor.error(f"number of dimensions of tensor {name}", f"{count}; expected 1..{MOST_DIMENSIONS}", at)
    at, dimensions = cursor.at, [cursor.number("<Q", f"dimension {i} of tensor {name}") for i in range(count)]
    if 0 in dimensions or prod(dimensions) > 2**63 - 1:
        raise cursor.error(f"dimensions of tensor {name}", f"{dimensions}: empty, or too many elements to count", at)
    return tuple(reversed(dimensions))


def _type(cursor: ByteCursor, name: str) -> BlockType:
    at, number = cursor.at, cursor.number("<I", f"type of tensor {name}")
    if number not in BLOCK_TYPES:
        raise cursor.error(f"type of tensor {name}", f"unknown type {number}", at)
    return BLOCK_TYPES[number]


def _placed(cursor: ByteCursor, row: _Row, alignment: int, name: str) -> GgufTensor:
    """A row of the table with its place in the file, which must be aligned and inside it.

    The data begin at the first multiple of `alignment` after the table, and each tensor at a multiple from there.
    """
    data_start = -(-cursor.at // alignment) * alignment
    tensor = GgufTensor(name, row.shape, row.type, data_start + row.offset)
    try:
        end = tensor.offset + tensor.nbytes
    except ValueError as problem:
        raise cursor.error(f"tensor {name}", str(problem), row.at) from None
    if row.offset % alignment:
        raise cursor.error(f"tensor {name}", f"its offset {row.offset} is not a multiple of {alignment}", row.at)
    if end > len(cursor.data):
        place = f"{tensor.nbytes} bytes from byte {tensor.offset}"
        raise cursor.error(f"tensor {name}", f"{place} on, but the file has {len(cursor.data)}", row.at)
    return tensor


def _refuse_overlaps(cursor: ByteCursor, tensors: Mapping[str, GgufTensor]) -> None:
    in_order = sorted(tensors.values(), key=lambda tensor: tensor.offset)
    for before, after in zip(in_order, in_order[1:], strict=False):
        if before.offset + before.nbytes > after.offset:
            raise cursor.error(f"tensor {after.name}", f"its bytes overlap those of {before.name}", after.offset)
