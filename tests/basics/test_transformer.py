"""What a model does with its doors: batches, ranges of layers, taps, other weights, other arrays, and refusals."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from llminfer.basics.config import MlaSpec, ModelConfig, MoeSpec, RopeSpec
from llminfer.basics.memory import NoCache
from llminfer.basics.parameters import weight_shapes
from llminfer.basics.transformer import Tapped, Transformer
from llminfer.basics.weights import DenseWeight

LLAMA = ModelConfig("llama", 2, 24, 6, 2, 4, 40, vocabulary=53, context=32)
CONFIGS = {
    "llama": LLAMA,
    "gpt2": replace(
        LLAMA,
        norm="layernorm",
        activation="gelu",
        positions="learned",
        tied=True,
        kv_heads=6,
        qkv_bias=True,
        output_bias=True,
        feed_forward_bias=True,
    ),
    "gemma": replace(
        LLAMA,
        head_width=8,
        activation="geglu",
        tied=True,
        qk_norm=True,
        post_norms=True,
        embedding_scale=24**0.5,
        attention_soft_cap=2.0,
        final_soft_cap=3.0,
        windows=(4, None),
        local_rope=RopeSpec(theta=100.0),
    ),
    "gpt_oss": replace(LLAMA, sinks=True, activation="swiglu_clamped", windows=(None, 4)),
    "mla": replace(LLAMA, mla=MlaSpec(kv_rank=10, rope_width=4, nope_width=6, value_width=5, q_rank=14)),
    "moe": replace(LLAMA, moe=MoeSpec(experts=5, top_k=2, expert_width=12, shared_width=8, first_layer=1)),
}


def random_weights(config: ModelConfig, dtype: str = "float64") -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {
        name: ((1.0 if len(shape) == 1 else 0.0) + 0.3 * rng.standard_normal(shape)).astype(dtype)
        for name, shape in weight_shapes(config).items()
    }


def random_tokens(length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, LLAMA.vocabulary, length)


def logits_of(model: Transformer, tokens: np.ndarray) -> np.ndarray:
    view = NoCache(model.config).step([0], [len(tokens)])
    return model.head(model.hidden(tokens, np.arange(len(tokens)), view))


@pytest.fixture(params=CONFIGS)
def model(request) -> Transformer:
    return Transformer(CONFIGS[request.param], random_weights(CONFIGS[request.param]))


@pytest.fixture
def llama() -> Transformer:
    return Transformer(LLAMA, random_weights(LLAMA))


def test_ragged_sequences_in_one_batch_are_each_as_if_alone(model):
    lengths = [5, 1, 9, 2]
    texts = [random_tokens(length, seed) for seed, length in enumerate(lengths)]
    view = NoCache(model.config).step([7, 1, 4, 2], lengths)
    positions = np.concatenate([np.arange(length) for length in lengths])
    together = model.head(model.hidden(np.concatenate(texts), positions, view))
    alone = np.concatenate([logits_of(model, text) for text in texts])
    np.testing.assert_allclose(together, alone, rtol=1e-10, atol=1e-12)


def test_a_token_does_not_depend_on_those_after_it(model):
    tokens = random_tokens(9)
    np.testing.assert_allclose(logits_of(model, tokens[:6]), logits_of(model, tokens)[:6], rtol=1e-10, atol=1e-12)


def test_branches_of_a_draft_tree_score_as_separate_texts(model):
    prompt, left, right = random_tokens(5, 1), random_tokens(2, 2), random_tokens(2, 3)
    tokens = np.concatenate([prompt, left, right])
    parents = np.array([-1, 0, 1, 2, 3, 4, 5, 4, 7])  # both branches hang on the prompt's last token
    positions = np.array([0, 1, 2, 3, 4, 5, 6, 5, 6])  # siblings share a position
    view = NoCache(model.config).step([0], [9], parents)
    tree = model.head(model.hidden(tokens, positions, view))
    for branch, rows in ((left, [*range(5), 5, 6]), (right, [*range(5), 7, 8])):
        alone = logits_of(model, np.concatenate([prompt, branch]))
        np.testing.assert_allclose(tree[rows], alone, rtol=1e-10, atol=1e-12)


def test_the_head_takes_only_the_rows_that_are_asked_for(llama):
    tokens = random_tokens(6)
    hidden = llama.hidden(tokens, np.arange(6), NoCache(LLAMA).step([0], [6]))
    np.testing.assert_allclose(llama.head(hidden[[5, 2]]), logits_of(llama, tokens)[[5, 2]], rtol=1e-12)


def test_ranges_of_layers_compose(model):
    tokens, positions = random_tokens(6), np.arange(6)
    view = NoCache(model.config).step([0], [6])
    first_stage = model.hidden(tokens, positions, view, layers=range(0, 1))
    second_stage = model.run_layers(first_stage, positions, view, layers=range(1, 2))
    np.testing.assert_array_equal(model.head(second_stage), logits_of(model, tokens))


def test_a_stage_does_not_change_the_hidden_states_it_is_given(model):
    x, view = np.random.default_rng(0).standard_normal((4, 24)), NoCache(model.config).step([0], [4])
    before = x.copy()
    model.run_layers(x, np.arange(4), view)
    np.testing.assert_array_equal(x, before)


def test_no_layers_at_all_leave_the_embedding(llama):
    tokens, view = random_tokens(3), NoCache(LLAMA).step([0], [3])
    hidden = llama.hidden(tokens, np.arange(3), view, layers=range(0))
    np.testing.assert_array_equal(hidden, llama.weights["embedding"].array[tokens])


def test_taps_are_the_hidden_states_after_their_layers(llama):
    tokens, positions = random_tokens(6), np.arange(6)
    view = NoCache(LLAMA).step([0], [6])
    tapped = llama.hidden(tokens, positions, view, taps=(0, 1))
    assert isinstance(tapped, Tapped) and list(tapped.after) == [0, 1]
    np.testing.assert_array_equal(tapped.after[0], llama.hidden(tokens, positions, view, layers=range(1)))
    np.testing.assert_array_equal(tapped.after[1], tapped.last)


def test_a_tied_head_is_the_embedding_itself():
    tied = Transformer(CONFIGS["gemma"], random_weights(CONFIGS["gemma"]))
    assert np.shares_memory(tied.unembedding.array, tied.weights["embedding"].array)


class InThirds:
    """A weight that knows its matrix only as thirds of its numbers: it stands for every weight that is not an array."""

    __array_ufunc__ = None

    def __init__(self, matrix: np.ndarray) -> None:
        self.thirds, self.shape, self.nbytes = matrix / 3, matrix.shape, matrix.nbytes

    @property
    def T(self) -> "InThirds":  # noqa: N802
        return InThirds(3 * self.thirds.T)

    def __rmatmul__(self, x: np.ndarray) -> np.ndarray:
        return 3 * (x @ self.thirds)

    def rows(self, ids: np.ndarray) -> np.ndarray:
        return 3 * self.thirds[ids]

    def shard(self, axis: int, rank: int, world: int) -> "InThirds":
        return InThirds(DenseWeight(3 * self.thirds).shard(axis, rank, world).array)


def test_any_weight_can_stand_in_for_a_matrix(model):
    weights = random_weights(model.config)
    stacked = {"k_up", "v_up", "experts.gate_up", "experts.down"}

    def replaced(name: str, weight: np.ndarray) -> Any:
        inner = name.split(".", 2)[-1]
        if weight.ndim == 3 and inner.startswith("experts"):
            return StackInThirds(weight)
        return InThirds(weight) if weight.ndim == 2 and inner not in stacked else weight

    other = Transformer(model.config, {name: replaced(name, weight) for name, weight in weights.items()})
    tokens = random_tokens(5)
    np.testing.assert_allclose(logits_of(other, tokens), logits_of(model, tokens), rtol=1e-9, atol=1e-12)


class StackInThirds:
    """One such weight for each expert."""

    def __init__(self, stack: np.ndarray) -> None:
        self.experts, self.shape = [InThirds(matrix) for matrix in stack], stack.shape

    def __getitem__(self, expert: int) -> InThirds:
        return self.experts[expert]


def test_other_experts_can_stand_in_for_the_loop():
    class NoExperts:
        def __init__(self, moe, weights, activation):
            self.asked = []

        def __call__(self, h, router_logits):
            self.asked.append(router_logits.shape)
            return 0 * h

    config = CONFIGS["moe"]
    model = Transformer(config, random_weights(config), experts=NoExperts)
    logits_of(model, random_tokens(4))
    assert list(model.experts) == [1]
    assert model.experts[1].asked == [(4, 5)]


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma", "gpt_oss", "mla"])
def test_the_same_model_runs_on_torch_tensors_and_triton_kernels(name):
    torch = pytest.importorskip("torch")
    ops_triton = pytest.importorskip("llminfer.basics.ops_triton", exc_type=ImportError)
    from llminfer.basics import memory_torch
    from llminfer.core.triton_environment import DEVICE

    config, tokens, lengths = CONFIGS[name], random_tokens(8), [5, 3]
    weights = random_weights(config, "float32")
    positions = np.array([0, 1, 2, 3, 4, 0, 1, 2])

    numpy_model = Transformer(config, weights)
    ours = numpy_model.head(numpy_model.hidden(tokens, positions, NoCache(config).step([0, 1], lengths)))

    on_device = {weight: torch.tensor(array, device=DEVICE) for weight, array in weights.items()}
    torch_model = Transformer(config, on_device, ops=ops_triton)
    view = memory_torch.NoCache(config).step([0, 1], lengths)
    tensors = (torch.tensor(array, device=DEVICE) for array in (tokens, positions))
    theirs = torch_model.head(torch_model.hidden(*tensors, view)).cpu().numpy()

    assert theirs.dtype == np.float32
    assert np.abs(theirs - ours).max() < 2e-5 * np.abs(ours).max()


def test_token_ids_out_of_range_are_refused_with_their_values(llama):
    for tokens, got in (([1, 53], r"1\.\.53"), ([-1, 4], r"-1\.\.4")):
        with pytest.raises(ValueError, match=r"token ids must lie in 0\.\.52, got " + got):
            llama.embed(np.array(tokens), np.arange(2))


def test_learned_positions_beyond_the_context_are_refused():
    model = Transformer(CONFIGS["gpt2"], random_weights(CONFIGS["gpt2"]))
    with pytest.raises(ValueError, match=r"positions must lie in 0\.\.31, got 30\.\.32"):
        model.embed(random_tokens(3), np.array([30, 31, 32]))


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("dtype", [float, bool])
def test_ids_and_positions_are_integers(llama, dtype):
    whole, other = np.arange(2), np.arange(2).astype(dtype)
    with pytest.raises(TypeError, match="token ids must be integers, got"):
        llama.embed(other, whole)
    with pytest.raises(TypeError, match="positions must be integers, got"):
        llama.embed(whole, other)


@pytest.mark.usefixtures("without_shape_checks")
def test_every_token_needs_a_position(llama):
    with pytest.raises(ValueError, match="got 3 tokens and 2 positions"):
        llama.hidden(random_tokens(3), np.arange(2), NoCache(LLAMA).step([0], [3]))


def test_hidden_states_of_another_width_are_refused(llama):
    with pytest.raises(ValueError, match=r"must be \[3, 24\].*got \(3, 23\)"):
        llama.run_layers(np.zeros((3, 23)), np.arange(3), NoCache(LLAMA).step([0], [3]))


def test_the_view_of_another_model_is_refused_and_the_difference_named(llama):
    other = replace(LLAMA, windows=(4, 4), name="mistral")
    with pytest.raises(ValueError, match="view is of 'mistral', the model is 'llama', they differ in name, windows"):
        llama.hidden(random_tokens(3), np.arange(3), NoCache(other).step([0], [3]))


def test_more_tokens_than_the_view_was_opened_for_are_refused(llama):
    with pytest.raises(ValueError, match=r"q has shape \(3, 6, 4\)"):
        llama.hidden(random_tokens(3), np.arange(3), NoCache(LLAMA).step([0], [2]))


@pytest.mark.parametrize(("layers", "taps"), [(range(3), ()), (range(-1, 1), ()), (range(1), (1,)), (None, (2,))])
def test_layers_and_taps_that_do_not_exist_are_refused(llama, layers, taps):
    with pytest.raises(ValueError, match=r"within 0\.\.1, got taps"):
        llama.hidden(random_tokens(3), np.arange(3), NoCache(LLAMA).step([0], [3]), taps, layers)


def test_an_activation_that_the_ops_lack_is_refused():
    config = replace(LLAMA, activation="relu")
    with pytest.raises(ValueError, match="lacks the activation 'relu' that 'llama' needs"):
        Transformer(config, random_weights(config))


def test_misshapen_weights_are_refused():
    with pytest.raises(ValueError, match="weight head of 'llama' has shape"):
        Transformer(LLAMA, random_weights(LLAMA) | {"head": np.zeros((53, 24))})
