"""What the launchers of chapter 3.1 refuse, and the layouts and corner cases that the check of a pair does not try."""

import numpy as np
import pytest

pytest.importorskip("llminfer.core.triton_environment", exc_type=ImportError)  # torch or triton may be missing

import torch

from llminfer.basics import ops, ops_triton
from llminfer.basics.config import RopeSpec
from llminfer.basics.embeddings_triton import _embed_kernel
from llminfer.basics.probabilities_triton import MAX_BLOCK
from llminfer.basics.rotary import rope_frequencies
from llminfer.basics.row_views_triton import MAX_ROW
from llminfer.core.triton_environment import DEVICE

RNG = np.random.default_rng(29)
NAN = float("nan")
POSITIONS = torch.zeros(2, dtype=torch.int64, device=DEVICE)


def normal(*shape: int) -> torch.Tensor:
    return torch.tensor(RNG.standard_normal(shape), dtype=torch.float32, device=DEVICE)


def assert_same(got: torch.Tensor, expected: np.ndarray) -> None:
    np.testing.assert_allclose(got.cpu().numpy(), expected, rtol=2e-5, atol=2e-6)


def of_host(*tensors: torch.Tensor) -> list[np.ndarray]:
    return [tensor.cpu().numpy() for tensor in tensors]


@pytest.mark.parametrize("name", ["rmsnorm", "layernorm"])
def test_the_widest_row_a_norm_takes(name):
    arguments = [normal(2, MAX_ROW), normal(MAX_ROW), normal(MAX_ROW)][: 2 if name == "rmsnorm" else 3]
    assert_same(getattr(ops_triton, name)(*arguments), getattr(ops, name)(*of_host(*arguments)))


def test_a_row_too_wide_for_registers_is_refused():
    with pytest.raises(ValueError, match=f"at most {MAX_ROW} elements, got {MAX_ROW + 1}"):
        ops_triton.rmsnorm(normal(1, MAX_ROW + 1), normal(MAX_ROW + 1))


def test_norms_take_heads_cut_out_of_a_fused_projection():
    qkv = normal(3, 10, 16)
    q, gain = qkv[:, 2:6], normal(16)  # [T, H, E], neither axis contiguous with the next
    assert_same(ops_triton.rmsnorm(q, gain), ops.rmsnorm(*of_host(q, gain)))


def test_the_residual_may_lie_farther_apart_than_what_is_added():
    x, residual, gain = normal(3, 16), normal(3, 40)[:, :16], normal(16)
    for got, expected in zip(
        ops_triton.rmsnorm_residual(x, residual, gain), ops.rmsnorm_residual(*of_host(x, residual, gain)), strict=True
    ):
        assert_same(got, expected)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rope_takes_heads_cut_out_of_a_fused_projection(interleaved):
    q = normal(10, 3, 16).transpose(0, 1)[:, 2:6]  # [T, H, E], heads farther apart than tokens
    positions = torch.tensor([999_983, 0, 131_072], dtype=torch.int32, device=DEVICE)
    frequencies = torch.tensor(rope_frequencies(RopeSpec(theta=500_000.0), 16), device=DEVICE)
    got = ops_triton.rope(q, positions, frequencies, interleaved)
    assert_same(got, ops.rope(*of_host(q, positions, frequencies), interleaved))


def test_more_heads_than_one_program_holds():
    q, positions = normal(1, 130, 128), torch.tensor([5], device=DEVICE)
    frequencies = torch.tensor(rope_frequencies(RopeSpec(), 128), device=DEVICE)
    assert_same(ops_triton.rope(q, positions, frequencies), ops.rope(*of_host(q, positions, frequencies)))


def test_softmax_survives_blocks_without_a_finite_score():
    x = normal(2, 3 * MAX_BLOCK)
    x[0, : 2 * MAX_BLOCK] = -torch.inf
    x[1, MAX_BLOCK:] = -torch.inf
    assert_same(ops_triton.softmax(x), ops.softmax(*of_host(x)))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # inf - inf, in the interpreter
def test_a_row_that_has_no_softmax_comes_out_as_nan_and_harms_no_other():
    x = torch.zeros((4, 8), device=DEVICE)
    x[0], x[1, 3], x[2, 3] = -torch.inf, torch.inf, NAN
    probabilities = ops_triton.softmax(x).cpu()
    assert probabilities[:3].isnan().any(dim=1).all()
    assert torch.equal(probabilities[3], torch.full((8,), 0.125))


def test_an_id_in_host_memory_outside_the_vocabulary_is_refused():
    with pytest.raises(ValueError, match=r"0\.\.4, got ids from -1 to 2"):
        ops_triton.embed(torch.ones(5, 3), torch.tensor([2, -1]))


