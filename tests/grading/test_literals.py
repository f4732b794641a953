"""What is written can be read back: the same type, the same bits."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from llminfer.grading.literals import TooLongError, imports, literal

DTYPES = ("bool", "int8", "int64", "uint64", "float16", "float32", "float64")
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
ARRAYS = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)


def read(source: str) -> object:
    names: dict = {}
    exec(imports(source), names)
    return eval(source, names)


@given(PLAIN)
def test_plain_values_come_back(value):
    assert repr(read(literal(value))) == repr(value)


@given(ARRAYS)
def test_arrays_come_back_bit_by_bit(array):
    found = read(literal(array))
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    finite = ~np.isnan(array) if array.dtype.kind == "f" else ...
    assert found[finite].tobytes() == array[finite].tobytes()  # of NaN there are many, and one will do


def test_bfloat16_comes_back():
    array = np.random.default_rng(1).normal(size=(3, 5)).astype(ml_dtypes.bfloat16)
    found = read(literal(array))
    assert found.dtype == array.dtype
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("array", "source"),
    [
        (np.full((40, 50), 2.5, np.float32), "np.full((40, 50), 2.5, dtype=np.float32)"),
        (np.zeros((7, 9)), "np.zeros((7, 9), dtype=np.float64)"),
        (np.arange(600).reshape(20, 30), "np.arange(600, dtype=np.int64).reshape((20, 30))"),
    ],
)
def test_an_array_that_follows_a_rule_is_written_by_it(array, source):
    assert literal(array) == source
    np.testing.assert_array_equal(read(source), array)


def test_a_zero_keeps_its_sign():
    assert np.signbit(read(literal(np.full(20, -0.0)))).all()
    assert np.signbit(read(literal(np.array([0.0, -0.0] * 6)))).sum() == 6


def test_a_large_array_without_a_rule_is_too_long():
    with pytest.raises(TooLongError, match="an array of 1000 elements"):
        literal(np.random.default_rng(1).normal(size=1000))
