"""Published arithmetic of chapter 3.1: figures that others printed, from our models and devices; their errors too.

Sources: "kipply" is Transformer Inference Arithmetic (kipp.ly, 2022), "SB" How to Scale Your Model (Google DeepMind,
2025, the Scaling Book). Where a source rounds its inputs, its own arithmetic is repeated with them, and ours stands
beside it.
"""

from dataclasses import replace
from math import ceil

import pytest

from llminfer.basics.config import ModelConfig
from llminfer.basics.parameters import parameter_count
from llminfer.basics.presets import preset
from llminfer.basics.rooflines import (
    attainable,
    attention_intensity,
    critical_batch,
    decode_ceiling,
    max_batch,
    roofline_time,
    step_time,
)
from llminfer.basics.steps import Segment, decode, prefill, step_cost, step_costs, visible_pairs
from llminfer.core.cost import Cost
from llminfer.core.hardware import device

MS = 1e-3
V5E = device("tpu-v5e")
KIPPLY_A100 = replace(device("a100-40gb"), bandwidth=1.5e12)  # rounded as in the post
KIPPLY_52B = ModelConfig(
    "kipply's 52B", layers=64, width=8192, heads=64, kv_heads=64, head_width=128, feed_forward=4 * 8192,
    vocabulary=50257, context=8192, norm="layernorm", activation="gelu", positions="learned", tied=True,
)  # fmt: skip


def layer_matrices(config: ModelConfig, tokens: int) -> Cost:
    """What kipply's 12·L·D² stands for: the four attention projections and the feed-forward block of every layer."""
    costs = step_costs(config, prefill(tokens))
    return sum((costs[part] for part in ("qkv", "output", "up", "down")), Cost(0, 0, 0))


# kipply


def test_keys_and_values_of_a_token_cost_4_l_d_squared():
    qkv = step_costs(KIPPLY_52B, decode(0))["qkv"].flops
    assert qkv * 2 / 3 == 2 * 2 * 64 * 8192**2 == 17_179_869_184


def test_the_ridge_of_the_a100_is_208():
    assert KIPPLY_A100.ridge() == 208
    assert device("a100-40gb").ridge() == pytest.approx(200.6, abs=0.05)  # with the bandwidth of the data sheet


def test_weights_of_52b_take_69_ms_to_read_and_17_on_four_devices():
    cost = layer_matrices(KIPPLY_52B, tokens=1)
    assert cost.read_bytes == 24 * 64 * 8192**2
    assert roofline_time(cost, KIPPLY_A100) / MS == pytest.approx(68.7, abs=0.05)
    assert roofline_time(cost, KIPPLY_A100, devices=4) / MS == pytest.approx(17.2, abs=0.05)


@pytest.mark.parametrize(("tokens", "times"), [(1, 1), (208, 1), (312, 1.5), (416, 2)])
def test_time_stands_still_up_to_208_tokens_and_grows_with_them_beyond(tokens, times):
    one = roofline_time(layer_matrices(KIPPLY_52B, 1), KIPPLY_A100)
    assert roofline_time(layer_matrices(KIPPLY_52B, tokens), KIPPLY_A100) == pytest.approx(times * one)


@pytest.mark.parametrize(
    ("parameters", "layers", "width", "batch", "devices", "compute_ms", "exchange_ms"),
    [(260e9, 80, 16384, 512, 16, 53.3, 8.95), (52e9, 64, 8192, 256, 4, 21.3, 1.79)],
)
def test_large_batches_compute_much_longer_than_they_exchange(
    parameters, layers, width, batch, devices, compute_ms, exchange_ms
):
    compute = roofline_time(Cost(2 * parameters * batch, 2 * parameters, 0), KIPPLY_A100, devices=devices)
    exchange = batch * 4 * layers * width / 300e9  # his accounting of the all-reduces over NVLink
    assert compute / MS == pytest.approx(compute_ms, abs=0.05)
    assert exchange / MS == pytest.approx(exchange_ms, abs=0.005)


