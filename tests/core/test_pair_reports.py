"""What `llminfer pairs` shows, on one small pair that needs no kernel: torch stands in for it."""

import json

import ml_dtypes  # noqa: F401  (teaches NumPy the name "bfloat16")
import pytest
from rich.console import Console

pytest.importorskip("llminfer.core.triton_environment", exc_type=ImportError)  # torch or triton may be missing

from llminfer.core import pair_reports
from llminfer.core.compilation import CompiledKernel, CompileResult
from llminfer.core.cost import Cost
from llminfer.core.pair_reports import bench_pairs, check_pairs, compile_report, list_pairs
from llminfer.core.pairs import Pair
from llminfer.core.timing import Roof


def double(x):
    return x * 2


def triple(x):
    return x * 3


def pair(name, kernel):
    cases = lambda rng, size, dtype: {"x": rng.standard_normal((4, 8)).astype(dtype)}  # noqa: E731
    return Pair(name, double, kernel, double, cases, lambda x: Cost(x.size, x.nbytes, x.nbytes), ("float32", "float16"))


@pytest.fixture
def house(monkeypatch):
    """A house with a right and a wrong pair; gives the names that `tell` heard."""
    monkeypatch.setattr(
        pair_reports, "find_pairs", lambda which: (pair("basics.right", double), pair("basics.wrong", triple))
    )
    return []


def printed(report):
    console = Console(width=200)
    with console.capture() as capture:
        console.print(report.table())
    return capture.get()


def test_every_pair_is_listed_with_its_chapter_and_kernel():
    report = list_pairs("3.1")
    assert {"pair": "basics.rmsnorm", "chapter": "3.1", "module": "llminfer.basics.norms_triton"} in report.data
    assert "basics.rmsnorm" in printed(report)


def test_a_check_has_a_row_for_each_pair_and_dtype_and_says_what_failed(house):
    report = check_pairs(tell=house.append)
    assert house == ["basics.right", "basics.wrong"]
    assert [(row[0], row[1], row[-1].endswith("ok")) for row in report.rows] == [
        ("basics.right", "float32", True),
        ("basics.right", "float16", True),
        ("basics.wrong", "float32", False),
        ("basics.wrong", "float16", False),
    ]
    assert not report.passed
    assert "largest error" in printed(report)


def test_a_bench_shows_what_was_measured_and_what_is_only_a_bound(house):
    report = bench_pairs(roof=Roof("this machine", 1e15, 1e18), predict_on=["h100-sxm"], tell=house.append)
    assert report.columns[-1] == "bound on H100 SXM"
    assert report.passed
    assert house == ["basics.right", "basics.wrong"]


@pytest.mark.parametrize(("seconds", "text"), [(None, ""), (2.5, "2.50 s"), (0.762, "762 ms"), (1.57e-5, "15.7 µs")])
def test_times_have_three_digits_and_a_unit(seconds, text):
    assert pair_reports._time(seconds) == text


def test_a_bench_with_a_point_above_the_roof_fails(house):
    report = bench_pairs(roof=Roof("a slow one", 1.0, 1.0), predict_on=[])
    assert not report.passed
    assert any("faster than the roof allows" in note for note in report.notes)


def test_a_compile_report_has_a_column_for_each_target(house, monkeypatch):
    fits, large = CompiledKernel("k", 32, 0, 1024, 4), CompiledKernel("k", 64, 8, 200_000, 4)

    def compiled(pairs, targets, dtype):
        return (
            CompileResult("basics.right", "sm_90", "float16", (fits, large)),
            CompileResult("basics.right", "sm_89", "float16", (large,)),
            CompileResult("basics.wrong", "sm_90", "float16", error="ValueError: no"),
            CompileResult("basics.wrong", "sm_89", "float16", (fits,)),
        )

    monkeypatch.setattr(pair_reports, "compile_pairs", compiled)
    report = compile_report(targets=("sm_90", "sm_89"))
    assert report.rows[0] == ("basics.right\nk\nfloat16", "32/0/1024\n64/8/200000", "64/8/200000 too large")
    assert not report.passed
    assert any("ValueError: no" in note for note in report.notes)
    assert "not run" in report.title


@pytest.mark.parametrize("make", [list_pairs, check_pairs])
def test_a_report_is_plain_data(house, make):
    data = json.loads(json.dumps(make().as_dict(), allow_nan=False))
    assert set(data) == {"title", "passed", "results", "notes"}


@pytest.mark.parametrize("make", [list_pairs, check_pairs, bench_pairs, compile_report])
def test_a_chapter_without_pairs_says_so(monkeypatch, make):
    monkeypatch.setattr(pair_reports, "find_pairs", lambda which: ())
    monkeypatch.setattr(pair_reports, "pair_names", lambda which: ())
    report = make("3.2")
    assert "chapter 3.2 has no pairs yet" in printed(report)
    assert report.passed and report.data == []