def test_the_gather_kernel_reads_nothing_for_an_id_outside_the_vocabulary():
    table, out = normal(5, 3), torch.zeros((4, 3), device=DEVICE)
    ids = torch.tensor([4, 5, -1, 2**40], device=DEVICE)
    _embed_kernel[(4, 1)](table, ids, out, table.stride(0), 5, 3, BLOCK=4)
    assert torch.equal(out[0], table[4])
    assert out[1:].isnan().all()


@pytest.mark.parametrize("tokens", [1, 5])
@pytest.mark.parametrize("inputs, outputs", [(300, 70), (1, 17)])
def test_matvec_reads_a_weight_in_whichever_order_it_is_stored(tokens, inputs, outputs):
    x, stored = normal(tokens, inputs).round(), normal(outputs, inputs).round()  # sums of integers are exact
    expected = x @ stored.T
    assert torch.equal(ops_triton.matvec(x, stored.T), expected)  # [M, N] as in a checkpoint, seen as [N, M]
    assert torch.equal(ops_triton.matvec(x, stored.T.contiguous()), expected)
    assert torch.equal(ops_triton.matvec(x, stored.repeat_interleave(2, dim=0)[::2].T), expected)


def test_no_tokens_give_no_rows():
    empty, gain = normal(0, 8), normal(8)
    assert ops_triton.rmsnorm(empty, gain).shape == (0, 8)
    assert ops_triton.swiglu(empty).shape == (0, 4)
    assert ops_triton.rope(normal(0, 2, 8), POSITIONS[:0], normal(4)).shape == (0, 2, 8)
    assert ops_triton.rope(normal(2, 0, 8), POSITIONS, normal(4)).shape == (2, 0, 8)
    assert ops_triton.embed(normal(5, 8), torch.zeros(0, dtype=torch.int64, device=DEVICE)).shape == (0, 8)


REFUSED = {
    "float64": (TypeError, "float64", lambda: ops_triton.softmax(normal(2, 8).double())),
    "integers": (TypeError, "int64", lambda: ops_triton.gelu(POSITIONS)),
    "a number": (ValueError, "last axis", lambda: ops_triton.gelu(normal())),
    "columns apart": (ValueError, r"x\.contiguous\(\)", lambda: ops_triton.rmsnorm(normal(8, 4).T, normal(8))),
    "a gain too short": (ValueError, r"gain.*\(8,\), got \(4,\)", lambda: ops_triton.rmsnorm(normal(2, 8), normal(4))),
    "a gain with gaps": (
        ValueError,
        "gain must be contiguous",
        lambda: ops_triton.rmsnorm(normal(2, 8), normal(16)[::2]),
    ),
    "eps of zero": (ValueError, "eps", lambda: ops_triton.rmsnorm(normal(2, 8), normal(8), 0.0)),
    "another residual": (
        ValueError,
        "residual must be as x",
        lambda: ops_triton.rmsnorm_residual(normal(2, 8), normal(1, 8), normal(8)),
    ),
    "a bias too long": (
        ValueError,
        "bias",
        lambda: ops_triton.layernorm(normal(2, 8), normal(8), normal(9)),
    ),
    "half a gate": (ValueError, "even last axis", lambda: ops_triton.swiglu(normal(2, 7))),
    "no heads": (ValueError, r"\[T, H, E\]", lambda: ops_triton.rope(normal(2, 8), POSITIONS, normal(4))),
    "narrow heads": (ValueError, "1 to 4 frequencies", lambda: ops_triton.rope(normal(2, 1, 8), POSITIONS, normal(5))),
    "positions too few": (ValueError, "positions", lambda: ops_triton.rope(normal(3, 1, 8), POSITIONS, normal(4))),
    "positions between": (TypeError, "integers", lambda: ops_triton.rope(normal(2, 1, 8), normal(2), normal(4))),
    "a flat table": (ValueError, r"\[V, D\]", lambda: ops_triton.embed(normal(8), POSITIONS)),
    "ids between": (TypeError, "integers", lambda: ops_triton.embed(normal(4, 8), normal(2))),
    "another N": (ValueError, "share N", lambda: ops_triton.matvec(normal(1, 8), normal(7, 4))),
    "another dtype": (TypeError, "float16", lambda: ops_triton.matvec(normal(1, 8), normal(8, 4).half())),
    "many rows": (ValueError, "1 to 16 rows", lambda: ops_triton.matvec(normal(17, 8), normal(8, 4))),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_is_refused_with_what_was_given(mistake):
    error, message, call = REFUSED[mistake]
    with pytest.raises(error, match=message):
        call()