def test_kipplys_gopher_mixes_80_and_128_layers():
    """Small batch: 4 exchanges a layer of some 10 us, "5.12 ms", is 128 layers; large batch: "8.95 ms" is 80."""
    assert 4 * 128 * 10e-6 / MS == pytest.approx(5.12)
    assert 512 * 4 * 80 * 16384 / 300e9 / MS == pytest.approx(8.95, abs=0.005)
    assert 512 * 4 * 128 * 16384 / 300e9 / MS == pytest.approx(14.3, abs=0.05)


def test_kipplys_share_of_the_intermediate_operations():
    assert 0.43 * 8 / (1 * 64) == pytest.approx(0.05375)


# The Scaling Book, on rooflines and inference


def test_the_critical_batch_of_a_tpu_v5e_is_240():
    assert critical_batch(V5E) == pytest.approx(240, abs=0.5)
    assert critical_batch(V5E, weights="int8") == pytest.approx(120, abs=0.5)
    assert critical_batch(V5E, weights="int8", math="int8") == pytest.approx(240, abs=0.5)
    assert critical_batch(V5E, weights="int4") == pytest.approx(60, abs=0.5)


def test_the_bandwidth_of_old_tables_would_halve_it():
    assert critical_batch(replace(V5E, bandwidth=1.6e12)) == pytest.approx(123, abs=0.5)


def test_a_sparse_rate_taken_for_dense_doubles_the_critical_batch():
    h100 = device("h100-sxm")
    misread = replace(h100, peak_flops={"bfloat16": 1979e12})
    assert critical_batch(h100) == pytest.approx(295.2, abs=0.05)
    assert critical_batch(misread) == pytest.approx(2 * critical_batch(h100), rel=1e-3)
    assert attainable(h100, 1e9) < 1000e12


@pytest.mark.parametrize(("queries", "keys"), [(1, 4096), (512, 512), (128, 2048)])
def test_attention_does_s_t_over_s_plus_t_flops_a_byte(queries, keys):
    assert attention_intensity(queries, keys) == pytest.approx(keys * queries / (keys + queries))


def test_attention_intensity_is_t_over_2_in_prefill_and_1_in_decode():
    assert attention_intensity(2048, 2048) == 1024
    assert attention_intensity(1, 100_000) == pytest.approx(1, rel=1e-4)


def test_attention_costs_as_much_as_its_projections_at_twice_the_width():
    """24·B·T·D·N·H = 12·B·T²·N·H at T = 2D, when nothing is masked; a causal prompt gets there at 4D."""
    config = replace(KIPPLY_52B, width=4096, heads=32, kv_heads=32)
    tokens = 2 * 4096
    costs = step_costs(config, prefill(tokens))
    unmasked = costs["attention"].flops * tokens**2 / visible_pairs(tokens)
    assert unmasked == costs["qkv"].flops + costs["output"].flops
    twice = step_costs(config, prefill(2 * tokens))
    assert twice["attention"].flops == pytest.approx(twice["qkv"].flops + twice["output"].flops, rel=1e-4)


STEP_TABLE = [  # batch, ms and tokens/s with full keys and values, GB; ms and tokens/s with a fifth of them
    (1, 4.98, 200.61, 32.7, 4.17, 239.94),
    (8, 12.13, 659.30, 79.6, 5.60, 1429.19),
    (16, 20.30, 787.99, 133.2, 7.23, 2212.48),
    (32, 36.65, 873.21, 240.4, 10.50, 3047.62),
    (64, 69.33, 923.13, 454.8, 17.04, 3756.62),
    (240, 249.09, 963.53, 1634, 52.99, 4529.34),
]


@pytest.mark.parametrize(("batch", "ms", "rate", "gb", "ms_fifth", "rate_fifth"), STEP_TABLE)
def test_llama_2_13b_on_eight_v5e_with_the_sources_rounding(batch, ms, rate, gb, ms_fifth, rate_fifth):
    for cache, step_ms, tokens_per_s in ((6.7e9, ms, rate), (6.7e9 / 5, ms_fifth, rate_fifth)):
        cost = Cost(flops=2 * 13e9 * batch, read_bytes=26e9 + batch * cache, write_bytes=0)
        seconds = roofline_time(cost, V5E, devices=8)
        assert seconds / MS == pytest.approx(step_ms, abs=0.0051)
        assert batch / seconds == pytest.approx(tokens_per_s, abs=0.0051)
    assert (26e9 + batch * 6.7e9) / 1e9 == pytest.approx(gb, rel=1e-3)


