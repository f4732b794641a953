"""What is said of this machine, and how other systems' answers are read."""

import os
import subprocess
import sys

import pytest

from llminfer.core import host


def test_this_machine_has_a_name_memory_and_processors():
    assert host.cpu_name()
    assert host.memory_bytes() > 2**28
    assert 1 <= host.usable_cpus() <= os.cpu_count()


def test_trade_marks_are_left_out_of_the_name(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(host, "_sysctl", lambda name: "Intel(R) Core(TM) i7-8850H CPU @ 2.60GHz")
    assert host.cpu_name() == "Intel Core i7-8850H @ 2.60GHz"


@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_thread_count_is_what_threadpoolctl_finds_in_blas(threads):
    pytest.importorskip("threadpoolctl")
    question = (
        "import numpy, threadpoolctl; from llminfer.core.host import blas_threads;"
        "pools = [p for p in threadpoolctl.threadpool_info() if p['user_api'] == 'blas'];"
        "print(blas_threads(), *{p['num_threads'] for p in pools})"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads}
    answer = subprocess.run(
        [sys.executable, "-c", question], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    if len(answer) != 2:
        pytest.skip("threadpoolctl knows no BLAS here")
    assert answer[0] == answer[1]


def test_no_variable_means_every_usable_processor(monkeypatch):
    for name in host.BLAS_THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert host.blas_threads() == host.usable_cpus()


@pytest.mark.parametrize("nonsense", ["", "many", "0", "-2"])
def test_a_variable_without_a_number_is_ignored_as_blas_does(monkeypatch, nonsense):
    for name in host.BLAS_THREAD_VARIABLES:
        monkeypatch.setenv(name, nonsense)
    assert host.blas_threads() == host.usable_cpus()


def test_a_container_may_hold_less_memory_than_the_machine(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(host, "_read", lambda path: "2147483648" if path.name == "memory.max" else "")
    assert host.memory_bytes() == 2**31


def test_the_largest_cache_is_the_last_level(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    answers = {"hw.perflevel0.l2cachesize": "16777216", "hw.l2cachesize": "4194304", "hw.l3cachesize": ""}
    monkeypatch.setattr(host, "_sysctl", answers.get)
    assert host.last_level_cache_bytes() == 16 * 2**20


def test_an_unknown_cache_is_none(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(host, "_sysctl", lambda name: "")
    assert host.last_level_cache_bytes() is None
