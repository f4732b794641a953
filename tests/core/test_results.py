"""Recorded runs: what is kept, what is refused, and that an error says where to look. All runs here are made up."""

import json

import pytest

from llminfer.core.results import RESULTS, Point, RecordedRun, fold, latest_points, load_results, read_run

POINT = {
    "pair": "basics.rmsnorm",
    "implementation": "kernel",
    "dtype": "bfloat16",
    "shapes": "x 4x4",
    "passed": True,
    "error": 0.01,
    "allowed_error": 0.02,
    "seconds": 2e-6,
    "flops": 4e6,
    "bytes": 8e6,
}
RUN = {
    "schema": 1,
    "device": "Imaginary GPU (40 GB)",
    "driver": "1.2.3",
    "versions": {"torch": "0.0", "triton": "0.0"},
    "date": "2001-02-03",
    "commit": "abc1234",
    "interpreted": False,
    "points": [POINT],
}


def written(tmp_path, run):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(run))
    return path


def test_a_run_goes_into_the_folder_and_comes_back_whole(tmp_path):
    target = fold(written(tmp_path, RUN), tmp_path / "results")
    assert target.name == "imaginary-gpu-40-gb-2001-02-03.json"
    [run] = load_results(tmp_path / "results")
    assert run == read_run(tmp_path / "run.json")
    assert run.points == (Point(**POINT),)
    assert run.label == "Imaginary GPU (40 GB), 2001-02-03"


def test_the_rates_are_written_out(tmp_path):
    data = json.loads(fold(written(tmp_path, RUN), tmp_path / "results").read_text())
    assert data["points"][0]["flops_per_s"] == 4e6 / 2e-6
    assert data["points"][0]["bytes_per_s"] == 8e6 / 2e-6


def test_a_folded_file_folds_again_to_itself(tmp_path):
    once = fold(written(tmp_path, RUN), tmp_path / "results")
    before = once.read_text()
    assert fold(once, tmp_path / "results") == once
    assert once.read_text() == before


def test_a_run_of_the_interpreter_is_refused(tmp_path):
    with pytest.raises(ValueError, match="interpreter"):
        fold(written(tmp_path, RUN | {"interpreted": True}), tmp_path / "results")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("field", [name for name in RUN if name != "schema"])
def test_a_run_without_one_of_its_fields_is_refused_by_name(tmp_path, field):
    with pytest.raises(ValueError, match=rf"run\.json: {field} is missing"):
        fold(written(tmp_path, {name: value for name, value in RUN.items() if name != field}), tmp_path / "results")


@pytest.mark.parametrize("field", POINT)
def test_a_point_without_one_of_its_fields_is_refused_by_place_and_name(tmp_path, field):
    short = {name: value for name, value in POINT.items() if name != field}
    with pytest.raises(ValueError, match=rf"points\[1\]: {field} is missing"):
        read_run(written(tmp_path, RUN | {"points": [POINT, short]}))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"schema": 2}, "schema"),
        ({"schema": True}, "schema"),
        ({"schema": 1.0}, "schema"),
        ({"points": [POINT | {"flops": 10**400}]}, "flops"),
        ({"device": " "}, "device"),
        ({"date": "3 February"}, "date"),
        ({"date": "20010203"}, "date"),
        ({"date": "9999-01-01"}, "still to come"),
        ({"versions": []}, "versions"),
        ({"interpreted": "no"}, "interpreted"),
        ({"points": {}}, "points"),
        ({"points": []}, "no points"),
        ({"points": ["kernel"]}, r"points\[0\]"),
        ({"points": [POINT | {"seconds": 0}]}, "seconds"),
        ({"points": [POINT | {"seconds": True}]}, "seconds"),
        ({"points": [POINT | {"bytes": -1}]}, "bytes"),
        ({"points": [POINT | {"error": "small"}]}, "error"),
        ({"points": [POINT | {"error": float("nan")}]}, "error"),
        ({"points": [POINT | {"flops": float("inf")}]}, "flops"),
        ({"points": [POINT | {"passed": False}]}, "did not pass"),
    ],
)
def test_a_field_that_cannot_be_is_refused_by_name(tmp_path, changes, named):
    with pytest.raises(ValueError, match=named):
        fold(written(tmp_path, RUN | changes), tmp_path / "results")


@pytest.mark.parametrize("text", ["", "{", "[1]", "\xff", "[" * 100_000])
def test_a_file_that_is_no_run_is_refused(tmp_path, text):
    path = tmp_path / "run.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"run\.json"):
        read_run(path)


def test_a_kernel_that_failed_is_recorded_without_a_time(tmp_path):
    failed = POINT | {"passed": False, "seconds": None, "error": None}
    [run] = [read_run(written(tmp_path, RUN | {"points": [failed]}))]
    assert run.points[0].bytes_per_s is None


def run_of(device, day, *points):
    return RecordedRun(
        device, "1", {"torch": "0"}, day, "abc", False, tuple(Point(**POINT | point) for point in points)
    )


def test_the_newest_timed_point_of_each_device_counts():
    old = run_of("A", "2001-01-01", {"seconds": 3.0}, {"dtype": "float32", "seconds": 4.0})
    new = run_of("A", "2002-01-01", {"seconds": 1.0}, {"dtype": "float32", "passed": False, "seconds": None})
    other = run_of("B", "2001-06-01", {"seconds": 2.0}, {"pair": "basics.softmax"})
    found = latest_points((new, old, other), "basics.rmsnorm")
    assert {(run.label, point.dtype, point.seconds) for run, point in found} == {
        ("A, 2002-01-01", "bfloat16", 1.0),
        ("A, 2001-01-01", "float32", 4.0),
        ("B, 2001-06-01", "bfloat16", 2.0),
    }


def test_no_folder_means_no_results(tmp_path):
    assert load_results(tmp_path / "nowhere") == ()


def test_what_is_recorded_in_the_docs_is_of_this_form():
    for run in load_results():
        assert not run.interpreted
        assert (RESULTS / run.file_name).exists()
