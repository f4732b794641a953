"""How this machine is measured and how the result is kept. No test looks at how fast the machine is."""

import json
from dataclasses import replace

import pytest

from llminfer.core import host, measurement
from llminfer.core.hardware import Device
from llminfer.core.measurement import (
    MeasuredDevice,
    fastest_s,
    gemv_bandwidth,
    measure_device,
    processor_share,
    working_set_bytes,
)


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("LLMINFER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "devices"


@pytest.fixture
def hurried(monkeypatch):
    """One run of everything on a small array: the same path in a fraction of a second."""
    monkeypatch.setattr(measurement, "working_set_bytes", lambda: 2**22)
    monkeypatch.setattr(measurement, "fastest_s", lambda action, *_, **__: fastest_s(action, 0.0, 1))
    monkeypatch.setattr(measurement, "processor_share", lambda: 1.0)


@pytest.fixture
def measured_once() -> MeasuredDevice:
    return MeasuredDevice(
        name="a machine",
        peak_flops={"float32": 1e11},
        memory_bytes=8e9,
        bandwidth=2e10,
        source="a test",
        engine="numpy",
        threads=2,
        working_set_bytes=2**28,
        copy_bandwidth=2e10,
        read_bandwidth=1e10,
        gemv_bandwidth=1e10,
        call_overhead_s=5e-7,
    )


@pytest.fixture
def counted(monkeypatch, measured_once):
    """Measuring is replaced by a counter of how often it was asked for."""
    calls = []
    monkeypatch.setattr(measurement, "_measure_numpy", lambda: calls.append(1) or measured_once)
    return calls


def test_numpy_on_this_machine_has_bandwidths_rates_and_an_overhead(hurried):
    found = measure_device()
    assert isinstance(found, Device)
    assert min(found.copy_bandwidth, found.read_bandwidth, found.gemv_bandwidth) > 0
    assert set(found.peak_flops) == {"float32", "float64"}
    assert found.ridge("float32") > 0
    assert 0 < found.call_overhead_s < 1e-3
    assert 0 < found.processor_share <= 1
    assert found.launch_overhead_s is None
    assert found.threads == host.blas_threads()


@pytest.mark.parametrize("best", ["copy", "read", "gemv"])
def test_no_measured_bandwidth_lies_above_the_roof(hurried, monkeypatch, best):
    for name in ("copy", "read", "gemv"):
        speed = 3e9 if name == best else 2e9
        monkeypatch.setattr(measurement, f"_{name}_bandwidth", lambda *_, speed=speed: speed)
    monkeypatch.setattr(measurement, "_gemm_flops", lambda dtype: 1e9)
    assert measure_device().bandwidth == 3e9


def test_torch_on_this_cpu_also_multiplies_half_precision(hurried, monkeypatch):
    pytest.importorskip("torch")
    from llminfer.core import measurement_torch

    monkeypatch.setattr(measurement_torch, "working_set_bytes", lambda: 2**22)
    hurry = measurement_torch._fastest_s
    monkeypatch.setattr(measurement_torch, "_fastest_s", lambda action, where, *_, **__: hurry(action, where, 0.0, 1))
    found = measure_device("torch")
    assert set(found.peak_flops) == {"float32", "bfloat16", "float16"}
    assert found.bandwidth > 0
    assert found == measure_device("torch")


def test_a_second_call_reads_what_the_first_one_kept(counted):
    assert measure_device() == measure_device()
    assert len(counted) == 1


def test_refresh_measures_anew(counted):
    measure_device()
    measure_device(refresh=True)
    assert len(counted) == 2


def test_another_number_of_threads_is_another_measurement(counted, monkeypatch):
    for threads in (1, 2):
        monkeypatch.setattr(host, "blas_threads", lambda threads=threads: threads)
        measure_device()
    assert len(counted) == 2


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\xff\xfe\x00binary",
        b"[]",
        b'{"circumstances": {}}',
        lambda text: text[: len(text) // 2],
        lambda text: text.replace(b'"bandwidth": 20000000000.0', b'"bandwidth": -1.0'),
        lambda text: text.replace(b'"bandwidth": 20000000000.0', b'"bandwidth": NaN'),
        lambda text: text.replace(b'"bandwidth": 20000000000.0', b'"bandwidth": "fast"'),
        b"[" * 100_000,
        lambda text: text.replace(b'2,\n    "working_set_bytes"', b'"many",\n    "working_set_bytes"'),
        lambda text: text.replace(b'"copy_bandwidth": 20000000000.0', b'"copy_bandwidth": "fast"'),
        lambda text: text.replace(b'"read_bandwidth": 10000000000.0', b'"read_bandwidth": NaN'),
        lambda text: text.replace(b'"call_overhead_s": 5e-07', b'"call_overhead_s": -1'),
        lambda text: text.replace(b'"processor_share": 1.0', b'"processor_share": Infinity'),
        lambda text: text.replace(b'"threads"', b'"threats"'),
        lambda text: text.replace(b'"cpu": "', b'"cpu": "not '),
    ],
)
def test_a_damaged_file_is_measured_over_and_mended(counted, own_cache, damage):
    measure_device()
    (file,) = own_cache.iterdir()
    sound = file.read_bytes()
    broken = damage(sound) if callable(damage) else damage
    assert broken != sound
    file.write_bytes(broken)
    measure_device()
    assert len(counted) == 2
    assert file.read_bytes() == sound


