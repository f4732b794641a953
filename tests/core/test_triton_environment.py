"""The interpreter is chosen in time, whoever imported Triton before."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("llminfer.core.triton_environment", exc_type=ImportError)  # torch or triton may be missing

PROGRAM = """
import triton
from llminfer.core.triton_environment import INTERPRETED
import torch
from llminfer.basics.ops_triton import softmax
assert INTERPRETED
print(softmax(torch.zeros(1, 4)).tolist())
"""


@pytest.mark.parametrize("asked", [None, "1"])
def test_kernels_are_interpreted_though_triton_was_imported_earlier(asked):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}  # as on a machine without a GPU
    environment |= {"TRITON_INTERPRET": asked} if asked else {}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "[[0.25, 0.25, 0.25, 0.25]]", done.stderr[-1000:]


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
