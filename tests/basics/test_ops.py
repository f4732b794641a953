"""The model's first door has one shape, whichever way it is opened."""

import inspect

import pytest

from llminfer.basics import ops

IDEAS = {
    "embed", "geglu", "gelu", "layernorm", "matvec", "rmsnorm", "rmsnorm_residual", "rope", "rotation", "softmax",
    "swiglu", "swiglu_clamped",
}  # fmt: skip
ARRAY_FUNCTIONS = {"asarray", "concatenate", "tanh"}  # NumPy's and torch's own


@pytest.fixture(scope="module")
def ops_triton():
    pytest.importorskip("torch")
    return pytest.importorskip("llminfer.basics.ops_triton", exc_type=ImportError)


def test_both_doors_offer_the_same_names(ops_triton):
    assert set(ops.__all__) == set(ops_triton.__all__) == IDEAS | ARRAY_FUNCTIONS
    assert all(callable(getattr(door, name)) for door in (ops, ops_triton) for name in door.__all__)


@pytest.mark.parametrize("name", sorted(IDEAS))
def test_both_forms_take_the_same_arguments_with_the_same_defaults(ops_triton, name):
    def arguments(function) -> list[tuple]:
        return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]

    assert arguments(getattr(ops, name)) == arguments(getattr(ops_triton, name))
