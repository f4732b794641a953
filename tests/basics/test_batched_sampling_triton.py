"""The kernel's parts, each by itself: a token drawn tells little of a threshold that is off by one logit."""

import numpy as np
import pytest
import torch

pytest.importorskip("llminfer.core.triton_environment", exc_type=ImportError)  # torch or triton may be missing

from llminfer.basics import batched_sampling_triton as kernels
from llminfer.basics import thresholds_triton as thresholds
from llminfer.basics.penalties import apply_frequency_penalty, apply_presence_penalty, apply_repetition_penalty
from llminfer.basics.sampling import gumbel
from llminfer.basics.truncations import apply_top_k, apply_top_p
from llminfer.core.triton_environment import DEVICE, tl, triton

BLOCK = 16
ROWS = {
    "normal": np.random.default_rng(0).standard_normal(20),
    "ties": np.round(np.random.default_rng(1).standard_normal(20)),
    "all equal": np.zeros(17),
    "masked": np.where(np.arange(30) % 4 == 2, np.linspace(-3, 3, 30), -np.inf),
    "zeros of both signs": np.array([0.0, -0.0, 0.0, -0.0, 1.0, -1.0]),
    "far apart": np.array([-3e38, 3.0, 2.0, -1e30, 1e-38, 0.0, 3.0]),
    "neighbours among float32": 1 + np.array([3, 0, 1, 4, 2, 4, 7, 5]) * 2.0**-23,
    "one": np.array([2.0]),
}


@triton.jit
def _threshold_kernel(row_ptr, out_ptr, vocabulary, peak, target, WEIGH: tl.constexpr, BLOCK: tl.constexpr):
    lowest = tl.full([], -float("inf"), tl.float32)
    peak = tl.to_tensor(peak).to(tl.float32)
    found = thresholds.find_threshold(
        row_ptr, row_ptr, vocabulary, 1.0, 0.0, 0.0, lowest, peak, 1.0, target, WEIGH, False, BLOCK
    )
    tl.store(out_ptr, found)


@triton.jit
def _penalised_kernel(row_ptr, occurred_ptr, out_ptr, vocabulary, BLOCK: tl.constexpr):
    token = tl.arange(0, BLOCK)
    x = thresholds.penalised_logits(row_ptr, occurred_ptr, token, vocabulary, 1.25, 0.5, 0.1875, True)
    tl.store(out_ptr + token, x)


@triton.jit
def _gumbel_kernel(uniform_ptr, out_ptr, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    tl.store(out_ptr + place, kernels._gumbel(tl.load(uniform_ptr + place).to(tl.float32)))


def threshold(row: np.ndarray, target: float, weigh: bool) -> float:
    out = torch.empty(1, device=DEVICE)
    on_device = torch.tensor(row, dtype=torch.float32, device=DEVICE)
    _threshold_kernel[(1,)](on_device, out, len(row), float(row.max()), target, WEIGH=weigh, BLOCK=BLOCK)
    return out.item()


@pytest.mark.parametrize("name", ROWS)
def test_the_threshold_of_top_k_keeps_what_the_reference_keeps(name):
    row = ROWS[name].astype(np.float32)
    for k in {1, 3, len(row) // 2 + 1} & set(range(1, len(row) + 1)):
        kept = apply_top_k(row, k) > -np.inf
        np.testing.assert_array_equal((row >= threshold(row, k, weigh=False)) & (row > -np.inf), kept)


@pytest.mark.parametrize("name", ROWS)
def test_the_threshold_of_top_p_keeps_what_the_reference_keeps(name):
    row = ROWS[name].astype(np.float32)
    total = np.exp(row - row.max()).sum()
    for p in (0.01, 0.68, 0.97):
        kept = apply_top_p(row.astype(np.float64), p) > -np.inf
        np.testing.assert_array_equal((row >= threshold(row, float(p * total), weigh=True)) & (row > -np.inf), kept)


def test_penalties_are_those_of_the_reference_and_nothing_lies_past_the_vocabulary():
    row = np.array([2.0, -2.0, 0.0, 5.0, -np.inf, 5.0, -5.0, 1.0, -1.0, 4.0], np.float32)
    occurred = np.array([0, 1, 1, 1, 1, 2, 2, 3, 6, 9], np.int32)
    expected = apply_repetition_penalty(row, occurred, 1.25)
    expected = apply_presence_penalty(apply_frequency_penalty(expected, occurred, 0.5), occurred, 0.1875)
    out = torch.empty(16, device=DEVICE)
    on_device = [torch.tensor(array, device=DEVICE) for array in (row, occurred)]
    _penalised_kernel[(1,)](*on_device, out, len(row), BLOCK=16)
    np.testing.assert_array_equal(out.cpu().numpy(), [*expected, *[-np.inf] * 6])


def test_noise_is_that_of_the_reference_to_six_digits_where_tokens_win():
    uniform = np.concatenate([2.0 ** -np.arange(1, 33), np.linspace(0, 1, 33)[:-1]]).astype(np.float32)
    out = torch.empty(64, device=DEVICE)
    _gumbel_kernel[(1,)](torch.tensor(uniform, device=DEVICE), out, BLOCK=64)
    np.testing.assert_allclose(out.cpu().numpy(), gumbel(uniform), rtol=1e-6, atol=1e-6)  # -1.2 to 22


def arguments(rows: int) -> dict:
    settings = {"temperature": 1.0, "top_k": 3, "top_p": 0.9, "min_p": 0.1}
    vectors = {name: torch.full((rows,), value, device=DEVICE) for name, value in settings.items()}
    return vectors | {"noise_key": torch.zeros(rows, 3, dtype=torch.int64, device=DEVICE)}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the interpreter is NumPy and warns of inf - inf
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_row_without_a_finite_largest_gives_no_token(temperature):
    logits = torch.zeros(3, 8, device=DEVICE)
    logits[0] = -torch.inf
    logits[1, 2] = torch.inf
    settings = arguments(3) | {"temperature": torch.full((3,), temperature, device=DEVICE)}
    tokens = kernels.sample_tokens(logits, **settings).tolist()
    assert tokens[:2] == [-1, -1]
    assert tokens[2] >= 0


def test_greedy_takes_the_first_of_equals_in_different_blocks():
    logits = torch.zeros(1, kernels.MAX_BLOCK + 8, device=DEVICE)
    logits[0, :5] = -1.0
    assert kernels.sample_tokens(logits, **arguments(1) | {"temperature": torch.zeros(1, device=DEVICE)}).item() == 5


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"temperature": torch.zeros(2)}, r"temperature must have shape \(3,\), got \(2,\)"),
        ({"noise_key": torch.zeros(3, 2)}, r"noise_key must have shape \(3, 3\), got \(3, 2\)"),
        ({"noise_key": torch.zeros(3, 3).T}, "the last axis of noise_key must be contiguous"),
        ({"occurred": torch.zeros(3, 8)}, "penalties is missing"),
        ({"occurred": torch.zeros(3, 7), "penalties": torch.ones(3, 3)}, r"occurred must have shape \(3, 8\)"),
    ],
)
def test_what_does_not_fit_the_logits_is_refused(changes, complaint):
    changes = {name: tensor.to(DEVICE) for name, tensor in changes.items()}
    with pytest.raises(ValueError, match=complaint):
        kernels.sample_tokens(torch.zeros(3, 8, device=DEVICE), **arguments(3) | changes)


def test_no_rows_give_no_tokens():
    assert kernels.sample_tokens(torch.zeros(0, 8, device=DEVICE), **arguments(0)).shape == (0,)
