"""The judgement itself, on arrays alone: what passes, what does not, and where the limits come from."""

import ml_dtypes
import numpy as np
import pytest

from llminfer.core.parity import CheckResult, Trial, Verdict, judge
from llminfer.core.tolerances import DTYPES, epsilon, is_floating, smallest_subnormal, tolerance

ORACLE = np.linspace(-1.0, 1.0, 101)
WIDE = ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def rounded(values, dtype):
    return values.astype(dtype).astype(np.float64)


def failure(got, oracle=ORACLE, baseline=None, dtype="float32", **options):
    return judge(got, oracle if baseline is None else baseline, oracle, dtype, dtype, **options).failure


@pytest.mark.parametrize("dtype", WIDE)
def test_a_result_rounded_once_passes_beside_an_exact_baseline(dtype):
    assert failure(rounded(ORACLE, dtype), dtype=dtype) is None


def test_a_bfloat16_cut_off_where_it_hurts_most_passes_only_under_the_interpreter():
    oracle = np.array([1.0 + epsilon("bfloat16") * 0.999])  # the next number is 1 + eps, but cut off it is 1
    nearest, cut = np.array([1.0 + epsilon("bfloat16")]), np.array([1.0])
    assert failure(cut, oracle, nearest, "bfloat16") is not None
    assert failure(cut, oracle, nearest, "bfloat16", interpreted=True) is None


def test_float16_is_rounded_by_the_interpreter_too():
    assert tolerance("float16", "float16", interpreted=True) == tolerance("float16", "float16", interpreted=False)


def test_an_error_twice_that_of_the_baseline_passes_and_three_times_does_not():
    baseline, got = ORACLE.copy(), ORACLE.copy()
    baseline[50] += 1e-4
    got[50] += 2e-4
    assert "RMS" in failure(got, baseline=baseline)  # the baseline cannot talk the second rule out of it
    baseline[50], got[50] = ORACLE[50] + 1e-5, ORACLE[50] + 2e-5
    assert failure(got, baseline=baseline) is None
    got[50] = ORACLE[50] + 3e-5
    assert "largest error" in failure(got, baseline=baseline)


def test_a_bias_too_small_for_the_largest_error_is_seen_in_the_rms():
    noisy = ORACLE.copy()
    noisy[0] += 1e-3  # one bad element of the baseline allows 2e-3 everywhere
    assert "RMS" in failure(ORACLE + 1e-4, baseline=noisy)


def test_a_baseline_of_nan_excuses_nothing():
    got = ORACLE.copy()
    got[50] += 3e-5  # too little for the RMS
    for bad in (np.nan, np.inf):
        assert "largest error" in failure(got, baseline=np.full_like(ORACLE, bad))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_never_passes_for_a_number(bad):
    got = ORACLE.copy()
    got[3] = bad
    assert "(3,)" in failure(got)
    assert failure(got, baseline=got) is not None


def test_an_infinity_passes_only_for_the_same_infinity():
    oracle = np.array([1.0, -np.inf])
    assert failure(oracle.copy(), oracle) is None
    assert failure(-oracle, oracle) is not None
    assert failure(np.array([1.0, -1e30]), oracle) is not None


def test_nan_passes_only_where_it_may_stay_and_the_reference_has_it():
    oracle = np.array([1.0, np.nan])
    assert "reference itself" in failure(oracle.copy(), oracle)
    assert failure(oracle.copy(), oracle, nan_allowed=True) is None
    assert failure(np.array([1.0, 0.0]), oracle, nan_allowed=True) is not None
    assert failure(np.array([np.nan, np.nan]), oracle, nan_allowed=True) is not None


def test_zeros_pass_only_for_zeros():
    zeros = np.zeros(5)
    assert failure(zeros, zeros) is None
    assert failure(zeros + 1e-3, zeros) is not None
    assert failure(np.zeros_like(ORACLE)) is not None


def test_results_among_the_subnormals_may_be_off_by_their_step():
    oracle = np.random.default_rng(0).uniform(-3e-7, 3e-7, 100)  # float16 has steps of 6e-8 here
    assert failure(rounded(oracle, "float16"), oracle, dtype="float16") is None


def test_shapes_must_agree_and_empty_outputs_do():
    assert "shape" in failure(ORACLE[:, None])
    assert "baseline" in failure(ORACLE, baseline=ORACLE[:1])
    assert failure(np.zeros((0, 3)), np.zeros((0, 3))) is None


def test_integers_of_a_floating_pair_are_exact():
    codes = np.arange(5)
    assert judge(codes, codes, codes, "float32", "int64").failure is None
    assert "(4,)" in judge(codes - (codes == 4), codes, codes, "float32", "int64").failure


def test_a_wide_output_of_a_narrow_check_is_judged_by_the_narrow_type():
    got = rounded(ORACLE, "bfloat16")
    assert judge(got, got, ORACLE, "bfloat16", "float32").failure is None
    assert judge(got, got, ORACLE, "float32", "float32").failure is not None


@pytest.mark.parametrize("dtype", WIDE[1:])
def test_a_budget_is_what_one_rounding_can_cost_at_most(dtype):
    assert DTYPES[dtype].relative_rms == pytest.approx(epsilon(dtype) / 2, rel=0.03)


def test_the_looser_of_two_types_counts():
    assert tolerance("float16", "bfloat16", interpreted=False) == DTYPES["bfloat16"]
    assert tolerance("int8", "float32", interpreted=False) == DTYPES["float32"]


def test_types_of_ml_dtypes_count_as_floating():
    assert all(map(is_floating, WIDE))
    assert not any(map(is_floating, ("int8", "uint8", "int64", "bool")))
    assert epsilon("bfloat16") == float(ml_dtypes.finfo(ml_dtypes.bfloat16).eps)
    assert smallest_subnormal("float16") == 2**-24
    assert epsilon("int8") == smallest_subnormal("int8") == 0.0


def test_the_worst_trial_is_a_failed_one_before_any_other():
    def trial(verdict):
        return Trial("kernel", "float32", "odd", "x 1", 1.0, "contiguous", verdict)

    near, wrong = trial(Verdict(0.9, 1.0)), trial(Verdict(0.0, 0.0, failure="shape"))
    assert CheckResult("a.b", True, (trial(Verdict(0.1, 1.0)), near)).worst("float32") == near.verdict
    assert CheckResult("a.b", True, (near, wrong)).worst("float32") == wrong.verdict
