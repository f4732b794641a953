"""Kernels compile for GPUs that are not there, and what they take there is read from the compiled object."""

import os

import ml_dtypes  # noqa: F401  (teaches NumPy the name "bfloat16")
import numpy as np
import pytest

pytest.importorskip("llminfer.core.triton_environment", exc_type=ImportError)  # torch or triton may be missing

import torch

from llminfer.core.compilation import TARGETS, compile_pairs
from llminfer.core.cost import Cost
from llminfer.core.hardware import DEVICES
from llminfer.core.pairs import Pair, compile_for, find_pairs, pair_names, usual_dtype
from llminfer.core.triton_environment import autotune, tl, triton


def one_pair(name, kernel, size=1024, dtypes=("float32",)):
    def reference(x):
        return x

    def cases(rng, size_name, dtype):
        return {"x": np.zeros((size, size), dtype)}

    return Pair(f"test.{name}", reference, kernel, reference, cases, lambda x: Cost(0, 0, 0), dtypes)


@triton.jit
def _copy_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(tl.float32))


_tuned_copy_kernel = autotune([triton.Config({"BLOCK": 512}, num_warps=8), triton.Config({"BLOCK": 64})], key=[])(
    _copy_kernel
)


def copies_twice(x):
    """Two launches of one kernel and one of a tuned one, to be told apart by what was compiled."""
    out = torch.empty_like(x)
    _copy_kernel[(8,)](x, out, BLOCK=256)
    _copy_kernel[(4,)](x, out, BLOCK=256)
    _tuned_copy_kernel[lambda meta: (2048 // meta["BLOCK"],)](x, out)
    return out


@triton.jit
def _wide_dot_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    row, column = tl.arange(0, 64)[:, None], tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + row * BLOCK + column).to(tl.float16)
    tl.store(out_ptr + row * 64 + tl.arange(0, 64)[None, :], tl.dot(x, tl.trans(x * 2)))


def asks_for_much_shared_memory(x):
    """Two operands of 64 x 512 float16, 64 KiB each: more than a block gets on sm_89, less than on sm_90."""
    out = torch.empty_like(x)
    _wide_dot_kernel[(1,)](x, out, BLOCK=512, num_warps=8)
    return out


@triton.jit
def _hoarding_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    one, two = tl.load(x_ptr + at).to(tl.float32), tl.load(x_ptr + at + 1).to(tl.float32)
    tl.store(out_ptr + at, one * tl.sum(two, axis=0) + two * tl.sum(one, axis=0))


def holds_more_than_its_registers(x):
    out = torch.empty_like(x)
    _hoarding_kernel[(1,)](x, out, BLOCK=16384, num_warps=1)
    return out


@triton.jit
def _faulty_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK > 4096, "this block is too small")


def does_not_compile(x):
    _faulty_kernel[(1,)](x, BLOCK=16)
    return x


def launches_nothing(x):
    return x


def takes_the_process_along(x):
    os._exit(7)


COPIES = one_pair("copies_twice", copies_twice)
MUCH_SHARED = one_pair("much_shared", asks_for_much_shared_memory)
HOARDING = one_pair("hoarding", holds_more_than_its_registers)
FAULTY = one_pair("faulty", does_not_compile)
IDLE = one_pair("idle", launches_nothing)
DEADLY = one_pair("deadly", takes_the_process_along)
NEVER_REACHED = one_pair("never_reached", launches_nothing)


@pytest.fixture(scope="module")
def results():
    """One process for all of them; the deadly one comes last but one."""
    pairs = [COPIES, MUCH_SHARED, HOARDING, FAULTY, IDLE, DEADLY, NEVER_REACHED]
    found = compile_pairs(pairs, ["sm_89", "sm_90", "gfx942"])
    return {(result.pair.removeprefix("test."), result.target): result for result in found}


def test_each_pair_has_an_answer_for_each_target(results):
    assert len(results) == 7 * 3


@pytest.mark.parametrize("target", ["sm_89", "sm_90", "gfx942"])
def test_each_launch_that_differs_is_one_kernel(results, target):
    result = results["copies_twice", target]
    assert result.passed, result
    assert [(kernel.name, kernel.warps) for kernel in result.kernels] == [("_copy_kernel", 4), ("_copy_kernel", 8)]
    assert all(kernel.registers > 0 and kernel.local_bytes == 0 for kernel in result.kernels)


def test_shared_memory_is_held_against_the_limit_of_the_target(results):
    assert results["much_shared", "sm_90"].passed, results["much_shared", "sm_90"]
    for target in ("sm_89", "gfx942"):
        assert results["much_shared", target].too_large == ("_wide_dot_kernel",)
        assert not results["much_shared", target].passed


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_spilled_registers_are_seen(results, target):
    [kernel] = results["hoarding", target].kernels
    assert kernel.local_bytes > 0


def test_what_does_not_compile_gives_its_reason_and_leaves_the_others_alone(results):
    assert "this block is too small" in results["faulty", "sm_90"].error
    assert not results["faulty", "gfx942"].passed


def test_a_pair_that_launches_nothing_has_not_passed(results):
    assert not results["idle", "sm_90"].passed
    assert "no kernel was launched" in str(results["idle", "sm_90"])


def test_a_compiler_that_dies_is_reported_where_it_died_and_after(results):
    for name in ("deadly", "never_reached"):
        assert "ended with code 7" in results[name, "sm_90"].error


def test_the_text_says_that_nothing_was_run(results):
    assert "compiled, not run" in str(results["copies_twice", "sm_90"])


def test_an_unknown_target_or_dtype_is_refused():
    with pytest.raises(ValueError, match=r"sm_90.*got sm_75"):
        compile_for(COPIES, "sm_75")
    with pytest.raises(ValueError, match="float16"):
        compile_for(COPIES, "sm_90", "float16")


def test_the_usual_dtype_is_what_models_run_in():
    assert usual_dtype(one_pair("a", launches_nothing, dtypes=("float32", "bfloat16", "float16"))) == "bfloat16"
    assert usual_dtype(one_pair("b", launches_nothing, dtypes=("float32", "float16"))) == "float16"
    assert usual_dtype(one_pair("c", launches_nothing, dtypes=("int8",))) == "int8"


def test_limits_agree_with_the_device_table():
    known = {d.target: d.shared_memory_per_block_bytes for d in DEVICES.values() if d.target in TARGETS}
    assert known
    for target, limit in known.items():
        assert TARGETS[target].shared_limit_bytes == limit, target


@pytest.fixture(scope="module")
def matrix():
    return compile_pairs(find_pairs())


@pytest.mark.slow
@pytest.mark.parametrize("name", pair_names())
def test_every_kernel_compiles_for_every_target(matrix, name):
    results = [result for result in matrix if result.pair == name]
    assert {result.target for result in results} == set(TARGETS)
    assert all(result.passed for result in results), "\n".join(map(str, results))
