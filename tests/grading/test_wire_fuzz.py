"""Frames from a stranger: whatever arrives is a value or a FrameError, without memory for what it claims."""

import io
import json
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from llminfer.grading.guarded_buffers import Guarded
from llminfer.grading.sessions import checked_reply
from llminfer.grading.wire import DTYPES, FrameError, decode, encode, read_frame

pytestmark = pytest.mark.slow
MOST_MEMORY_BYTES = 2_000_000  # the frames here have some kilobytes; no claim in them may cost more than this
FEW = settings(max_examples=300, deadline=None)

DTYPE = st.sampled_from([name for name in DTYPES if name != "bfloat16"])
ARRAYS = DTYPE.flatmap(lambda name: npst.arrays(name, npst.array_shapes(min_dims=0, min_side=0, max_side=4)))
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.binary()
KEYS = st.none() | st.booleans() | st.integers() | TEXT | st.binary() | st.tuples(st.integers(), TEXT)
VALUES = st.recursive(
    SCALARS | ARRAYS | ARRAYS.filter(lambda array: array.size).map(lambda array: array.ravel()[0]),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(KEYS, inner),
    max_leaves=20,
)
LENGTHS = st.sampled_from([-1, 0, 1, 2, 7, 255, 2**16, 2**31 - 1, 2**31, 2**40, 2**62, 2**64, True, None, 1.5, "1", []])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | LENGTHS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3), inner, max_size=2)
        | st.dictionaries(st.sampled_from(["float", "bytes", "tuple", "dict", "array", "scalar", "guarded"]), inner)
        | st.builds(lambda name, shape: {"array": [name, shape]}, st.sampled_from(DTYPES), st.lists(LENGTHS | inner))
        | st.builds(lambda array, shape, border: {"guarded": [array, shape, border]}, inner, st.lists(LENGTHS), LENGTHS)
        | st.lists(st.lists(inner, min_size=2, max_size=2), max_size=3).map(lambda pairs: {"dict": pairs})
    ),
    max_leaves=12,
)


def is_value_or_refused(frame: bytes) -> None:
    tracemalloc.start()
    try:
        value = decode(frame)
    except FrameError:
        return
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MOST_MEMORY_BYTES + 50 * len(frame)
    assert decode(encode(value)) is not Ellipsis  # what was let in can be written again


def packed(header: bytes, body: bytes) -> bytes:
    return struct.pack("<IQ", len(header), len(body)) + header + body


def same(left: object, right: object) -> bool:
    if isinstance(left, np.ndarray | np.generic):
        return (
            type(left) is type(right)
            and (left.dtype, left.shape) == (right.dtype, right.shape)
            and bits(left) == bits(right)
        )
    if isinstance(left, list | tuple):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return type(right) is dict and same(list(left), list(right)) and same(list(left.values()), list(right.values()))
    return type(left) is type(right) and repr(left) == repr(right)


def bits(array: np.ndarray) -> bytes:
    return array.tobytes()


@FEW
@given(VALUES)
def test_any_value_comes_back_as_it_was(value):
    assert same(decode(encode(value)), value)


@FEW
@given(st.binary(max_size=200))
def test_any_bytes(frame):
    is_value_or_refused(frame)


@FEW
@given(st.binary(max_size=100), st.binary(max_size=50))
def test_any_header(header, body):
    is_value_or_refused(packed(header, body))


@FEW
@given(JSON, st.binary(max_size=64))
def test_any_description(described, body):
    is_value_or_refused(packed(json.dumps(described).encode(), body))


@FEW
@given(VALUES, st.data())
def test_a_damaged_frame(value, data):
    frame = bytearray(encode(value))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(frame) - 1))
        how = data.draw(st.sampled_from(["flip", "cut", "insert", "number"]))
        if how == "flip":
            frame[place] ^= 1 << data.draw(st.integers(0, 7))
        elif how == "cut":
            del frame[place : place + data.draw(st.integers(1, 8))]
        elif how == "insert":
            frame[place:place] = data.draw(st.binary(min_size=1, max_size=8))
        else:
            frame[place : place + 1] = str(data.draw(st.integers(0, 2**70))).encode()
        if not frame:
            break
    is_value_or_refused(bytes(frame))


@FEW
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.binary(max_size=50))
def test_any_announcement_on_a_stream(header_bytes, body_bytes, rest):
    class Stream(io.BytesIO):
        asked = 0

        def read(self, count=-1):
            self.asked = max(self.asked, count)
            return super().read(count)

    stream = Stream(struct.pack("<IQ", header_bytes, body_bytes) + rest)
    try:
        read_frame(stream, limit_bytes=1000)
    except (FrameError, EOFError):
        pass
    assert stream.asked <= 1000


@FEW
@given(
    VALUES
    | st.dictionaries(st.sampled_from(["id", "status", "error", "traceback", "arguments_after", "value"]), VALUES)
)
def test_any_value_in_place_of_a_reply_is_refused(answer):
    with pytest.raises(FrameError):
        checked_reply(answer, b"sixteen random b")


@FEW
@given(ARRAYS.filter(lambda array: array.dtype != object), st.integers(0, 9), st.integers(0, 2**32))
def test_borders_come_back(array, border, seed):
    sent = Guarded.around(array, np.random.default_rng(seed), border)
    got = decode(encode(sent))
    assert got.same_borders(sent)
    assert same(got.array, sent.array)
