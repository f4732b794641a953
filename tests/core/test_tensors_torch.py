"""Arrays and tensors of every dtype of a pair carry the same bytes."""

import ml_dtypes  # noqa: F401  (teaches NumPy the names of narrow types)
import numpy as np
import pytest

pytest.importorskip("llminfer.core.triton_environment", exc_type=ImportError)  # torch or triton may be missing

from llminfer.core.tensors_torch import dtype_name, to_numpy, to_torch
from llminfer.core.tolerances import DTYPES


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (3, 4)])
def test_bytes_shape_and_dtype_survive_the_way_there_and_back(dtype, shape):
    array = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    tensor = to_torch(array)
    assert (dtype_name(tensor), tuple(tensor.shape)) == (dtype, shape)
    back = to_numpy(tensor)
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_strided_view_becomes_the_same_numbers(dtype):
    view = np.arange(12).reshape(3, 4).astype(dtype)[:, 1:3]
    assert to_torch(view).tolist() == view.tolist()
    assert to_numpy(to_torch(view).T).tolist() == view.T.tolist()


def test_the_tensor_owns_its_memory():
    array = np.zeros(3)
    to_torch(array)[0] = 1
    assert array.tolist() == [0, 0, 0]