def test_what_is_kept_is_plain_json_that_says_where_it_was_measured(counted, own_cache, measured_once):
    measure_device()
    (file,) = own_cache.iterdir()
    stored = json.loads(file.read_text())
    assert stored["circumstances"]["cpu"] == host.cpu_name()
    assert MeasuredDevice(**stored["device"]) == measured_once


def test_a_folder_that_cannot_be_written_costs_only_time(counted, tmp_path, monkeypatch, measured_once):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LLMINFER_CACHE", str(tmp_path / "file"))
    assert measure_device() == measured_once
    assert measure_device() == measured_once
    assert len(counted) == 2


def test_an_unknown_engine_is_refused():
    with pytest.raises(ValueError, match='"numpy", "torch" or "cuda", got \'jax\''):
        measurement.measure_device.__wrapped__("jax")


def test_a_gpu_is_only_measured_where_there_is_one():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(ValueError, match='needs a GPU that torch can see; use "numpy"'):
        measure_device("cuda")


def test_a_measured_device_checks_its_rates_like_any_other(measured_once):
    with pytest.raises(ValueError, match="bandwidth of 'a machine'"):
        replace(measured_once, bandwidth=0.0)


def scripted_clock(monkeypatch, durations):
    """A clock on which the runs after the first take `durations`."""
    instants, now = [], 0.0
    for duration in durations:
        instants += [now, now + duration]
        now += duration
    ticks = iter(instants)
    monkeypatch.setattr(measurement, "perf_counter", lambda: next(ticks))


def test_the_fastest_run_counts_and_the_first_only_warms_up(monkeypatch):
    scripted_clock(monkeypatch, [3.0, 1.0, 2.0])
    runs = []
    assert fastest_s(lambda: runs.append(1), seconds=5.0, at_least=1) == 1.0
    assert len(runs) == 4


def test_slow_runs_are_still_repeated_a_few_times(monkeypatch):
    scripted_clock(monkeypatch, [9.0, 8.0, 7.0])
    assert fastest_s(lambda: None, seconds=0.3, at_least=3) == 7.0


@pytest.mark.parametrize(
    ("cache_mib", "memory_gib", "expected_mib"),
    [(None, 16, 256), (32, 16, 256), (128, 16, 384), (300, 32, 900), (512, 64, 1024), (32, 1, 128)],
)
def test_the_array_is_larger_than_the_cache_and_small_beside_the_memory(
    monkeypatch, cache_mib, memory_gib, expected_mib
):
    monkeypatch.setattr(host, "last_level_cache_bytes", lambda: cache_mib and cache_mib * 2**20)
    monkeypatch.setattr(host, "memory_bytes", lambda: memory_gib * 2**30)
    assert working_set_bytes() == expected_mib * 2**20


def test_the_bandwidth_of_a_small_matrix_can_be_asked_for():
    assert gemv_bandwidth(2**20, seconds=0.0) > 0


def test_a_matrix_too_small_to_tell_from_the_call_is_refused():
    with pytest.raises(ValueError, match="at least 65536, got 1024"):
        gemv_bandwidth(1024)


def test_a_thread_that_is_kept_waiting_has_less_than_a_core(monkeypatch):
    instants = iter([0.0, 0.1, 0.2, 0.2])
    used = iter([5.0, 5.05])
    monkeypatch.setattr(measurement, "perf_counter", lambda: next(instants))
    monkeypatch.setattr(measurement, "thread_time", lambda: next(used))
    assert processor_share(0.2) == pytest.approx(0.25)


def test_a_disturbed_measurement_is_returned_but_not_kept(hurried, monkeypatch, tmp_path):
    monkeypatch.setenv("LLMINFER_CACHE", str(tmp_path))
    monkeypatch.setattr(measurement, "processor_share", lambda: 0.3)
    assert measure_device().processor_share == 0.3
    assert not list(tmp_path.rglob("*.json"))
