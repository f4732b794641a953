"""The device table against published rows and against what follows from clocks and units."""

from dataclasses import replace
from math import log2

import pytest

from llminfer.core.hardware import DEVICES, Device, device

TERA = 1e12

# Published dense rates, in TFLOP/s: (float16 or bfloat16, float8, int8, float4), GB, TB/s, and the ridge of the first.
PUBLISHED = {
    "a100-40gb": ((312, None, 624, None), 40, 1.555, 200.6),
    "a100-80gb": ((312, None, 624, None), 80, 2.039, 153.0),
    "h100-sxm": ((989, 1979, 1979, None), 80, 3.35, 295.2),
    "h100-pcie": ((756, 1513, 1513, None), 80, 2.00, 378.0),
    "h200": ((989, 1979, 1979, None), 141, 4.80, 206.0),
    "b200": ((2250, 4500, 4500, 9000), 192, 8.00, 281.2),
    "gb200": ((2500, 5000, 5000, 10000), 192, 8.00, 312.5),
    "mi300x": ((1307.4, 2615, 2615, None), 192, 5.30, 246.7),
    "l40s": ((362, 733, 733, None), 48, 0.864, 419.0),
    "l4": ((121, 242, 242, None), 24, 0.30, 403.3),
    "t4": ((65, None, 130, None), 16, 0.32, 203.1),
    "rtx-4070": ((58.3, 116.6, 233, None), 12, 0.504, 115.7),
    "rtx-4090": ((165.2, 330.3, 660.6, None), 24, 1.008, 163.9),
    "rtx-5090": ((209.5, 419, 838, 1676), 32, 1.792, 116.9),
    "tpu-v5e": ((197, None, 394, None), 16, 0.82, 240.2),
    "tpu-v5p": ((459, None, 918, None), 95, 2.8, 163.9),
    "tpu-v6e": ((918, None, 1840, None), 32, 1.6, 573.8),
}

# What makers print "with sparsity", and third parties copy unmarked (TFLOP/s).
SPARSE = {
    ("a100-80gb", "bfloat16"): 624,
    ("h100-sxm", "bfloat16"): 1979,
    ("h100-sxm", "float8"): 3958,
    ("h200", "bfloat16"): 1979,
    ("h100-pcie", "bfloat16"): 1513,
    ("b200", "float4"): 18000,
    ("l40s", "bfloat16"): 733,
    ("l4", "bfloat16"): 242,
    ("rtx-4090", "bfloat16"): 330.3,
    ("rtx-5090", "float4"): 3352,
    ("mi300x", "bfloat16"): 2614.9,
}

# Peak = multiprocessors x boost clock in Hz x FLOPs per multiprocessor and clock. Sources: the architectures' papers.
CLOCKS = {
    ("a100-80gb", "bfloat16"): (108, 1410e6, 2048),
    ("h100-sxm", "bfloat16"): (132, 1830e6, 4096),
    ("mi300x", "bfloat16"): (304, 2100e6, 2048),
    ("mi350x", "bfloat16"): (256, 2200e6, 4096),
    ("mi355x", "bfloat16"): (256, 2400e6, 4096),
    ("t4", "float16"): (40, 1590e6, 1024),
    ("l4", "bfloat16"): (58, 2040e6, 1024),
    ("rtx-4070", "bfloat16"): (46, 2475e6, 512),
    ("rtx-4090", "bfloat16"): (128, 2520e6, 512),
    ("rtx-5090", "bfloat16"): (170, 2407e6, 512),
}


def half_precision(row: Device) -> str:
    return "bfloat16" if "bfloat16" in row.peak_flops else "float16"


@pytest.mark.parametrize("name", PUBLISHED)
def test_rates_memory_and_bandwidth_are_the_published_ones(name):
    rates, memory_gb, bandwidth_tb, _ = PUBLISHED[name]
    row = device(name)
    for dtype, published in zip((half_precision(row), "float8", "int8", "float4"), rates, strict=True):
        if published is None:
            assert dtype not in row.peak_flops
        else:
            assert row.flops(dtype) == pytest.approx(published * TERA, rel=3e-3)
    assert row.memory_bytes == memory_gb * 1e9
    assert row.bandwidth == pytest.approx(bandwidth_tb * TERA)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_ridge_is_the_published_one(name):
    row = device(name)
    assert row.ridge(half_precision(row)) == pytest.approx(PUBLISHED[name][3], abs=0.06)


@pytest.mark.parametrize(("name", "dtype"), SPARSE)
def test_no_sparse_rate_has_slipped_in(name, dtype):
    assert device(name).flops(dtype) == pytest.approx(SPARSE[name, dtype] * TERA / 2, rel=0.02)


@pytest.mark.parametrize("name", DEVICES)
def test_halving_the_width_doubles_the_rate_at_most(name):
    """A row that mixed a sparse and a dense rate would break this.

    One real exception: GeForce Blackwell halves float8 when it adds in float32, and does not halve float4.
    """
    row = device(name)
    ladder = ["tf32", half_precision(row), "float8", "float4"]
    for wider, narrower in zip(ladder, ladder[1:], strict=False):
        factor = 4 if (row.target, narrower) == ("sm_120", "float4") else 2
        if {wider, narrower} <= row.peak_flops.keys():
            assert row.flops(narrower) <= 1.02 * factor * row.flops(wider)