@pytest.mark.parametrize(("batch", "ms"), [row[:2] for row in STEP_TABLE])
def test_llama_2_13b_on_eight_v5e_from_its_config(batch, ms):
    ours = step_time(preset("llama-2-13b"), decode(8192, batch), V5E, devices=8)
    assert ours / MS == pytest.approx(ms, rel=0.01)


@pytest.mark.parametrize("batch", [row[0] for row in STEP_TABLE])
def test_a_fifth_of_the_key_heads_reads_a_fifth_of_the_cache(batch):
    config = preset("llama-2-13b")
    full, fifth = (step_costs(replace(config, kv_heads=heads), decode(8192, batch)) for heads in (40, 8))
    assert fifth["attention"].bytes == full["attention"].bytes / 5


def test_the_table_of_caches_headed_gib_is_in_gb():
    cache = step_costs(preset("llama-2-13b"), decode(8192))["attention"].read_bytes
    assert cache == 6_710_886_400
    assert cache / 1e9 == pytest.approx(6.71, abs=0.005)
    assert cache / 2**30 == 6.25


# The Scaling Book, on serving Llama 3 70B from TPU v5e


def test_caches_of_240_long_sequences_take_86_chips():
    sequence = step_costs(preset("llama-3-70b"), decode(32768), kv="int8")["attention"].read_bytes
    assert sequence / 1e9 == pytest.approx(162e3 * 32768 / 1e9, rel=0.02)  # "5.3 GB"
    assert 240 * sequence / 1e12 == pytest.approx(1.3, abs=0.05)
    assert ceil((70e9 + 1.3e12) / V5E.memory_bytes) == 86  # with its rounding; 85 without
    assert ceil((parameter_count(preset("llama-3-70b")).total + 240 * sequence) / V5E.memory_bytes) == 85


def test_a_chip_whose_memory_is_full_takes_19_ms_a_step():
    assert roofline_time(Cost(0, V5E.memory_bytes, 0), V5E) / MS == pytest.approx(19.5, abs=0.05)


@pytest.mark.parametrize(
    ("batch", "chips", "printed"),
    [(43, 16, 0.27), (52, 8, 0.66), (67, 4, 1.72), (161, 32, 0.51), (160, 16, 1.03), (160, 8, 2.06)],
)
def test_queries_per_second_and_chip_follow_from_the_printed_batches(batch, chips, printed):
    assert batch / (0.019 * 512 * chips) == pytest.approx(printed, abs=0.011)


@pytest.mark.parametrize(("dtype", "chips", "printed"), [("bfloat16", 16, 43), ("int8", 8, 52), ("int4", 4, 67)])
def test_only_the_first_of_the_printed_batches_fits(dtype, chips, printed):
    """Halving weights, caches and chips together leaves room for as many sequences: 42 in each row of the table."""
    fits = max_batch(preset("llama-3-70b"), V5E, 8192, weights=dtype, kv=dtype, devices=chips)
    assert fits == 42
    assert (printed - fits <= 1) == (dtype == "bfloat16")


def test_seventy_billion_int4_weights_take_35_gb_and_not_45():
    weights = parameter_count(preset("llama-3-70b")).total * 0.5
    assert weights / 1e9 == pytest.approx(35, abs=0.5)
    assert weights / V5E.memory_bytes == pytest.approx(2.2, abs=0.05)
    assert 45e9 / V5E.memory_bytes == pytest.approx(2.81, abs=0.005)  # printed, from the 45


