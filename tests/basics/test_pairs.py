"""Every kernel of chapter 3.1 agrees with its reference, at every dtype, shape, scale and stride the check knows."""

import numpy as np
import pytest

pytest.importorskip("llminfer.core.triton_environment", exc_type=ImportError)  # torch or triton may be missing

from llminfer.core.pairs import check, find_pairs

# Large gates overflow exp on purpose, because the limit is the right answer; the interpreter, being NumPy, warns.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in exp:RuntimeWarning")
PAIRS = {pair.name: pair for pair in find_pairs("3.1")}
IDEAS = (
    "rmsnorm", "rmsnorm_residual", "layernorm", "rope", "swiglu", "geglu", "gelu", "softmax", "embed", "matvec",
    "swiglu_clamped", "sample_tokens", "log_softmax_gather", "apply_token_mask",
)  # fmt: skip


def test_every_idea_of_the_chapter_is_a_pair():
    assert set(PAIRS) >= {f"basics.{idea}" for idea in IDEAS}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_the_kernel_agrees_with_its_reference(name):
    result = check(PAIRS[name])
    assert result.passed, str(result)


@pytest.mark.parametrize("name", PAIRS)
def test_the_kernel_takes_strided_rows(name):
    result = check(PAIRS[name], dtypes=("float32",), sizes=("tiny",))
    assert result.passed, str(result)
    assert {trial.layout for trial in result.trials} == {"contiguous", "strided"}


@pytest.mark.parametrize("name", PAIRS)
def test_cases_are_in_the_dtype_asked_for_and_have_a_cost(name):
    pair = PAIRS[name]
    for case in pair.cases(np.random.default_rng(0), "odd", "bfloat16"):
        assert any(getattr(value, "dtype", None) == "bfloat16" for value in case.values())
        assert pair.cost(**case).bytes > 0