@pytest.mark.parametrize(("name", "dtype"), CLOCKS)
def test_the_peak_is_units_times_clock_times_flops_per_clock(name, dtype):
    units, clock, per_clock = CLOCKS[name, dtype]
    row = device(name)
    assert row.sms == units
    assert row.flops(dtype) == pytest.approx(units * clock * per_clock, rel=4e-3)


def test_the_mi355x_does_not_carry_the_rate_of_the_mi350x():
    """Some tables print 2300 TFLOP/s for it: that is 256 units at 2.2 GHz, the air-cooled card."""
    assert device("mi350x").flops("bf16") == pytest.approx(2300e12, rel=0.005)
    assert device("mi355x").flops("bf16") == pytest.approx(2.4 / 2.2 * device("mi350x").flops("bf16"), rel=1e-3)


def test_the_tpu_v5e_reads_at_half_of_what_old_tables_say():
    assert device("tpu-v5e").bandwidth < 0.83e12
    assert 1.97e14 / 8.2e11 == pytest.approx(device("tpu-v5e").ridge("bfloat16"))


@pytest.mark.parametrize("name", DEVICES)
def test_every_row_says_where_it_comes_from_and_what_it_can_link_to(name):
    row = device(name)
    assert len(row.source) > 10
    assert row.link and row.link_bandwidth > 1e10


@pytest.mark.parametrize("name", [name for name in DEVICES if not name.startswith("tpu")])
def test_a_block_cannot_take_more_shared_memory_than_a_multiprocessor_has(name):
    row = device(name)
    assert 0 < row.shared_memory_per_block_bytes <= row.shared_memory_bytes
    assert row.target.startswith(("sm_", "gfx"))


@pytest.mark.parametrize("name", [name for name in DEVICES if DEVICES[name].shared_memory_bandwidth])
def test_shared_memory_is_reckoned_at_the_clock_of_the_tensor_peak(name):
    """Bandwidth over 128 bytes gives the clock, at which the peak is a power of two a unit, as on all tensor cores.

    Where a paper prints the clock, it is the same one.
    """
    row = device(name)
    clock = row.shared_memory_bandwidth / (row.sms * 128)
    per_clock = row.flops(half_precision(row)) / (row.sms * clock)
    assert per_clock == pytest.approx(2 ** round(log2(per_clock)), rel=4e-3)
    for (known, _), (_, printed, _) in CLOCKS.items():
        if known == name:
            assert clock == pytest.approx(printed)


@pytest.mark.parametrize(("name", "bytes_per_clock"), [("a100-80gb", 5120), ("a100-40gb", 5120), ("mi300x", 16384)])
def test_the_l2_delivers_what_its_maker_prints_a_clock(name, bytes_per_clock):
    """NVIDIA A100 white paper; for the MI300X 2048 bytes a clock on each of eight dies."""
    row = device(name)
    assert row.l2_bandwidth / (row.shared_memory_bandwidth / (row.sms * 128)) == pytest.approx(bytes_per_clock)


@pytest.mark.parametrize("name", [name for name in DEVICES if DEVICES[name].l2_bandwidth])
def test_an_l2_is_slower_than_shared_memory_and_faster_than_main_memory(name):
    row = device(name)
    assert row.bandwidth < row.l2_bandwidth < row.shared_memory_bandwidth


def test_links_are_counted_each_way():
    """NVIDIA prints 900 GB/s for NVLink 4, both directions added up."""
    assert device("h100-sxm").link_bandwidth == 450e9


@pytest.mark.parametrize("spelling", ["rtx-4070", "RTX 4070", " rtx_4070 "])
def test_a_device_is_found_however_it_is_spelled(spelling):
    assert device(spelling) is DEVICES["rtx-4070"]


@pytest.mark.parametrize(
    ("asked", "offered"), [("h100", "h100-sxm or h100-pcie"), ("mi300", "mi300x"), ("b100", "b200")]
)
def test_an_unknown_device_names_its_neighbours(asked, offered):
    with pytest.raises(ValueError, match=offered):
        device(asked)


def test_a_name_unlike_any_other_lists_them_all():
    with pytest.raises(ValueError, match="tpu-v6e.*Device\\(...\\)"):
        device("abacus")


@pytest.mark.parametrize(("spelling", "name"), [("bf16", "bfloat16"), ("fp8", "float8"), ("float8_e4m3fn", "float8")])
def test_common_spellings_of_a_type_are_understood(spelling, name):
    assert device("h100-sxm").flops(spelling) == device("h100-sxm").flops(name)


def test_a_type_without_arithmetic_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="T4 has no arithmetic of its own for 'bf16'; it has float32, float16, int8"):
        device("t4").flops("bf16")


@pytest.mark.parametrize("change", [{"bandwidth": 0.0}, {"memory_bytes": float("nan")}, {"peak_flops": {"int8": -1.0}}])
def test_a_device_without_a_rate_is_refused(change):
    with pytest.raises(ValueError, match="must be a positive number"):
        replace(device("t4"), **change)


def test_a_device_can_be_a_key():
    assert len(set(DEVICES.values())) == len(DEVICES)