def test_flops_per_dollar_are_flops_per_second_for_a_dollar_an_hour():
    assert 9.9e14 / 10.8 == pytest.approx(9.2e13, rel=0.005)
    assert device("tpu-v5p").flops() / 4.2 == pytest.approx(1.09e14, rel=0.005)
    assert V5E.flops() / 1.2 == pytest.approx(1.64e14, rel=0.005)


def test_tokens_that_leave_the_caches_per_step():
    assert 32 * (8192 + 4096) / 4096 == 96  # batch 32, prompts of 8192, answers of 4096


def test_three_prefill_servers_feed_one_that_generates():
    prefill_s, per_answer_s = 0.91, 19 * MS * 512 / 32
    assert prefill_s / per_answer_s == pytest.approx(2.99, abs=0.005)


# The Scaling Book, on Transformers


def test_a_16b_model_keeps_half_a_mebibyte_per_token_and_is_a_quarter_attention():
    config = replace(KIPPLY_52B, width=4096, heads=32, kv_heads=32, feed_forward=4 * 4096, activation="swiglu")
    count = parameter_count(config)
    assert step_costs(config, decode(0), kv="int8")["attention"].write_bytes == 512 * 2**10
    assert count.attention / (count.attention + count.feed_forward) == 0.25
    assert count.attention + count.feed_forward == 16 * 2**30  # so its "16e9" parameters are 17.2e9


def test_the_training_of_deepseek_v3_used_a_fifth_of_the_arithmetic():
    seconds = 2.79e6 * 3600  # of all its H800s together; the source gives them the FP8 rate of an H100 PCIe
    used = 6 * 37e9 * 14.8e12 / (seconds * device("h100-pcie").flops("float8"))
    assert used == pytest.approx(0.2165, abs=0.001)  # "21.6-21.7 %"


# Measured by others


GPT_FAST = {  # tokens/s at batch 1 in bfloat16 on A100 80 GB by number of devices; gpt-fast, README
    "llama-2-7b": {1: 104.9, 2: 168.84, 4: 254.02, 8: 328.43},
    "llama-2-70b": {2: 21.32, 4: 38.01, 8: 62.50},
}


@pytest.mark.parametrize("name", GPT_FAST)
def test_measured_decodes_grow_with_devices_and_stay_below_the_ceiling(name):
    share = []
    for devices, measured in GPT_FAST[name].items():
        ceiling = decode_ceiling(preset(name), device("a100-80gb"), devices=devices)
        assert measured < ceiling
        share.append(measured / ceiling)
    assert list(GPT_FAST[name].values()) == sorted(GPT_FAST[name].values())
    assert share == sorted(share, reverse=True)  # each doubling gains less: what a roofline leaves out


def test_llama_3_8b_decodes_at_most_209_tokens_a_second_on_an_h100():
    config, h100 = preset("llama-3-8b"), device("h100-sxm")
    weights = 2 * parameter_count(config).total
    token = step_costs(config, decode(1))["attention"].read_bytes
    assert (weights, token) == (16_060_522_496, 131_072)
    assert 1 / roofline_time(Cost(0, weights + token, 0), h100) == pytest.approx(208.6, abs=0.05)
    assert max_batch(config, h100, 8192) == 59


def test_a_decode_looks_up_one_row_of_the_embedding_so_that_the_ceiling_is_higher():
    config, h100 = preset("llama-3-8b"), device("h100-sxm")
    assert decode_ceiling(config, h100, context=1) == pytest.approx(223.2, abs=0.05)
    table = 2 * parameter_count(config).embedding
    read = step_cost(config, decode(1)).read_bytes
    assert read == pytest.approx(16_060_522_496 + 131_072 - table, rel=1e-6)


def test_chunks_of_a_prompt_read_the_weights_once_each():
    """The price of chunked prefill: the same arithmetic, and the weights again for every chunk."""
    config = preset("llama-3-8b")
    whole = step_cost(config, prefill(8192))
    chunks = [step_cost(config, [Segment(512, 512 * i, sampled=int(i == 15))]) for i in range(16)]
    assert sum(c.flops for c in chunks) == whole.flops
    assert sum(c.bytes for c in chunks) > 10 * whole.bytes
