"""The memories of devices: sizes and speeds against published figures, and the time of a layer through each."""

from dataclasses import replace
from math import prod

import pytest

from llminfer.basics.memory_hierarchy import draw_crossings, layer_crossings, layer_weight_bytes, memory_levels
from llminfer.basics.parameters import parameter_count, weight_shapes
from llminfer.basics.presets import PRESETS, preset
from llminfer.core.hardware import DEVICES, device
from llminfer.core.plots import data_table

LLAMA = preset("llama-3-8b")
GPUS = [name for name in DEVICES if not name.startswith("tpu")]


def level(name: str, which: str):
    return {level.name: level for level in memory_levels(device(name))}[which]


def crossing(name: str, which: str, **kwargs):
    return {c.level.name: c for c in layer_crossings(LLAMA, device(name), **kwargs)}[which]


def test_a_layer_of_llama_3_8b_counted_by_hand():
    """q and o 4096², k and v 4096·1024, three of 4096·14336, two gains of 4096; two bytes each."""
    elements = 2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096
    assert layer_weight_bytes(LLAMA) == 2 * elements == 436_224_000
    assert layer_weight_bytes(LLAMA, weights="int4") == elements / 2
    assert layer_weight_bytes(LLAMA, weights=18 / 32) == elements * 18 / 32


@pytest.mark.parametrize("name", PRESETS)
def test_layers_and_what_lies_outside_them_make_the_model(name):
    config = preset(name)
    outside = {key: shape for key, shape in weight_shapes(config).items() if not key.startswith("layers.")}
    layers = sum(layer_weight_bytes(config, layer, 1.0) for layer in range(config.layers))
    assert layers + sum(prod(shape) for shape in outside.values()) == parameter_count(config).total


def test_a_mixture_is_moved_with_all_its_experts():
    config = preset("mixtral-8x7b")
    fewer = replace(config, moe=replace(config.moe, experts=4))
    expert = 3 * config.width * config.moe.expert_width
    router = config.width
    assert layer_weight_bytes(config, 0, 1.0) - layer_weight_bytes(fewer, 0, 1.0) == 4 * (expert + router)


def test_layers_of_two_kinds_differ():
    config = preset("deepseek-v3")
    assert layer_weight_bytes(config, 60) > 10 * layer_weight_bytes(config, 0)


@pytest.mark.parametrize("layer", [-1, 32])
def test_a_layer_the_model_does_not_have_is_refused(layer):
    with pytest.raises(ValueError, match=rf"has the layers 0..31, got {layer}"):
        layer_weight_bytes(LLAMA, layer)


def test_levels_come_nearest_first():
    names = ["registers", "shared memory", "L2", "main memory", "link"]
    assert [level.name for level in memory_levels(device("h100-sxm"))] == names


@pytest.mark.parametrize(
    ("name", "which", "published"),
    [
        ("a100-80gb", "registers", 27648 * 2**10),  # NVIDIA A100 white paper: "Register File Size 27648 KB"
        ("h100-sxm", "registers", 33792 * 2**10),  # NVIDIA H100 white paper: 33792 KB
        ("a100-80gb", "L2", 40960 * 2**10),
        ("h100-sxm", "shared memory", 132 * 228 * 2**10),
        ("rtx-4090", "registers", 128 * 256 * 2**10),
        ("mi300x", "shared memory", 304 * 64 * 2**10),
        ("h100-sxm", "main memory", 80e9),
    ],
)
def test_capacities_are_the_published_ones(name, which, published):
    assert level(name, which).capacity_bytes == published


@pytest.mark.parametrize(
    ("name", "which", "published"),
    [
        ("a100-40gb", "shared memory", 19.5e12),  # FlashAttention, figure 1: SRAM 19 TB/s (20 MB)
        ("a100-40gb", "L2", 5120 * 1410e6),  # NVIDIA A100 white paper: 5120 bytes a clock, 1410 MHz
        ("a100-40gb", "main memory", 1.555e12),
        ("h100-sxm", "link", 450e9),
        ("mi300x", "shared memory", 81.7e12),  # 304 units x 128 bytes x 2.1 GHz
        ("mi300x", "L2", 34.4e12),  # 8 dies x 2 KB a clock x 2.1 GHz
    ],
)
def test_bandwidths_are_the_published_ones(name, which, published):
    assert level(name, which).bandwidth == pytest.approx(published, rel=2e-3)


def test_registers_feed_three_operands_to_each_multiply_add():
    """108 multiprocessors of 64 lanes at 1410 MHz, 12 bytes each; FLOPs are printed to three digits."""
    assert level("a100-80gb", "registers").bandwidth == pytest.approx(108 * 64 * 1410e6 * 12, rel=2e-3)


@pytest.mark.parametrize("name", DEVICES)
def test_each_known_level_is_slower_than_the_one_before(name):
    known = [level.bandwidth for level in memory_levels(device(name)) if level.bandwidth]
    assert known == sorted(known, reverse=True)
    assert len(set(known)) == len(known)


@pytest.mark.parametrize("name", DEVICES)
def test_what_is_not_known_is_none_and_said(name):
    for each in memory_levels(device(name)):
        assert each.note
        if each.bandwidth is None:
            assert "not published" in each.note
            time = {c.level.name: c.time_s for c in layer_crossings(LLAMA, device(name))}[each.name]
            assert time is None


def test_nvidia_prints_no_l2_bandwidth_after_the_a100():
    assert level("h100-sxm", "L2").bandwidth is None
    assert level("h100-sxm", "L2").capacity_bytes == 50 * 2**20
    assert level("tpu-v5e", "registers").bandwidth is None


def test_a_layer_crosses_each_level_in_its_bytes_over_its_bandwidth():
    assert crossing("h100-sxm", "main memory").time_s == pytest.approx(436.224e6 / 3.35e12, rel=1e-4)
    assert crossing("h100-sxm", "link").time_s == pytest.approx(436.224e6 / 450e9, rel=1e-4)
    assert crossing("h100-sxm", "main memory", weights="float8").time_s == pytest.approx(65.1e-6, rel=1e-3)


def test_a_layer_fits_main_memory_and_nothing_nearer():
    found = {c.level.name: c.fits for c in layer_crossings(LLAMA, device("h100-sxm"))}
    assert found == {"registers": False, "shared memory": False, "L2": False, "main memory": True, "link": None}
    small = {c.level.name: c.fits for c in layer_crossings(preset("smollm2-135m"), device("h100-sxm"))}
    assert small["registers"] and small["L2"]


def test_the_picture_shows_the_same_numbers():
    axes = draw_crossings(LLAMA, device("h100-sxm"), alt="Memories of an H100 as a tower, with a layer of Llama.")
    rows = {row[0]: row[1:] for row in data_table(axes).rows}
    for each in layer_crossings(LLAMA, device("h100-sxm")):
        assert rows[each.level.name] == (each.level.capacity_bytes, each.level.bandwidth, each.time_s)
    assert rows["one layer of " + LLAMA.name][0] == each.bytes
    assert axes.get_title(loc="left") == "H100 SXM"
