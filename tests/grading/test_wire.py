"""Frames: every value that may cross comes back as it was, and nothing else is let through."""

import io
import json
import struct

import ml_dtypes
import numpy as np
import pytest

from llminfer.grading import wire
from llminfer.grading.guarded_buffers import Guarded
from llminfer.grading.wire import DTYPES, FrameError, decode, encode, read_frame, write_frame


def same(left: object, right: object) -> bool:
    """Equal in type, shape and bits, NaN included."""
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray | np.generic):
        return (left.dtype, left.shape, left.tobytes()) == (right.dtype, right.shape, right.tobytes())
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return same(list(left.items()), list(right.items()))
    return repr(left) == repr(right)


def frame(header: object, body: bytes = b"") -> bytes:
    """What a hostile worker may send."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<IQ", len(text), len(body)) + text + body


VALUES = [
    *(None, True, False, 0, -1, 2**200, 1.5, -0.0, float("nan"), float("inf"), "", "ü🙂\n\0", b"", b"\xff\0"),
    *([], (), {}, [[]], (1, [2, (3,)]), {"a": 1, 2: [None], (1, "b"): {}, None: True, 1.5: b"x"}),
    np.float32(1.5),
    np.bool_(True),
    ml_dtypes.bfloat16(2.5),
    np.zeros((0, 3)),
    np.zeros((2, 0), np.int8),
    np.array(7, np.uint16),
    np.arange(24, dtype=np.int32).reshape(2, 3, 4)[:, ::-1, ::2],
    np.array([np.nan, -0.0, np.inf], np.float16),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__}-{value!r:.20}")
def test_a_value_comes_back_as_it_was(value):
    assert same(decode(encode(value)), value)


@pytest.mark.parametrize("name", DTYPES)
def test_every_listed_dtype_crosses_bit_for_bit(name):
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    raw = np.random.default_rng(0).integers(0, 2 if name == "bool" else 256, 48 * dtype.itemsize, np.uint8)
    array = raw.view(dtype).reshape(2, 24)
    assert same(decode(encode({"a": array, "b": [array[0, 3]]})), {"a": array, "b": [array[0, 3]]})


def test_the_byte_order_of_an_array_does_not_cross():
    big = np.arange(5, dtype=">i4")
    assert same(decode(encode(big)), np.arange(5, dtype=np.int32))


def test_integers_of_one_width_are_one_type():
    assert same(decode(encode([np.longlong(3)])), [np.int64(3)])


def test_what_is_decoded_can_be_written_to():
    decode(encode(np.zeros(3)))[0] = 1


class Sly(np.ndarray):
    pass


class Number(int):
    pass


class Scalar(np.float64):
    pass


@pytest.mark.parametrize(
    "value",
    [
        *(np.zeros(2).view(Sly), np.ma.masked_array([1.0]), Number(3), Scalar(3), {1, 2}, object(), len),
        *(1j, np.zeros(2, complex), np.array([None]), np.array(["a"]), np.datetime64("2020-01-01"), iter([])),
    ],
    ids=lambda value: type(value).__name__,
)
def test_nothing_but_the_listed_exact_types_is_written(value):
    with pytest.raises(TypeError, match=r"\[1\]\['x'\] is "):
        encode([0, {"x": value}])


def test_a_class_that_lies_about_itself_is_not_written():
    class Liar:
        __class__ = float

        def __eq__(self, other):
            return True

    with pytest.raises(TypeError, match="Liar, which cannot be compared"):
        encode(Liar())


def test_a_value_of_too_many_parts_is_refused_on_both_sides(monkeypatch):
    """An empty list takes three bytes in a header, and twenty times as many in memory."""
    monkeypatch.setattr(wire, "VALUE_LIMIT", 1000)
    assert len(decode(encode([[]] * 999))) == 999
    with pytest.raises(ValueError, match="1000 values"):
        encode([[]] * 1000)
    with pytest.raises(FrameError, match="1000 values"):
        decode(frame([[]] * 1000))


def test_a_value_nested_too_deep_is_refused_on_both_sides():
    deep = []
    deep.append(deep)
    with pytest.raises(ValueError, match="deep"):
        encode(deep)
    for header in (b"[" * 40 + b"]" * 40, b"[" * 200_000):
        with pytest.raises(FrameError):
            decode(frame(header))


HOSTILE = {
    "bytes that are not there": frame({"bytes": 10}, b"123"),
    "bytes that belong to nothing": frame({"bytes": 1}, b"123"),
    "a negative number of bytes": frame({"bytes": -1}, b"1"),
    "a true number of bytes": frame({"bytes": True}, b"1"),
    "an array beyond its bytes": frame({"array": ["float64", [2**30, 2**30]]}, b"1" * 8),
    "an axis beyond what NumPy takes": frame({"array": ["float64", [0, 2**62]]}),
    "a negative axis": frame({"array": ["float64", [-1, -8]]}, b"1" * 64),
    "too many axes": frame({"array": ["int8", [1] * 65]}, b"1"),
    "an array of objects": frame({"array": ["object", [1]]}, b"1" * 8),
    "a dtype with fields": frame({"array": [[["a", "i4"]], [1]]}, b"1" * 4),
    "a bool that is 2": frame({"array": ["bool", [1]]}, b"\x02"),
    "a scalar with a shape": frame({"scalar": ["float32", []]}, b"1" * 4),
    "an unknown type": frame({"object": "os.system"}),
    "a method of the reader": frame({"value": []}),
    "two types at once": frame({"tuple": [], "dict": []}),
    "a dict with a list for a key": frame({"dict": [[[], 1]]}),
    "a pair of three": frame({"dict": [[1, 2, 3]]}),
    "a word for a float": frame({"float": "1e5"}),
    "a list for a float": frame({"float": ["nan"]}),
    "a bare NaN": frame(b"NaN"),
    "half a surrogate pair": frame(b'"\\ud800"'),
    "bytes that are not ASCII": frame('"ü"'.encode()),
    "an int of ten thousand digits": frame(b"9" * 10_000),
    "no header": frame(b""),
    "a header beyond its limit": frame(b"[" + b"[]," * 2_000_000 + b"[]]"),
    "a guarded buffer that does not fit": frame({"guarded": [["int8", [3]], [2], 1]}, b"123"),
    "a guarded buffer with a negative border": frame({"guarded": [["int8", [0]], [2], -1]}),
    "a longer frame than announced": encode(1) + b"x",
    "a frame cut short": encode("text")[:-1],
    "less than the lengths": b"abc",
    "nothing": b"",
}


@pytest.mark.parametrize("received", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_not_a_frame_is_refused(received):
    with pytest.raises(FrameError):
        decode(received)


def test_frames_are_read_one_by_one_from_a_stream():
    stream = io.BytesIO()
    write_frame(stream, encode(1))
    write_frame(stream, encode(np.arange(3)))
    stream.seek(0)
    assert decode(read_frame(stream)) == 1
    assert same(decode(read_frame(stream)), np.arange(3))
    with pytest.raises(EOFError):
        read_frame(stream)


def test_a_length_beyond_the_limit_is_refused_before_memory_is_taken():
    class Stream(io.BytesIO):
        def read(self, count=-1):
            assert count < 100
            return super().read(count)

    for lengths in (struct.pack("<IQ", 2**32 - 1, 0), struct.pack("<IQ", 1, 2**62)):
        with pytest.raises(FrameError, match="at most"):
            read_frame(Stream(lengths))


def test_a_guarded_array_keeps_its_borders():
    rng = np.random.default_rng(0)
    sent = Guarded.around(np.arange(6, dtype=np.float32).reshape(2, 3), rng, border=4)
    got = decode(encode(sent))
    assert same(got.array, np.arange(6, dtype=np.float32).reshape(2, 3))
    assert got.same_borders(sent)
    got.array[:] = np.nan
    assert got.same_borders(sent)
    for place in (3, 10):
        spoilt = decode(encode(sent))
        spoilt.buffer.view(np.uint8)[4 * place] ^= 1
        assert not spoilt.same_borders(sent)


def test_a_guarded_array_of_another_shape_has_no_borders_in_common():
    rng = np.random.default_rng(0)
    sent = Guarded.around(np.zeros((2, 3)), rng, border=4)
    assert not Guarded(sent.buffer, (3, 2), 4).same_borders(sent)
    with pytest.raises(ValueError, match="14 elements"):
        Guarded(sent.buffer[:-1], (2, 3), 4)
