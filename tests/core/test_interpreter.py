"""What core owns of Triton without a GPU: tuned kernels run untimed, operands can be multiplied, casts are known."""

import pytest

pytest.importorskip("llminfer.core.triton_environment", exc_type=ImportError)  # torch or triton may be missing

import torch

from llminfer.core.triton_environment import DEVICE, INTERPRETED, autotune, operand_dtype, tl, triton


@triton.jit
def _fill_kernel(out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.full((BLOCK,), BLOCK, tl.float32), mask=at < size)


configurations = [triton.Config({"BLOCK": 32}, num_warps=8, num_stages=3), triton.Config({"BLOCK": 64})]
_tuned_fill_kernel = autotune(configurations, key=["size"])(_fill_kernel)


def test_a_tuned_kernel_runs_without_a_gpu_in_its_first_configuration():
    out = torch.zeros(100, device=DEVICE)
    _tuned_fill_kernel[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](out, 100)
    assert set(out.tolist()) <= {32.0, 64.0}
    if DEVICE == "cpu":
        assert set(out.tolist()) == {32.0}


@pytest.mark.skipif(not INTERPRETED, reason="compiled kernels multiply narrow types")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn])
def test_the_interpreter_multiplies_in_float32(dtype):
    assert operand_dtype(torch.empty(1, dtype=dtype)) == tl.float32


def test_compiled_operands_keep_their_type(monkeypatch):
    monkeypatch.setattr("llminfer.core.triton_environment.INTERPRETED", False)
    names = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16, torch.float8_e4m3fn: tl.float8e4nv}
    assert {dtype: operand_dtype(torch.empty(1, dtype=dtype)) for dtype in names} == names


@triton.jit
def _cast_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(tl.float32).to(out_ptr.dtype.element_ty))


def cast_in_a_kernel(values, dtype):
    out = torch.empty(values.shape, dtype=dtype, device=DEVICE)
    _cast_kernel[(1,)](values.to(DEVICE), out, BLOCK=values.numel())
    return out.cpu()


VALUES = torch.rand(4096, generator=torch.Generator().manual_seed(0))


def test_float16_is_rounded_to_nearest_everywhere():
    assert torch.equal(cast_in_a_kernel(VALUES, torch.float16), VALUES.half())


@pytest.mark.skipif(not INTERPRETED, reason="a hazard of the interpreter")
def test_the_interpreter_cuts_bfloat16_off_by_less_than_the_tolerance_makes_up_for():
    cut, eps = cast_in_a_kernel(VALUES, torch.bfloat16).double(), torch.finfo(torch.bfloat16).eps
    assert (cut <= VALUES.double()).all()
    assert ((VALUES - cut) / VALUES).max() < eps
