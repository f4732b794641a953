"""The calculator against arrays that were really taken, against sums done by hand, and against its own limits."""

import tracemalloc
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from llminfer.basics import MlaSpec, ModelConfig, load_model, preset
from llminfer.core.hardware import device
from llminfer.kv_cache import (
    GroupedFormat,
    KVCache,
    PlainFormat,
    ScaledFormat,
    SlidingWindowCache,
    activation_bytes,
    attention_kind,
    bytes_per_token,
    cache_bytes,
    kv_format,
    max_batch,
    memory_need,
)

DTYPES = ("float64", "float32", "float16", "bfloat16")
SMALL = ModelConfig("small", 6, 32, 8, 2, 12, 64, 100, 256)
SHAPES = {
    "MHA": replace(SMALL, kv_heads=8),
    "GQA": SMALL,
    "MQA": replace(SMALL, kv_heads=1),
    "odd": replace(SMALL, head_width=14),  # whose codes of 2 bits do not fill their last byte
    "MLA": replace(SMALL, kv_heads=8, mla=MlaSpec(kv_rank=10, rope_width=6, nope_width=8, value_width=8)),
    "window": replace(SMALL, windows=(9,) * 6),
    "hybrid": replace(SMALL, windows=(5, 5, None, 9, 200, None)),
}
LLAMA, H100 = preset("llama-3-8b"), device("h100-sxm")


