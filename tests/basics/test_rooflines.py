"""The roofline of a model: limits, identities, and what it says about batching."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    step_times,
)
from llminfer.basics.steps import Segment, decode, prefill, step_cost, step_costs
from llminfer.core.cost import Cost
from llminfer.core.hardware import Device, device

ROUND = Device("a round device", {"bfloat16": 100.0, "int8": 200.0}, memory_bytes=1e6, bandwidth=10.0, source="test")
H100 = device("h100-sxm")
LLAMA = preset("llama-3-8b")


def test_the_roof_rises_to_the_ridge_and_is_flat_beyond():
    assert attainable(ROUND, 5) == 50
    assert attainable(ROUND, ROUND.ridge()) == 100
    assert attainable(ROUND, 1000) == 100
    assert attainable(ROUND, 15, "int8") == 150


@given(st.floats(1e-3, 1e6), st.floats(1, 1e6))
def test_work_at_the_attainable_rate_takes_its_roofline_time(flops, moved):
    cost = Cost(flops, moved, 0)
    assert roofline_time(cost, ROUND) == pytest.approx(max(flops / 100, moved / 10))
    assert flops / attainable(ROUND, cost.intensity) == pytest.approx(roofline_time(cost, ROUND))


def test_reads_and_writes_share_the_bus():
    assert roofline_time(Cost(0, 30, 20), ROUND) == 5


def test_a_matrix_is_compute_bound_from_the_critical_batch_on():
    batch = critical_batch(H100)
    below, above = (step_costs(LLAMA, decode(0, batch=int(batch) + more))["gate_up"] for more in (0, 1))
    assert below.intensity < H100.ridge() < above.intensity


@pytest.mark.parametrize("weights", ["float32", "bfloat16", "int8", "int4", 18 / 32])
def test_the_critical_batch_is_the_ridge_times_half_the_bytes_of_a_weight(weights):
    size = {"float32": 4, "bfloat16": 2, "int8": 1, "int4": 0.5}.get(weights, weights)
    assert critical_batch(H100, weights) == pytest.approx(H100.ridge() * size / 2)


def test_a_step_takes_the_sum_of_its_parts_and_never_less_than_its_total():
    segments = [*decode(2000, batch=40), Segment(512, 1024)]
    times = step_times(LLAMA, segments, H100)
    assert step_time(LLAMA, segments, H100) == sum(times.values())
    assert times.keys() == step_costs(LLAMA, segments).keys()
    assert sum(times.values()) >= roofline_time(step_cost(LLAMA, segments), H100)


def test_a_decode_waits_for_memory_and_a_prompt_for_arithmetic():
    one, prompt = step_cost(LLAMA, decode(512)), step_cost(LLAMA, prefill(2048))
    assert one.intensity < 2 < H100.ridge() < prompt.intensity
    assert step_time(LLAMA, decode(512), H100) == pytest.approx(one.bytes / H100.bandwidth)
    # but for the head, which even a prompt reads for the sake of a single row
    assert step_time(LLAMA, prefill(2048), H100) == pytest.approx(prompt.flops / H100.flops(), rel=0.02)


def test_a_larger_batch_is_slower_and_serves_more():
    times = [step_time(LLAMA, decode(1024, batch), H100) for batch in (1, 4, 16, 64, 256)]
    rates = [decode_ceiling(LLAMA, H100, 1024, batch) for batch in (1, 4, 16, 64, 256)]
    assert times == sorted(times)
    assert rates == sorted(rates)


def test_the_cache_caps_what_batching_can_gain():
    """Weights are shared, caches are not: however large the batch, a sequence waits for its own keys and values."""
    own = step_costs(LLAMA, decode(8192))["attention"].bytes / H100.bandwidth
    assert decode_ceiling(LLAMA, H100, 8192, batch=4096) < 1 / own


def test_a_prefill_chunk_rides_along_in_a_memory_bound_step():
    decodes = decode(1024, batch=16)
    with_chunk = step_time(LLAMA, [*decodes, Segment(200, 0, sampled=0)], H100)
    assert with_chunk < 1.01 * step_time(LLAMA, decodes, H100)
    assert step_time(LLAMA, [*decodes, Segment(2000, 0, sampled=0)], H100) > 2 * with_chunk


def test_smaller_weights_speed_up_decodes_and_not_prompts():
    assert decode_ceiling(LLAMA, H100, weights="int4") > 3.9 * decode_ceiling(LLAMA, H100)
    assert step_time(LLAMA, prefill(4096), H100, weights="int4") == pytest.approx(
        step_time(LLAMA, prefill(4096), H100), rel=0.01
    )


def test_faster_arithmetic_speeds_up_prompts_and_not_decodes():
    assert step_time(LLAMA, prefill(4096), H100, math="float8") < 0.52 * step_time(LLAMA, prefill(4096), H100)
    assert decode_ceiling(LLAMA, H100, math="float8") == decode_ceiling(LLAMA, H100)


def test_a_smaller_cache_speeds_up_long_contexts():
    full, half = (decode_ceiling(LLAMA, H100, 100_000, batch=8, kv=kv) for kv in ("bfloat16", "float8"))
    assert full < half < 2 * full


def test_devices_divide_the_time_evenly():
    segments = decode(1000, batch=7)
    assert step_time(LLAMA, segments, H100, devices=4) == pytest.approx(step_time(LLAMA, segments, H100) / 4)
    assert decode_ceiling(LLAMA, H100, devices=4) == pytest.approx(4 * decode_ceiling(LLAMA, H100))


def test_a_mixture_decodes_alone_as_fast_as_its_active_part_and_in_batches_as_slow_as_all_of_it():
    config, count = preset("qwen3-30b-a3b"), parameter_count(preset("qwen3-30b-a3b"))
    alone, crowd = step_time(config, decode(0), H100), step_time(config, decode(0, batch=256), H100)
    assert alone == pytest.approx(2 * (count.active - count.embedding) / H100.bandwidth, rel=1e-3)
    assert crowd > 0.95 * 2 * (count.total - count.embedding) / H100.bandwidth


@given(st.integers(1, 4096), st.integers(1, 4096), st.integers(1, 64))
def test_attention_intensity_is_what_the_kernel_reads_and_computes(queries, keys, group):
    width = 128
    flops = 2 * 2 * queries * keys * group * width
    moved = 2 * (2 * keys * width + 2 * queries * group * width)
    assert attention_intensity(queries, keys, group) == pytest.approx(flops / moved)


def test_grouping_is_the_only_help_for_the_intensity_of_a_decode():
    assert attention_intensity(1, 10**6) == pytest.approx(1, rel=1e-5)
    assert attention_intensity(1, 10**6, group=8) == pytest.approx(8, rel=1e-4)
    assert attention_intensity(1, 10**6, group=8, dtype="float8") == pytest.approx(16, rel=1e-4)


def test_what_fits_is_what_memory_leaves_beside_the_weights():
    batch = max_batch(LLAMA, H100, context=8192)
    cache = step_costs(LLAMA, decode(8192))["attention"].read_bytes
    weights = 2 * parameter_count(LLAMA).total
    assert weights + batch * cache <= H100.memory_bytes < weights + (batch + 1) * cache


def test_windows_let_more_sequences_fit():
    gemma = preset("gemma-3-27b")
    assert max_batch(gemma, H100, 32768) > 4 * max_batch(replace(gemma, windows=()), H100, 32768)
    assert max_batch(gemma, H100, 512) == max_batch(replace(gemma, windows=()), H100, 512)


def test_nothing_fits_beside_weights_that_do_not_fit():
    assert max_batch(preset("llama-3-70b"), H100, 128) == 0
    assert max_batch(preset("llama-3-70b"), H100, 128, devices=2) > 0


def test_arithmetic_in_a_type_the_device_lacks_is_refused():
    with pytest.raises(ValueError, match="Name the type in which the products are computed"):
        step_time(LLAMA, decode(1), device("a100-80gb"), weights="float8", math="float8")


@pytest.mark.parametrize("devices", [0, -1])
def test_fewer_than_one_device_is_refused(devices):
    with pytest.raises(ValueError, match=f"devices must be finite and at least 1, got {devices}"):
        step_time(LLAMA, decode(1), H100, devices=devices)
    with pytest.raises(ValueError, match=f"devices must be finite and at least 1, got {devices}"):
        max_batch(LLAMA, H100, 100, devices=devices)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: attainable(ROUND, float("nan")), "intensity must be at least 0 FLOPs per byte, got nan"),
        (lambda: attainable(ROUND, -1.0), "intensity must be at least 0 FLOPs per byte, got -1"),
        (lambda: attention_intensity(0, 0), "queries must be finite and at least 1, got 0"),
        (lambda: attention_intensity(1, -1), "keys must be finite and at least 1, got -1"),
        (lambda: attention_intensity(1, 1, 0), "group must be finite and at least 1, got 0"),
        (lambda: critical_batch(ROUND, -2.0), "positive number"),
        (lambda: max_batch(LLAMA, H100, 0), "context must be finite and at least 1, got 0"),
        (lambda: max_batch(LLAMA, H100, 100, kv=0), "positive number"),
        (lambda: step_time(LLAMA, decode(1), H100, weights=-1.0), "positive number"),
        (lambda: roofline_time(Cost(1, 1, 1), ROUND, devices=0), "devices must be finite and at least 1, got 0"),
    ],
)
def test_numbers_that_cannot_be_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
