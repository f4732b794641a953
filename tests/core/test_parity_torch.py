"""The check of a pair, proved on one small idea: the honest kernel passes, kernels broken on purpose fail.

The idea is x * gain summed along the row, returned beside the row sums: one output as wide as its input, one reduction.
"""

import dataclasses
import json

import ml_dtypes  # noqa: F401  (teaches NumPy the name "bfloat16")
import numpy as np
import pytest

pytest.importorskip("llminfer.core.triton_environment", exc_type=ImportError)  # torch or triton may be missing

import torch

from llminfer.core.cost import Cost
from llminfer.core.pairs import Pair, check
from llminfer.core.triton_environment import INTERPRETED, tl, triton

DTYPES = ("float32", "float16", "bfloat16")


def scale_and_sum(x, gain):
    scaled = x * gain  # [T, D]
    return scaled, scaled.sum(axis=-1)  # [T, D], [T]


def cases(rng, size, dtype):
    shapes = {"tiny": [(2, 16)], "odd": [(1, 199), (3, 256), (5, 37), (2, 1100)], "bench": [(64, 1024)]}[size]
    made = [
        {"x": rng.standard_normal(shape).astype(dtype), "gain": rng.uniform(0.5, 1.5, shape[1]).astype(dtype)}
        for shape in shapes
    ]
    return made if size == "odd" else made[0]


def cost(x, gain):
    return Cost(2 * x.size, x.nbytes + gain.nbytes, x.nbytes + x.itemsize * len(x))