def allocated(cache):
    return sum(
        array.nbytes for store in cache.layers for array in vars(store).values() if isinstance(array, np.ndarray)
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize(("batch", "length"), [(1, 1), (3, 7), (2, 64)])
def test_the_calculator_is_what_the_caches_allocate(kind, dtype, batch, length):
    config = SHAPES[kind]
    whole = KVCache(config, batch, length, dtype)
    assert cache_bytes(config, batch, length, dtype, windows=False) == allocated(whole) == whole.nbytes
    if kind in ("window", "hybrid"):
        for rollback in (0, 4):
            ring = SlidingWindowCache(config, batch, length, rollback, dtype)
            assert cache_bytes(config, batch, length, dtype, max_rollback=rollback) == allocated(ring) == ring.nbytes


def arrays_of(form, spec, sequences, slots, rollback):
    """A layer's arrays as the formats describe them, made by hand."""
    K, keys, values = spec.kv_heads, spec.key_width, 0 if spec.shared_kv else spec.value_width
    if isinstance(form, ScaledFormat):
        codes = [np.zeros((sequences, K, slots, width), ml_dtypes.float8_e4m3fn) for width in (keys, values)]
        return [*codes, *(np.zeros(K, np.float32) for width in (keys, values) if width)]
    tail = min(slots, form.tail + rollback)
    groups = 0
    while slots - groups * form.group > form.tail:
        groups += 1
    codes = [np.zeros((sequences, K, groups, form.group, -(-w * form.bits // 8)), np.uint8) for w in (keys, values)]
    ends = [np.zeros((sequences, K, tail, width), np.float16) for width in (keys, values)]
    key_scales = np.zeros((2, sequences, K, groups, keys), np.float16)  # scale and zero point
    value_scales = np.zeros((2, sequences, K, groups, form.group, -(-values // form.group)), np.float16)
    return [*codes, *ends, key_scales, value_scales]


@pytest.mark.parametrize(
    "form", [ScaledFormat(), *(GroupedFormat(bits, 5, 15) for bits in (8, 4, 2)), GroupedFormat(4, 8, 9)]
)
@pytest.mark.parametrize("kind", ["GQA", "MLA", "odd"])
@pytest.mark.parametrize("slots", [1, 9, 15, 16, 20, 21, 64])
def test_quantized_formats_count_every_array(form, kind, slots):
    config = SHAPES[kind]
    arrays = arrays_of(form, config.attention(0), 3, slots, 2)
    assert form.layer_bytes(config.attention(0), 3, slots, 2) == sum(array.nbytes for array in arrays)
    assert cache_bytes(config, 3, slots, form, max_rollback=2) == 6 * sum(array.nbytes for array in arrays)


@pytest.mark.parametrize(("bits", "effective"), [(2, 3), (4, 5), (8, 9)])
def test_groups_of_32_with_two_float16_numbers_cost_one_bit_more_an_element(bits, effective):
    assert bytes_per_token(LLAMA, f"int{bits}") == bytes_per_token(LLAMA, 1) * effective / 8
    # so the bytes that a token adds to a long sequence, 32 at a time
    grown = cache_bytes(LLAMA, 1, 8192 + 32, f"int{bits}") - cache_bytes(LLAMA, 1, 8192, f"int{bits}")
    assert grown == 32 * bytes_per_token(LLAMA, f"int{bits}")


def test_a_short_sequence_gains_nothing_from_groups():
    assert cache_bytes(LLAMA, 1, 128, "int2") == cache_bytes(LLAMA, 1, 128, "float16")


def test_scales_of_heads_do_not_grow_with_tokens_or_sequences():
    scales = 32 * 2 * 8 * 4  # layers, keys and values, heads, float32
    for batch, length in ((1, 1), (7, 900)):
        assert cache_bytes(LLAMA, batch, length, "fp8") - cache_bytes(LLAMA, batch, length, 1) == scales


@pytest.mark.parametrize("name", ["llama-3-8b", "deepseek-v3", "gemma-3-27b", "gpt-oss-20b", "mistral-7b-v0.1"])
@pytest.mark.parametrize("dtype", ["bfloat16", "fp8"])
def test_the_cache_grows_by_what_a_token_takes(name, dtype):
    config = preset(name)
    for context in (1, 127, 128, 511, 1023, 1024, 4095, 4096, 20_000):
        grown = cache_bytes(config, 1, context + 1, dtype) - cache_bytes(config, 1, context, dtype)
        assert grown == bytes_per_token(config, dtype, context)


def test_blocks_round_what_a_layer_keeps_up():
    assert cache_bytes(LLAMA, 3, 100, block_size=16) == cache_bytes(LLAMA, 3, 112)
    hybrid = SHAPES["hybrid"]  # windows of 5, 5, none, 9, 200, none, in blocks of 4 and 17 tokens
    assert cache_bytes(hybrid, 1, 17, 1, block_size=4) == (8 + 8 + 20 + 12 + 20 + 20) * 2 * 2 * 12


def test_layers_that_share_store_once():
    pairs = [layer - layer % 2 for layer in range(32)]
    assert bytes_per_token(LLAMA, kv_owner=pairs) == bytes_per_token(LLAMA) / 2
    assert cache_bytes(LLAMA, 4, 100, kv_owner=pairs) == cache_bytes(LLAMA, 4, 100) / 2
    assert bytes_per_token(LLAMA, kv_owner=range(32)) == bytes_per_token(LLAMA)
    hybrid = SHAPES["hybrid"]  # a window may share with an equal window: layer 1 reads layer 0's keys
    assert cache_bytes(hybrid, 1, 64, 1, kv_owner=[0, 0, 2, 3, 4, 2]) == (5 + 64 + 9 + 64) * 2 * 2 * 12


def test_heads_are_split_among_devices_but_a_latent_is_not():
    whole = cache_bytes(LLAMA, 2, 100)
    assert [cache_bytes(LLAMA, 2, 100, devices=n) for n in (2, 8, 16, 32)] == [
        whole / 2,
        whole / 8,
        whole / 8,
        whole / 8,
    ]
    deepseek = preset("deepseek-v3")
    assert cache_bytes(deepseek, 2, 100, devices=8) == cache_bytes(deepseek, 2, 100)


@pytest.mark.parametrize(
    ("name", "kind"), [("gpt2", "MHA"), ("llama-3-8b", "GQA"), ("gemma-3-1b", "MQA"), ("deepseek-v3", "MLA")]
)
def test_the_kind_of_attention_has_a_name(name, kind):
    assert attention_kind(preset(name)) == kind


def test_activations_are_the_widest_moment():
    # Llama 3 8B: twice D = 4096 beside 3 F = 3 * 14336, 2 bytes each; 8 rows of logits in float32 are less
    assert activation_bytes(LLAMA, 2048, 8) == 2048 * 2 * (2 * 4096 + 3 * 14336)
    assert activation_bytes(LLAMA, 8, 8) == 8 * (2 * 2 * 4096 + 4 * 128256)  # now the logits are more
    mixtral = preset("mixtral-8x7b")
    assert activation_bytes(mixtral, 2048, 1) - activation_bytes(replace(mixtral, moe=None), 2048, 1) == (
        2048 * 2 * 3 * 14336  # two experts of a token instead of one block
    )


def test_a_real_step_holds_somewhat_more():
    tiny = load_model("tiny")
    view = KVCache(tiny.config, 1, 256).step([0], [256])
    tracemalloc.start()
    tiny.head(tiny.hidden(np.arange(256), np.arange(256), view)[-1:])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    least = activation_bytes(tiny.config, 256, 1, "float32")
    assert least < peak < 2 * least  # NumPy makes temporaries of its own


@pytest.mark.parametrize("reserve", [0.0, 0.1])
@pytest.mark.parametrize(
    ("name", "where", "length", "options"),
    [
        ("llama-3-8b", "h100-sxm", 8192, {}),
        ("llama-3-8b", "rtx-4090", 2048, {"dtype": "int4", "weights": 18 / 32}),
        ("llama-3.1-405b", "h200", 4096, {"devices": 8, "dtype": "fp8"}),
        ("gpt-oss-20b", "l40s", 131_072, {"block_size": 16, "weights": "fp8"}),
        ("deepseek-v3", "h200", 32_768, {"devices": 16, "weights": "fp8"}),
        ("smollm2-135m", "h200", 16, {"step_tokens": 1}),
    ],
)
def test_the_largest_batch_fits_and_one_more_does_not(name, where, length, options, reserve):
    config, target = preset(name), device(where)
    most = max_batch(config, target, length, reserve=reserve, **options)
    assert most > 0
    assert memory_need(config, target, most, length, reserve=reserve, **options).total_bytes <= target.memory_bytes
    assert memory_need(config, target, most + 1, length, reserve=reserve, **options).total_bytes > target.memory_bytes


def test_the_need_is_the_sum_of_its_parts():
    need = memory_need(LLAMA, H100, 16, 8192, step_tokens=512, reserve=0.05)
    assert need.weight_bytes == 2 * 8_030_261_248
    assert need.cache_bytes == 16 * 8192 * 131_072
    assert need.activation_bytes == activation_bytes(LLAMA, 512, 16)
    assert need.reserve_bytes == 4_000_000_000
    assert need.total_bytes == need.weight_bytes + need.cache_bytes + need.activation_bytes + need.reserve_bytes


def test_a_step_brings_a_token_of_each_sequence_at_least():
    assert memory_need(LLAMA, H100, 40, 8, step_tokens=2).activation_bytes == activation_bytes(LLAMA, 40, 40)


def test_nothing_fits_beside_weights_that_do_not():
    assert max_batch(preset("llama-3-70b"), H100, 128) == 0
    assert max_batch(preset("llama-3-70b"), H100, 128, devices=4) > 0


def test_formats_have_the_names_that_people_write():
    assert kv_format("bf16") == kv_format("bfloat16") == PlainFormat("bfloat16", 2)
    assert kv_format("fp8") == kv_format("float8_e4m3") == ScaledFormat()
    assert kv_format("int4") == GroupedFormat(4, group=32, tail=128)
    assert kv_format(0.75).token_bytes(LLAMA.attention(0)) == 0.75 * 2 * 8 * 128


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: kv_format("int3"), "in so many bytes an element, got 'int3'"),
        (lambda: kv_format(-1.0), "got|positive number"),
        (lambda: GroupedFormat(3), "2, 4 or 8 bits, so that a byte holds whole ones, got 3"),
        (lambda: GroupedFormat(4, 64, 32), "got 64 and 32"),
        (lambda: bytes_per_token(LLAMA, context=-1), "context must be finite and at least 0, got -1"),
        (lambda: cache_bytes(LLAMA, 0, 8), "batch must be finite and at least 1, got 0"),
        (lambda: cache_bytes(LLAMA, 1, 0), "length must be finite and at least 1, got 0"),
        (lambda: cache_bytes(LLAMA, 1, 8, block_size=0), "block_size must be finite and at least 1, got 0"),
        (lambda: cache_bytes(LLAMA, 1, 8, max_rollback=-1), "max_rollback must be finite and at least 0, got -1"),
        (
            lambda: cache_bytes(LLAMA, 1, 8, devices=3),
            "8 key/value heads of 'llama-3-8b' cannot be split evenly among 3",
        ),
        (lambda: cache_bytes(LLAMA, 1, 8, devices=0), "devices must be finite and at least 1, got 0"),
        (lambda: bytes_per_token(LLAMA, kv_owner=[0]), "kv_owner names a layer for each of 32, got 1"),
        (lambda: bytes_per_token(LLAMA, kv_owner=[1, 1, *range(2, 32)]), "layer 0 cannot read the keys of layer 1"),
        (lambda: bytes_per_token(LLAMA, kv_owner=[0, 0, 1, *range(3, 32)]), "layer 2 cannot read the keys of layer 1"),
        (lambda: bytes_per_token(preset("gpt-oss-20b"), kv_owner=[0] * 24), "layer 1 cannot read the keys of layer 0"),
        (lambda: max_batch(LLAMA, H100, 8, reserve=1.0), "at least 0 and below 1, got 1.0"),
        (lambda: max_batch(LLAMA, H100, 8, step_tokens=0), "step_tokens must be finite and at least 1, got 0"),
        (lambda: activation_bytes(LLAMA, -1, 0), "tokens must be finite and at least 0, got -1"),
    ],
)
def test_mistakes_are_refused_with_their_numbers(call, words):
    with pytest.raises(ValueError, match=words):
        call()
