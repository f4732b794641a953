"""What stands on the right of `@`, and what a model says about weights that are not its own."""

import numpy as np
import pytest

from llminfer.basics.config import ModelConfig
from llminfer.basics.parameters import weight_shapes
from llminfer.basics.weights import DenseWeight, Weight, as_weight, checked_weights

CONFIG = ModelConfig("small", 2, 12, 3, 1, 4, 20, vocabulary=31, context=16, qkv_bias=True)


@pytest.fixture
def matrix() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)


def weights_of(config: ModelConfig) -> dict[str, np.ndarray]:
    return {name: np.zeros(shape, np.float32) for name, shape in weight_shapes(config).items()}


def test_an_array_times_a_weight_is_the_plain_product(matrix):
    x = np.ones((3, 6), np.float32)
    np.testing.assert_array_equal(x @ DenseWeight(matrix), x @ matrix)


def test_a_torch_tensor_times_a_weight_comes_to_the_weight(matrix):
    torch = pytest.importorskip("torch")
    x = torch.ones(3, 6)
    np.testing.assert_allclose((x @ DenseWeight(torch.from_numpy(matrix))).numpy(), x.numpy() @ matrix, rtol=1e-6)


def test_a_weight_of_another_kind_is_asked_rather_than_converted():
    class Doubler:
        __array_ufunc__ = None

        def __rmatmul__(self, x):
            return 2 * x

    torch = pytest.importorskip("torch")
    assert (np.ones((1, 2)) @ Doubler()).tolist() == [[2, 2]]
    assert (torch.ones(1, 2) @ Doubler()).tolist() == [[2, 2]]


def test_a_dense_weight_keeps_the_contract(matrix):
    weight = DenseWeight(matrix)
    assert isinstance(weight, Weight)
    assert not isinstance(matrix, Weight)
    assert (weight.shape, weight.nbytes) == ((6, 8), 6 * 8 * 4)


def test_rows_come_in_the_order_asked_for(matrix):
    np.testing.assert_array_equal(DenseWeight(matrix).rows(np.array([4, 0, 4])), matrix[[4, 0, 4]])


def test_the_transpose_shares_memory(matrix):
    weight = DenseWeight(matrix)
    assert np.shares_memory(weight.T.array, matrix)
    np.testing.assert_array_equal(np.eye(8, dtype=np.float32) @ weight.T, matrix.T)


@pytest.mark.parametrize("axis", [0, 1])
def test_shards_put_together_are_the_whole(matrix, axis):
    parts = [DenseWeight(matrix).shard(axis, rank, 2).array for rank in range(2)]
    np.testing.assert_array_equal(np.concatenate(parts, axis), matrix)
    assert all(np.shares_memory(part, matrix) for part in parts)


def test_products_of_input_shards_add_up_to_the_whole_product(matrix):
    x = np.random.default_rng(1).standard_normal((5, 6)).astype(np.float32)
    partial = [x[:, 2 * rank : 2 * rank + 2] @ DenseWeight(matrix).shard(0, rank, 3) for rank in range(3)]
    np.testing.assert_allclose(sum(partial), x @ matrix, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((1, 0, 3), "3 ranks cannot share axis 1"), ((0, 2, 2), r"rank must lie in 0\.\.1, got 2"), ((2, 0, 2), "axis")],
)
def test_a_shard_that_cannot_be_is_refused(matrix, arguments, message):
    with pytest.raises(ValueError, match=message):
        DenseWeight(matrix).shard(*arguments)


def test_a_vector_is_no_weight():
    with pytest.raises(ValueError, match=r"two axes, \[in, out\], got shape \(3,\)"):
        DenseWeight(np.ones(3))


def test_a_weight_is_wrapped_once(matrix):
    weight = as_weight(matrix)
    assert as_weight(weight) is weight


def test_matrices_become_weights_and_vectors_stay_arrays():
    checked = checked_weights(CONFIG, weights_of(CONFIG))
    kinds = {name: isinstance(weight, Weight) for name, weight in checked.items()}
    assert kinds["embedding"] and kinds["head"] and kinds["layers.1.qkv"]
    assert not kinds["layers.1.qkv.bias"] and not kinds["final_norm"]


def test_missing_and_unknown_weights_are_named():
    weights = weights_of(CONFIG)
    weights["layers.2.qkv"] = weights.pop("layers.0.down")
    with pytest.raises(ValueError, match=r"lack 1 \(layers\.0\.down\) and have 1 \(layers\.2\.qkv\) too many"):
        checked_weights(CONFIG, weights)


def test_a_weight_too_many_is_not_passed_over():
    with pytest.raises(ValueError, match=r"lack none and have 1 \(layers\.0\.q_norm\) too many"):
        checked_weights(CONFIG, weights_of(CONFIG) | {"layers.0.q_norm": np.ones(4)})


def test_a_misshapen_weight_is_named_with_both_shapes():
    weights = weights_of(CONFIG)
    weights["layers.1.gate_up"] = weights["layers.1.gate_up"].T
    with pytest.raises(
        ValueError, match=r"layers\.1\.gate_up of 'small' has shape \(40, 12\), its config needs \(12, 40\)"
    ):
        checked_weights(CONFIG, weights)
