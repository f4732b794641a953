"""Guards and poison: what is written or read beside a tensor shows."""

import numpy as np
import pytest

pytest.importorskip("llminfer.core.triton_environment", exc_type=ImportError)  # torch or triton may be missing

import torch

from llminfer.core.guarded_memory_torch import GUARD, ROW_GAP, Guarded, PoisonedAllocations, guarded_arguments

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool]


def guarded(dtype=torch.float32, shape=(3, 4), kind=0, strided=False):
    return Guarded(shape, torch.empty(0, dtype=dtype), kind, strided)


def buffer_of(tensor):
    """The whole memory a tensor lies in."""
    return torch.as_strided(tensor, (tensor.untyped_storage().nbytes() // tensor.itemsize,), (1,), 0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_fresh_memory_and_its_guards_are_nan(dtype):
    whole = buffer_of(guarded(dtype).tensor)
    assert whole.numel() == GUARD + 12 + GUARD
    assert whole.double().isnan().all()


@pytest.mark.parametrize("dtype", INTEGERS[1:-1])
def test_fresh_integers_are_small_negative_or_at_least_no_plausible_code(dtype):
    poison = guarded(dtype, kind=3).tensor.unique().tolist()
    assert poison == ([-4] if dtype != torch.int8 else [88])


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("strided", [False, True])
def test_writing_the_tensor_leaves_the_guards_intact(dtype, strided):
    memory = guarded(dtype, strided=strided)
    memory.tensor.fill_(0)
    assert memory.guards_intact and not memory.unchanged


@pytest.mark.parametrize("place", [0, GUARD - 1, -1, -GUARD])
def test_one_element_written_in_a_guard_is_seen(place):
    memory = guarded()
    buffer_of(memory.tensor)[place] = 0
    assert not memory.guards_intact and not memory.unchanged


def test_one_element_written_in_the_gap_between_rows_is_seen():
    memory = guarded(strided=True)
    assert memory.tensor.stride() == (4 + ROW_GAP, 1)
    torch.as_strided(memory.tensor, (1,), (1,), memory.tensor.storage_offset() + 4)[0] = 0
    assert not memory.guards_intact


def test_strided_arguments_of_one_shape_have_strides_of_their_own():
    same = {name: np.zeros((2, 8), np.float32) for name in ("x", "residual")}
    x, residual = guarded_arguments(same, "cpu", strided=True).values()
    assert x.tensor.stride() != residual.tensor.stride()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.uint8])
def test_a_guard_copied_over_another_is_seen(dtype):
    """A kernel that runs past both its input and its output writes poison over poison."""
    source, target = guarded(dtype, kind=0), guarded(dtype, kind=16)
    buffer_of(target.tensor)[:GUARD] = buffer_of(source.tensor)[:GUARD]
    assert not target.guards_intact


def test_the_kind_of_a_nan_survives_arithmetic_in_float32():
    source, target = guarded(torch.float16, kind=0), guarded(torch.float16, kind=16)
    buffer_of(target.tensor)[:GUARD] = (buffer_of(source.tensor)[:GUARD].float() * 2).half()
    assert not target.guards_intact


def test_what_a_launcher_allocates_is_poisoned_and_guarded():
    given = torch.ones(2, 3)
    with PoisonedAllocations() as memory:
        empty, like, new = torch.empty(5), torch.empty_like(given), given.new_empty(4)
        zeros = torch.zeros(6, dtype=torch.int32)
    assert all(tensor.isnan().all() for tensor in (empty, like, new))
    assert zeros.tolist() == [0] * 6
    assert all(each.guards_intact for each in memory.allocated)
    for place, tensor in enumerate((empty, like, new, zeros)):
        buffer_of(tensor)[0] = 1
        assert not memory.allocated[place].guards_intact


def test_outside_of_the_check_memory_is_as_ever():
    with PoisonedAllocations():
        pass
    assert torch.empty(3).untyped_storage().nbytes() == 12
