"""How judge and worker talk: frames that can hold values, and nothing that runs.

A frame is two lengths, a JSON header that describes one value, and the raw little-endian bytes of its arrays in the
order in which the header names them. Only listed exact types are written, so that no object of a student's making
crosses; what is read comes from a stranger, and every length is checked before memory is taken.
"""

import json
import math
import struct
from io import BufferedIOBase
from typing import Any

import numpy as np

from llminfer.grading.guarded_buffers import Guarded

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "bfloat16"),
)
HEADER_LIMIT_BYTES = 4 << 20
FRAME_LIMIT_BYTES = 64 << 20
DEPTH_LIMIT = 32
VALUE_LIMIT = 100_000
"""Values in one frame; an empty list costs three bytes in a header, and twenty times as many in memory."""
AXIS_LIMIT = 16

_LENGTHS = struct.Struct("<IQ")  # header, body


class FrameError(ValueError):
    """The other side sent something that is not a frame, or one beyond the limits."""


def encode(value: Any) -> bytes:
    """The frame of a value: None, bool, int, float, str, bytes, list, tuple, dict, NumPy arrays and scalars, Guarded.

    Raises TypeError for anything else, subclasses included, and ValueError beyond the limits; both say where it is.
    """
    writer = _Writer()
    header = json.dumps(writer.described(value), separators=(",", ":"), allow_nan=False).encode("ascii")
    body = b"".join(writer.chunks)
    if len(header) > HEADER_LIMIT_BYTES or len(header) + len(body) > FRAME_LIMIT_BYTES:
        raise ValueError(f"the value takes {len(header) + len(body)} bytes, more than fit in a frame")
    return _LENGTHS.pack(len(header), len(body)) + header + body