@triton.jit
def _kernel(
    x_ptr,
    gain_ptr,
    out_ptr,
    sum_ptr,
    row_stride,
    width,
    inside_width,
    stored_width,
    BLOCK: tl.constexpr,
    HALF: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < inside_width
    x = tl.load(x_ptr + row * row_stride + column, mask=inside, other=0.0).to(tl.float32)
    gain = tl.load(gain_ptr + column, mask=inside, other=0.0).to(tl.float32)
    scaled = x * gain
    tl.store(out_ptr + row * width + column, scaled.to(out_ptr.dtype.element_ty), mask=column < stored_width)
    if HALF:
        total = tl.zeros((), tl.float16)
        for start in range(BLOCK // 8):
            part = tl.sum(tl.where(column // 8 == start, scaled, 0.0), axis=0)
            total = (total + part.to(tl.float16)).to(tl.float16)
        tl.store(sum_ptr + row, total.to(sum_ptr.dtype.element_ty))
    else:
        tl.store(sum_ptr + row, tl.sum(scaled, axis=0).to(sum_ptr.dtype.element_ty))


def launch(x, gain, *, row_stride=None, extra_in=0, extra_out=0, rows=None, block=None, half=False):
    rows, (count, width) = rows or x.shape[0], x.shape
    out = torch.empty((count, width), dtype=x.dtype, device=x.device)
    total = torch.empty(count, dtype=x.dtype, device=x.device)
    block = block or triton.next_power_of_2(width)
    stride = x.stride(0) if row_stride is None else row_stride
    _kernel[(rows,)](x, gain, out, total, stride, width, width + extra_in, width + extra_out, BLOCK=block, HALF=half)
    return out, total


def honest(x, gain):
    return launch(x, gain)


PAIR = Pair("test.scale_and_sum", scale_and_sum, honest, scale_and_sum, cases, cost, DTYPES)


def checked(kernel, *dtypes, **changes):
    """The result of checking the pair with another kernel in place of the honest one."""
    return check(dataclasses.replace(PAIR, kernel=kernel, **changes), dtypes or ("float32",))


@pytest.fixture(scope="module")
def honest_result():
    return check(PAIR)


def test_the_honest_kernel_passes_at_every_dtype(honest_result):
    assert honest_result.passed, honest_result
    assert {trial.dtype for trial in honest_result.trials} == set(DTYPES)


def test_the_check_visits_sizes_scales_and_strides(honest_result):
    assert {trial.size for trial in honest_result.trials} == {"tiny", "odd"}
    assert {trial.scale for trial in honest_result.trials} == {1.0, 30.0, 1e-3}
    assert {trial.layout for trial in honest_result.trials} == {"contiguous", "strided"}


# Each breaks one thing. The message says what the check must have noticed.
def off_by_one_block(x, gain):
    """The grid is one program short."""
    return launch(x, gain, rows=max(1, x.shape[0] - 1))


def one_program_too_many(x, gain):
    return launch(x, gain, rows=x.shape[0] + 1)


def missing_load_mask(x, gain):
    return launch(x, gain, extra_in=1 << 20)


def missing_store_mask(x, gain):
    return launch(x, gain, extra_out=1 << 20)


def wrong_stride(x, gain):
    return launch(x, gain, row_stride=x.shape[1])


def unwritten_tail(x, gain):
    return launch(x, gain, extra_out=-1)


def dropped_last_column(x, gain):
    return launch(x, gain, extra_in=-1)


def half_accumulation(x, gain):
    return launch(x, gain, half=True)


def nan_in_one_place(x, gain):
    out, total = launch(x, gain)
    out[-1, -1] = float("nan")
    return out, total


def infinity_in_one_place(x, gain):
    out, total = launch(x, gain)
    total[-1] = float("inf")
    return out, total


def other_dtype(x, gain):
    out, total = launch(x, gain)
    return out, total.to(torch.float64)


def other_shape(x, gain):
    out, total = launch(x, gain)
    return out, total[:, None]


def one_output_short(x, gain):
    return launch(x, gain)[0]


def numpy_instead_of_a_tensor(x, gain):
    out, total = launch(x, gain)
    return out, total.float().numpy()


def changed_input(x, gain):
    outputs = launch(x, gain)
    x[0, 0] += 1
    return outputs


def written_before_the_input(x, gain):
    outputs = launch(x, gain)
    torch.as_strided(gain, (1,), (1,), gain.storage_offset() - 1)[0] = 0
    return outputs


def zeros(x, gain):
    return torch.zeros_like(x), torch.zeros(x.shape[0], dtype=x.dtype, device=x.device)


def tf32(x, gain):
    """Inputs cut to the ten mantissa bits that tensor cores keep of a float32."""
    cut = [
        (t.contiguous().view(torch.int32) & -8192).view(torch.float32) if t.dtype == torch.float32 else t
        for t in (x, gain)
    ]
    out, total = launch(*cut)
    return out, total


def right_only_near_one(x, gain):
    """A constant that vanishes beside inputs of size one."""
    out, total = launch(x, gain)
    return out, total + (1e-7 if x.dtype == torch.float32 else 1e-4)


def clamped(x, gain):
    """Saturates, which inputs of size one never show."""
    out, total = launch(x.clamp(-20, 20), gain)
    return out, total


def raises(x, gain):
    raise RuntimeError("no such instruction")


BROKEN = {
    off_by_one_block: "nan where",
    one_program_too_many: "wrote outside of",
    missing_load_mask: "outside of its argument x" if INTERPRETED else "nan where",
    missing_store_mask: "wrote outside of",  # where there is one row; further ones may overwrite each other
    wrong_stride: "outside of its argument x" if INTERPRETED else "nan where",
    unwritten_tail: "nan where",
    dropped_last_column: "largest error",
    half_accumulation: "relative RMS error",
    nan_in_one_place: "nan where",
    infinity_in_one_place: "inf where",
    other_dtype: "returned float64",
    other_shape: "shape",
    one_output_short: "1 outputs",
    numpy_instead_of_a_tensor: "returned a ndarray",
    changed_input: "changed its argument x",
    written_before_the_input: "wrote outside of its argument gain",
    zeros: "largest error",
    tf32: "largest error",
    right_only_near_one: "largest error",
    clamped: "largest error",
    raises: "raised RuntimeError: no such instruction",
}


@pytest.mark.parametrize("kernel", BROKEN, ids=lambda kernel: kernel.__name__)
def test_a_kernel_broken_on_purpose_is_caught(kernel):
    result = checked(kernel, "float16" if kernel is half_accumulation else "float32")
    assert not result.passed
    assert BROKEN[kernel] in str(result), result


@triton.jit
def _careless_kernel(x_ptr, gain_ptr, out_ptr, sum_ptr, row_stride, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * row_stride + column, mask=column < width, other=0.0).to(tl.float32)
    gain = tl.load(gain_ptr + column).to(tl.float32)  # past the end, but what is read there is never used
    scaled = tl.where(column < width, x * gain, 0.0)
    tl.store(out_ptr + row * width + column, scaled, mask=column < width)
    tl.store(sum_ptr + row, tl.sum(scaled, axis=0))


@pytest.mark.skipif(not INTERPRETED, reason="a GPU's addresses are not watched; compute-sanitizer does that")
def test_a_read_outside_that_changes_no_result_is_caught():
    def careless(x, gain):
        out, total = torch.empty_like(x).contiguous(), torch.empty(len(x), dtype=x.dtype)
        _careless_kernel[(len(x),)](x, gain, out, total, x.stride(0), x.shape[1], BLOCK=2048)
        return out, total

    assert "read outside of its argument gain" in str(checked(careless))


def test_a_cast_of_the_inputs_to_float16_is_caught_at_float32():
    def narrow(x, gain):
        return honest(x.half().float(), gain)

    assert not checked(narrow).passed


def test_strided_inputs_may_be_refused_but_then_the_scale_is_tried_all_the_same():
    def contiguous_only(x, gain):
        if not x.is_contiguous():
            raise ValueError("x must be contiguous")
        return launch(x, gain)

    result = checked(contiguous_only)
    assert result.passed, result
    assert {("strided refused", 30.0), ("strided refused", 1e-3)} < {(t.layout, t.scale) for t in result.trials}


def test_only_the_named_arguments_are_scaled():
    def needs_gain_of_its_size(x, gain):
        return launch(x, gain.clamp(0.4, 1.6))

    assert not checked(needs_gain_of_its_size).passed
    assert checked(needs_gain_of_its_size, scaled=("x",)).passed


def test_variants_are_checked_like_the_kernel():
    result = checked(honest, variants=(zeros,))
    assert {trial.implementation for trial in result.failures} == {"zeros"}


def test_a_variant_that_cannot_run_here_is_skipped_with_its_reason():
    def needs_nvcc(x, gain):
        raise NotImplementedError("no CUDA compiler")

    result = checked(honest, variants=(needs_nvcc,))
    assert result.passed
    assert result.skipped == ("needs_nvcc at float32 does not run here: no CUDA compiler",)


def test_a_pair_of_which_nothing_ran_has_not_passed():
    def needs_a_gpu(x, gain):
        raise NotImplementedError("no GPU")

    assert not checked(needs_a_gpu).passed


def test_the_result_is_plain_data_with_no_infinity_in_it():
    text = json.dumps(checked(nan_in_one_place).as_dict(), allow_nan=False)
    assert json.loads(text)["passed"] is False


def test_an_unknown_dtype_or_size_is_refused():
    with pytest.raises(ValueError, match="float8_e5m2"):
        check(PAIR, ("float8_e5m2",))
    with pytest.raises(ValueError, match="huge"):
        check(PAIR, sizes=("huge",))


@dataclasses.dataclass(frozen=True)
class Scaled:
    scaled: object
    total: object


def test_a_small_dataclass_of_outputs_is_judged_field_by_field():
    def reference(x, gain):
        return Scaled(*scale_and_sum(x, gain))

    assert checked(lambda x, gain: Scaled(*launch(x, gain)), reference=reference, baseline=reference).passed
    assert not checked(lambda x, gain: Scaled(*zeros(x, gain)), reference=reference, baseline=reference).passed


# Arguments written in place: a row of keys goes into a cache whose unused slots hold NaN.
def append(cache, rows, slots):
    cache[slots] = rows


def append_cases(rng, size, dtype):
    cache = np.full((8, 4), np.nan, dtype)
    cache[:3] = rng.standard_normal((3, 4)).astype(dtype)
    return {"cache": cache, "rows": rng.standard_normal((2, 4)).astype(dtype), "slots": np.array([5, 3])}


def append_check(kernel):
    pair = Pair(
        "test.append", append, kernel, append, append_cases, lambda cache, rows, slots: Cost(0, 0, 0), ("float16",),
        mutates=("cache",), compare="exact",
    )  # fmt: skip
    return check(pair)


def test_an_argument_written_in_place_is_compared_and_may_keep_nan_in_unused_slots():
    result = append_check(append)
    assert result.passed, result


def test_a_row_in_the_wrong_slot_is_caught():
    assert "differ" in str(append_check(lambda cache, rows, slots: append(cache, rows, slots - 1)))


def test_a_write_to_an_unused_slot_is_caught():
    def also_clears(cache, rows, slots):
        append(cache, rows, slots)
        cache[7] = 0

    assert "differ" in str(append_check(also_clears))


def test_an_untouched_cache_is_caught():
    assert "differ" in str(append_check(lambda cache, rows, slots: None))


def test_one_bit_is_one_too_many_in_an_exact_comparison():
    def rounds(cache, rows, slots):
        append(cache, rows * 1.001, slots)

    assert not append_check(rounds).passed


# Integer codes: eight-bit quantization with a given step.
def quantize(x, step):
    return np.clip(np.rint(x / step), -127, 127).astype(np.int8)


def quantize_torch(x, step):
    return (x / step).round().clamp(-127, 127).to(torch.int8)


def quantize_cases(rng, size, dtype):
    return {"x": rng.standard_normal((64, 64)).astype(dtype), "step": 0.05}


def quantize_check(kernel):
    cost = lambda x, step: Cost(0, 0, 0)  # noqa: E731
    codes = Pair("test.quantize", quantize, kernel, quantize_torch, quantize_cases, cost, ("float32",), compare="codes")
    return check(codes)


def test_codes_may_differ_by_one_at_a_tie_but_not_as_a_rule():
    def one_tie(x, step):
        codes = quantize_torch(x, step)
        codes[0, 0] -= codes[0, 0].sign()
        return codes

    def truncates(x, step):
        return (x / step).trunc().clamp(-127, 127).to(torch.int8)

    assert quantize_check(quantize_torch).passed
    assert quantize_check(one_tie).passed
    assert "bias" in str(quantize_check(truncates))


def test_a_code_off_by_two_is_caught():
    def one_wrong(x, step):
        codes = quantize_torch(x, step)
        codes[3, 4] = codes[3, 4] - 2 if codes[3, 4] > 0 else codes[3, 4] + 2
        return codes

    assert "off by 2" in str(quantize_check(one_wrong))
