"""Every kernel of the package passes the lint; the lint itself is tried on kernels that should not."""

from pathlib import Path

import pytest

import llminfer
from llminfer.core.kernel_lint import kernel_faults

KERNEL_FILES = sorted(Path(llminfer.__file__).parent.glob("*/*_triton.py"))


@pytest.mark.parametrize("path", KERNEL_FILES, ids=lambda path: path.stem)
def test_the_kernels_of_the_package_have_no_fault(path):
    assert kernel_faults(path) == ()


def faults_of(tmp_path, body, decorator="@triton.jit"):
    path = tmp_path / "kernel_triton.py"
    path.write_text(f"{decorator}\ndef kernel(x_ptr, out_ptr, at, OPERAND: tl.constexpr):\n    {body}\n")
    return kernel_faults(path)


@pytest.mark.parametrize(
    "body",
    [
        "x = tl.load(x_ptr + at).to(tl.float32); tl.store(out_ptr, x * 2)",
        "x = tl.load(x_ptr + at); tl.store(out_ptr, tl.dot(x.to(OPERAND), x.to(OPERAND), input_precision='ieee'))",
        "i = tl.load(x_ptr).to(tl.int64); tl.store(out_ptr + i, i)",
        "x = tl.load(x_ptr); tl.store(out_ptr, x)",
        "tl.store(out_ptr, tl.load(x_ptr, mask=at > 0, other=0.0), mask=at > 0)",
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
        "tl.store(out_ptr, tl.sum(descriptor.load([0, 0])))",
    ],
)
def test_arithmetic_on_what_was_just_loaded_is_a_fault(tmp_path, body):
    assert len(faults_of(tmp_path, body)) == 1


def test_a_masked_load_must_say_what_stands_in_for_the_rest(tmp_path):
    [fault] = faults_of(tmp_path, "x = tl.load(x_ptr + at, mask=at > 0).to(tl.float32)")
    assert "other=" in fault


def test_a_product_must_say_its_precision(tmp_path):
    [fault] = faults_of(tmp_path, "x = tl.dot(at, at)")
    assert "TF32" in fault


def test_a_fault_names_its_place(tmp_path):
    [fault] = faults_of(tmp_path, "x = tl.load(x_ptr) + 1")
    assert fault.startswith("kernel_triton.py:3, in kernel: ")


def test_only_kernels_are_looked_at(tmp_path):
    assert faults_of(tmp_path, "x = json.load(x_ptr); return x + 1", decorator="@cache") == ()