def decode(frame: bytes) -> Any:
    """The value of a frame. Raises FrameError for whatever is not exactly one well-formed frame."""
    if len(frame) < _LENGTHS.size:
        raise FrameError(f"a frame begins with {_LENGTHS.size} bytes, got {len(frame)}")
    header_bytes, body_bytes = _checked_lengths(frame[: _LENGTHS.size])
    if len(frame) != _LENGTHS.size + header_bytes + body_bytes:
        raise FrameError(f"the frame has {len(frame)} bytes, its lengths add up to something else")
    end = _LENGTHS.size + header_bytes
    try:
        described = json.loads(frame[_LENGTHS.size : end].decode("ascii"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as problem:  # bad JSON, bad bytes, an int of thousands of digits, deep nesting
        raise FrameError(f"the header cannot be read: {problem}") from None
    reader = _Reader(memoryview(frame)[end:])
    value = reader.value(described, 0)
    if reader.left:
        raise FrameError(f"{len(reader.left)} bytes at the end of the frame belong to nothing")
    return value


def write_frame(stream: BufferedIOBase, frame: bytes) -> None:
    """Write a frame that `encode` made. Raises OSError when the other side is gone."""
    stream.write(frame)
    stream.flush()


def read_frame(stream: BufferedIOBase, limit_bytes: int = FRAME_LIMIT_BYTES) -> bytes:
    """Read one frame. Raises EOFError when the stream ends before it does, FrameError when it would be too long."""
    lengths = _exactly(stream, _LENGTHS.size)
    return lengths + _exactly(stream, sum(_checked_lengths(lengths, limit_bytes)))


def _exactly(stream: BufferedIOBase, count: int) -> bytes:
    data = stream.read(count)
    if len(data or b"") != count:
        raise EOFError("the stream ended inside a frame")
    return data


def _checked_lengths(lengths: bytes, limit_bytes: int = FRAME_LIMIT_BYTES) -> tuple[int, int]:
    header_bytes, body_bytes = _LENGTHS.unpack(lengths)
    if header_bytes > HEADER_LIMIT_BYTES or header_bytes + body_bytes > limit_bytes:
        raise FrameError(f"a frame of {header_bytes} and {body_bytes} bytes; at most {limit_bytes} are read")
    return header_bytes, body_bytes


class _Writer:
    """Describes a value for the header; the bytes of its arrays become `chunks`."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self._place: list[Any] = []
        self._values = 0

    def described(self, value: Any) -> Any:
        """JSON's own types stand for themselves, every other is an object with one key."""
        self._values += 1
        if len(self._place) > DEPTH_LIMIT or self._values > VALUE_LIMIT:
            raise ValueError(f"nested more than {DEPTH_LIMIT} deep, or more than {VALUE_LIMIT} values")
        kind = type(value)  # what a class says of itself in __class__ does not count
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if kind is bytes:
            self.chunks.append(value)
            return {"bytes": len(value)}
        if kind in (list, tuple):
            entries = [self._entry(at, entry) for at, entry in enumerate(value)]
            return entries if kind is list else {"tuple": entries}
        if kind is dict:
            return {"dict": [[self._entry("key", key), self._entry(key, entry)] for key, entry in value.items()]}
        if kind is Guarded:
            return {"guarded": [self._array(value.buffer), list(value.shape), value.border]}
        if kind is np.ndarray:
            return {"array": self._array(value)}
        if isinstance(value, np.generic) and kind is value.dtype.type:
            return {"scalar": self._array(np.asarray(value))[0]}
        raise TypeError(f"{self._where} is of type {kind.__module__}.{kind.__qualname__}, which cannot be compared")

    def _entry(self, key: Any, entry: Any) -> Any:
        self._place.append(key)
        described = self.described(entry)
        self._place.pop()
        return described

    def _array(self, array: np.ndarray) -> list:
        name = array.dtype.name
        if name not in DTYPES:
            raise TypeError(f"{self._where} is an array of {name}; only {', '.join(DTYPES)} can be compared")
        little = array if name == "bfloat16" else array.astype(array.dtype.newbyteorder("<"), copy=False)
        self.chunks.append(little.tobytes())
        return [name, list(array.shape)]

    @property
    def _where(self) -> str:
        return "the value" + "".join(f"[{key!r}]" if type(key) in (int, str) else "[...]" for key in self._place)


class _Reader:
    """Builds the value that a header describes, taking the bytes of arrays off the body in turn."""

    def __init__(self, body: memoryview) -> None:
        self.left = body
        self._values = 0

    def value(self, described: Any, depth: int) -> Any:
        self._values += 1
        if depth > DEPTH_LIMIT or self._values > VALUE_LIMIT:
            raise FrameError(f"nested more than {DEPTH_LIMIT} deep, or more than {VALUE_LIMIT} values")
        if type(described) is list:
            return [self.value(entry, depth + 1) for entry in described]
        if type(described) is str:
            return _text(described)
        if type(described) is not dict:
            return described
        if len(described) != 1:
            raise FrameError("a typed value has exactly one type")
        [(kind, content)] = described.items()
        read = getattr(self, f"_read_{kind}", None) if kind in _TYPED else None
        if read is None:
            raise FrameError(f"unknown type {kind[:40]!r}")
        return read(content, depth)

    def _read_float(self, content: Any, depth: int) -> float:
        if content not in ("nan", "inf", "-inf"):
            raise FrameError("only nan, inf and -inf are written as words")
        return float(content)

    def _read_bytes(self, content: Any, depth: int) -> bytes:
        return bytes(self._take(content))

    def _read_tuple(self, content: Any, depth: int) -> tuple:
        return tuple(self.value(entry, depth + 1) for entry in _list(content))

    def _read_dict(self, content: Any, depth: int) -> dict:
        pairs = [[self.value(entry, depth + 1) for entry in _list(pair, 2)] for pair in _list(content)]
        try:
            return dict(pairs)
        except TypeError:
            raise FrameError("a key of a dict must be hashable") from None

    def _read_array(self, content: Any, depth: int) -> np.ndarray:
        name, shape = _list(content, 2)
        dtype, shape = _dtype(name), _shape(shape)
        data = self._take(math.prod(shape) * dtype.itemsize)
        if name == "bool" and not set(bytes(data)) <= {0, 1}:
            raise FrameError("a bool is a byte of 0 or 1")
        return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=True)

    def _read_scalar(self, content: Any, depth: int) -> np.generic:
        return self._read_array([content, []], depth)[()]

    def _read_guarded(self, content: Any, depth: int) -> Guarded:
        array, shape, border = _list(content, 3)
        try:
            return Guarded(self._read_array(array, depth), _shape(shape), border)
        except (TypeError, ValueError) as problem:
            raise FrameError(str(problem)) from None

    def _take(self, count: Any) -> memoryview:
        if type(count) is not int or not 0 <= count <= len(self.left):
            raise FrameError(f"{count!r} bytes are announced where {len(self.left)} are left")
        taken, self.left = self.left[:count], self.left[count:]
        return taken


_TYPED = ("float", "bytes", "tuple", "dict", "array", "scalar", "guarded")


def _list(content: Any, length: int | None = None) -> list:
    if type(content) is not list or length not in (None, len(content)):
        raise FrameError(f"expected a list{'' if length is None else f' of {length}'}, got {type(content).__name__}")
    return content


def _shape(content: Any) -> tuple[int, ...]:
    shape = tuple(_list(content))
    if len(shape) > AXIS_LIMIT or not all(type(length) is int and 0 <= length < 2**31 for length in shape):
        raise FrameError(f"a shape has at most {AXIS_LIMIT} axes of 0 to 2**31 - 1")
    return shape


def _dtype(name: Any) -> np.dtype:
    if type(name) is not str or name not in DTYPES:
        raise FrameError("unknown dtype")
    if name == "bfloat16":
        import ml_dtypes  # 10 ms, which most exercises need not wait for

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name).newbyteorder("<")


def _text(text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise FrameError("half of a surrogate pair is not text")
    return text


def _refuse_constant(word: str) -> None:
    raise FrameError(f"{word} is not JSON")
