"""RoPE against complex numbers, transformers, and the property it was made for: scores depend on distance."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llminfer.basics.config import RopeSpec
from llminfer.basics.rotary import rope, rope_cost, rope_frequencies

RNG = np.random.default_rng(11)
LLAMA3 = RopeSpec(theta=500_000.0, scaling="llama3", factor=8.0, original_context=8192, low_factor=1.0, high_factor=4.0)
YARN = RopeSpec(theta=10_000.0, scaling="yarn", factor=40.0, original_context=4096)  # DeepSeek-V2 and V3


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def turned_as_complex(x: np.ndarray, positions: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """The interleaved form as the paper derives it: a pair is a complex number, turned by e^(i·position·frequency)."""
    numbers = x[..., 0::2] + 1j * x[..., 1::2]  # [T, H, pairs]
    numbers = numbers * np.exp(1j * positions[:, None] * frequencies)[:, None]
    return np.stack([numbers.real, numbers.imag], axis=-1).reshape(x.shape)


def test_the_interleaved_form_multiplies_complex_numbers():
    x, positions, frequencies = normal(5, 3, 16), RNG.integers(0, 1000, 5), rope_frequencies(RopeSpec(), 16)
    expected = turned_as_complex(x, positions, frequencies)
    np.testing.assert_allclose(rope(x, positions, frequencies, interleaved=True), expected, rtol=1e-12, atol=1e-12)


def test_the_half_form_is_that_of_transformers():
    torch = pytest.importorskip("torch")
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    x, positions, frequencies = normal(5, 3, 16), RNG.integers(0, 1000, 5), rope_frequencies(RopeSpec(), 16)
    angles = torch.tensor(np.concatenate([positions[:, None] * frequencies] * 2, axis=-1))  # [T, E]
    q = torch.tensor(x)
    expected, _ = llama.apply_rotary_pos_emb(q, q, angles.cos(), angles.sin())  # cos [T, 1, E] against [T, H, E]
    np.testing.assert_allclose(rope(x, positions, frequencies), expected.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("spec", "parameters"),
    [
        (
            RopeSpec(theta=1e6, scaling="linear", factor=8.0),
            {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},  # Gemma 3
        ),
        (
            LLAMA3,
            {
                "rope_type": "llama3",
                "rope_theta": 500_000.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192,
            },
        ),
        (
            YARN,
            {
                "rope_type": "yarn",
                "rope_theta": 10_000.0,
                "factor": 40.0,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "original_max_position_embeddings": 4096,
            },
        ),
        (
            RopeSpec(theta=1e6, scaling="yarn", factor=4.0, original_context=32768, beta_fast=24.0, beta_slow=2.0),
            {
                "rope_type": "yarn",
                "rope_theta": 1e6,
                "factor": 4.0,
                "beta_fast": 24.0,
                "beta_slow": 2.0,
                "original_max_position_embeddings": 32768,
            },
        ),
        (
            RopeSpec(theta=150_000.0, scaling="yarn", factor=32.0, original_context=4096, truncate=False),  # gpt-oss
            {
                "rope_type": "yarn",
                "rope_theta": 150_000.0,
                "factor": 32.0,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "truncate": False,
                "original_max_position_embeddings": 4096,
            },
        ),
    ],
    ids=["linear", "llama3", "yarn", "yarn with its own betas", "yarn without truncation"],
)
@pytest.mark.parametrize("width", [64, 128])
def test_stretched_frequencies_are_those_of_transformers(spec, parameters, width):
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    context = int(8 * max(spec.original_context, 1024))
    config = transformers.LlamaConfig(
        hidden_size=4 * width,
        num_attention_heads=4,
        head_dim=width,
        max_position_embeddings=context,
        rope_parameters=parameters,
    )
    expected, _ = ROPE_INIT_FUNCTIONS[parameters["rope_type"]](config)
    np.testing.assert_allclose(rope_frequencies(spec, width), expected.numpy(), rtol=3e-6)  # theirs are float32


def test_unscaled_frequencies_fall_from_one_by_a_constant_ratio():
    frequencies = rope_frequencies(RopeSpec(theta=10_000.0), 128)
    assert frequencies[0] == 1.0
    np.testing.assert_allclose(frequencies[1:] / frequencies[:-1], 10_000.0 ** (-2 / 128), rtol=1e-12)


@pytest.mark.parametrize("spec", [LLAMA3, YARN], ids=["llama3", "yarn"])
def test_stretching_keeps_the_fast_pairs_and_slows_the_slow_ones_by_the_whole_factor(spec):
    ratio = rope_frequencies(RopeSpec(theta=spec.theta), 128) / rope_frequencies(spec, 128)
    assert ratio[0] == 1.0
    assert ratio[-1] == pytest.approx(spec.factor)
    assert np.all(np.diff(ratio) >= -1e-12)


def test_yarn_tells_where_a_single_pair_lies_between_fast_and_slow():
    spec = RopeSpec(theta=10_000.0, scaling="yarn", factor=2.0, original_context=8)  # both bounds round to one pair
    assert np.isfinite(rope_frequencies(spec, 8)).all()


@settings(deadline=None)
@given(
    position=st.integers(0, 1_000_000),
    interleaved=st.booleans(),
    x=st.lists(st.floats(-100, 100), min_size=8, max_size=8),
)
def test_turning_keeps_the_length_of_a_head(position, interleaved, x):
    x = np.array(x).reshape(1, 1, 8)
    turned = rope(x, np.array([position]), rope_frequencies(RopeSpec(), 8), interleaved)
    np.testing.assert_allclose(np.linalg.norm(turned), np.linalg.norm(x), rtol=1e-12)


@settings(deadline=None)
@given(m=st.integers(0, 500_000), n=st.integers(0, 500_000), shift=st.integers(0, 500_000), interleaved=st.booleans())
def test_a_score_depends_on_the_distance_of_query_and_key_alone(m, n, shift, interleaved):
    q, k, frequencies = normal(1, 1, 64), normal(1, 1, 64), rope_frequencies(RopeSpec(theta=500_000.0), 64)

    def score(query_position: int, key_position: int) -> float:
        turned_q = rope(q, np.array([query_position]), frequencies, interleaved)
        turned_k = rope(k, np.array([key_position]), frequencies, interleaved)
        return float(np.vecdot(turned_q, turned_k)[0, 0])

    assert score(m + shift, n + shift) == pytest.approx(score(m, n), abs=1e-7)


def test_the_two_layouts_are_one_rotation_in_another_order():
    x, positions, frequencies = normal(4, 2, 16), np.arange(4) * 17, rope_frequencies(RopeSpec(), 16)
    halves_to_interleaved = np.arange(16).reshape(2, 8).T.ravel()  # 0, 8, 1, 9, ...
    half = rope(x, positions, frequencies)[..., halves_to_interleaved]
    np.testing.assert_array_equal(half, rope(x[..., halves_to_interleaved], positions, frequencies, interleaved=True))


def test_position_zero_turns_nothing():
    x = normal(1, 2, 16)
    np.testing.assert_array_equal(rope(x, np.array([0]), rope_frequencies(RopeSpec(), 16)), x)


@pytest.mark.parametrize("interleaved", [False, True])
def test_elements_past_the_pairs_pass_unchanged(interleaved):
    x, positions, frequencies = normal(3, 2, 20), np.array([3, 1, 4]), rope_frequencies(RopeSpec(), 8)
    turned = rope(x, positions, frequencies, interleaved, attention_factor=2.0)
    np.testing.assert_array_equal(turned[..., 8:], x[..., 8:])
    np.testing.assert_array_equal(turned[..., :8], rope(x[..., :8], positions, frequencies, interleaved, 2.0))


def test_the_attention_factor_scales_what_is_turned():
    x, positions, frequencies = normal(3, 2, 8), np.array([3, 1, 4]), rope_frequencies(YARN, 8)
    factor = 0.1 * math.log(40) + 1  # Peng et al. 2023, section 3.4
    scaled = rope(x, positions, frequencies, attention_factor=factor)
    np.testing.assert_allclose(scaled, factor * rope(x, positions, frequencies), rtol=1e-12)


@pytest.mark.parametrize("index_dtype", [np.int16, np.int32, np.int64])
def test_a_float32_head_at_a_far_position_is_turned_to_float32_precision(index_dtype):
    position = np.iinfo(np.int16).max if index_dtype == np.int16 else 999_983
    frequencies = rope_frequencies(RopeSpec(theta=500_000.0), 64)
    x = np.concatenate([np.ones((1, 1, 32)), np.zeros((1, 1, 32))], axis=-1).astype(np.float32)
    turned = rope(x, np.array([position], index_dtype), frequencies)[0, 0]
    exact = np.array([math.cos(position * f) for f in frequencies] + [math.sin(position * f) for f in frequencies])
    np.testing.assert_allclose(turned, exact, atol=1e-7)


def test_a_float32_angle_at_a_far_position_would_be_off_by_hundredths():
    frequencies = rope_frequencies(RopeSpec(theta=500_000.0), 64)
    narrow = np.float32(999_983) * frequencies.astype(np.float32)
    assert 0.01 < np.abs(narrow - 999_983 * frequencies).max() < 0.1


@pytest.mark.parametrize("pairs", [0, 9])
def test_a_head_takes_at_least_one_frequency_and_at_most_half_its_width(pairs):
    with pytest.raises(ValueError, match=f"a head of 16 takes 1 to 8 frequencies, got {pairs}"):
        rope(normal(1, 1, 16), np.array([0]), np.ones(pairs))


@pytest.mark.parametrize(
    ("spec", "width", "message"),
    [
        (RopeSpec(), 7, "even"),
        (RopeSpec(theta=1.0), 8, "theta"),
        (RopeSpec(scaling="yarn", factor=4.0), 8, "original_context"),
        (RopeSpec(scaling="llama3", factor=4.0), 8, "original_context"),
        (RopeSpec(scaling="llama3", original_context=8192, low_factor=4.0, high_factor=4.0), 8, "high_factor"),
        (RopeSpec(scaling="yarn", original_context=4096, beta_fast=1.0, beta_slow=32.0), 8, "beta_fast"),
    ],
)
def test_a_spec_that_lacks_something_is_refused(spec, width, message):
    with pytest.raises(ValueError, match=message):
        rope_frequencies(spec, width)


def test_turning_costs_six_flops_a_pair_and_reads_and_writes_the_heads_once():
    x, positions, frequencies = normal(10, 40, 128), np.arange(10), rope_frequencies(RopeSpec(), 128)
    cost = rope_cost(x, positions, frequencies)
    assert cost.flops == 10 * 64 * (40 * 6 + 5)
    assert cost.write_bytes == x.nbytes
