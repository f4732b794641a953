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
