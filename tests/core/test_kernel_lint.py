"""Every kernel of the package says the type of what it loads; the lint itself is tried on kernels that do not."""

from pathlib import Path

import pytest

import llminfer
from llminfer.core.kernel_lint import load_faults

KERNEL_FILES = sorted(Path(llminfer.__file__).parent.glob("*/*_triton.py"))


@pytest.mark.parametrize("path", KERNEL_FILES, ids=lambda path: path.stem)
def test_every_load_says_its_type(path):
    assert load_faults(path) == ()


def faults_of(tmp_path, body, decorator="@triton.jit"):
    path = tmp_path / "kernel_triton.py"
    path.write_text(f"{decorator}\ndef kernel(x_ptr, out_ptr, at, OPERAND: tl.constexpr):\n    {body}\n")
    return load_faults(path)


@pytest.mark.parametrize(
    "body",
    [
        "x = tl.load(x_ptr + at).to(tl.float32); tl.store(out_ptr, x * 2)",
        "x = tl.load(x_ptr + at); tl.store(out_ptr, tl.dot(x.to(OPERAND), x.to(OPERAND)))",
        "i = tl.load(x_ptr).to(tl.int64); tl.store(out_ptr + i, i)",
        "x = tl.load(x_ptr); tl.store(out_ptr, x)",
        "tl.store(out_ptr, tl.load(x_ptr), mask=at > 0)",
    ],
)
def test_a_typed_load_or_a_plain_copy_is_fine(tmp_path, body):
    assert faults_of(tmp_path, body) == ()


@pytest.mark.parametrize(
    "body",
    [
        "x = tl.load(x_ptr + at); tl.store(out_ptr, x * 2)",
        "tl.store(out_ptr, tl.load(x_ptr) + 1)",
        "x = tl.load(x_ptr).to(tl.bfloat16); tl.store(out_ptr, x * x)",
        "i = tl.load(x_ptr); tl.store(out_ptr + i, 0)",
        "tl.store(out_ptr, tl.dot(descriptor.load([0, 0]), at))",
    ],
)
def test_arithmetic_on_what_was_just_loaded_is_a_fault(tmp_path, body):
    assert len(faults_of(tmp_path, body)) == 1


def test_only_kernels_are_looked_at(tmp_path):
    assert faults_of(tmp_path, "x = json.load(x_ptr); return x + 1", decorator="@cache") == ()
