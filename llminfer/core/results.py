"""Recorded results: what the kernels did on GPUs that the reader may not have, each with device, date and versions.

One JSON file is one run on one device (docs/results/README.md gives the form). A run is read as if it came from a
stranger: every field is checked, and an error names the file and the field.
"""

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from llminfer.core.pairs import PACKAGE

SCHEMA = 1
TOO_LARGE = 1e300  # nothing measured comes near, and every number below it fits a float
RESULTS = PACKAGE.parent / "docs" / "results"


@dataclass(frozen=True)
class Point:
    """One implementation of a pair on one case: does it agree, and how long did it take.

    error, allowed_error: of the trial nearest to its limit, against the reference in float64; None where not checked.
    seconds:              median, None where not timed (a kernel that does not agree is not timed).
    flops, bytes:         the least the idea must do, from its cost; the rates follow from them.
    """

    pair: str
    implementation: str
    dtype: str
    shapes: str
    passed: bool
    error: float | None
    allowed_error: float | None
    seconds: float | None
    flops: float
    bytes: float

    @property
    def flops_per_s(self) -> float | None:
        return self.flops / self.seconds if self.seconds else None

    @property
    def bytes_per_s(self) -> float | None:
        return self.bytes / self.seconds if self.seconds else None


@dataclass(frozen=True)
class RecordedRun:
    """All points of one run on one device. `interpreted` is true for a run that no GPU made; it is never kept."""

    device: str
    driver: str
    versions: dict[str, str]
    date: str
    commit: str
    interpreted: bool
    points: tuple[Point, ...]
    schema: int = SCHEMA

    @property
    def label(self) -> str:
        """How a picture names the source of a point: device and date."""
        return f"{self.device}, {self.date}"

    @property
    def file_name(self) -> str:
        """One file for each device and day: "nvidia-h200-2026-01-31.json"."""
        return f"{re.sub(r'[^a-z0-9]+', '-', self.device.lower()).strip('-')}-{self.date}.json"

    def as_dict(self) -> dict:
        """Plain data in the form of docs/results/README.md, the rates written out."""
        rates = ({"flops_per_s": point.flops_per_s, "bytes_per_s": point.bytes_per_s} for point in self.points)
        points = [asdict(point) | rate for point, rate in zip(self.points, rates, strict=True)]
        return asdict(self) | {"points": points}


def load_results(folder: Path = RESULTS) -> tuple[RecordedRun, ...]:
    """All recorded runs, oldest first; none where the folder is missing, as in an installed package.

    Raises ValueError naming file and field when one is not as it should be.
    """
    return tuple(sorted((read_run(path) for path in sorted(folder.glob("*.json"))), key=lambda run: run.date))


def latest_points(runs: tuple[RecordedRun, ...], pair: str) -> tuple[tuple[RecordedRun, Point], ...]:
    """The newest timed point of `pair` for each device, implementation, dtype and shapes, with the run it is from."""
    newest = {}
    for run in sorted(runs, key=lambda run: run.date):
        for point in run.points:
            if point.pair == pair and point.seconds is not None:
                newest[run.device, point.implementation, point.dtype, point.shapes] = run, point
    return tuple(newest.values())


def read_run(path: Path) -> RecordedRun:
    """One run from its file. Raises ValueError naming the file and the field that is missing or wrong."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # bad JSON, bad UTF-8, or brackets nested without end
        raise ValueError(f"{path.name} is not JSON: {error}") from error
    where = path.name
    if not isinstance(data, dict):
        raise ValueError(f"{where} must hold an object, got {type(data).__name__}")
    if type(data.get("schema")) is not int or data["schema"] != SCHEMA:  # true and 1.0 equal 1
        raise ValueError(f"{where}: schema must be {SCHEMA}, got {data.get('schema')!r}")
    found = {name: _field(data, name, test, wanted, where) for name, (test, wanted) in _RUN_FIELDS.items()}
    points = [_read_point(point, f"{where}: points[{place}]") for place, point in enumerate(found.pop("points"))]
    return RecordedRun(**found, points=tuple(points))


def fold(path: Path, folder: Path = RESULTS) -> Path:
    """Put the run of `path` among the recorded results; gives the file it now has there.

    A second run of the same device and day takes the place of the first. Raises ValueError for a run without device,
    date or points, one that the interpreter made, one from the future, or a file that `read_run` refuses.
    """
    run = read_run(path)
    if run.interpreted:
        raise ValueError(f"{path.name} was made by Triton's interpreter; only runs on a GPU are recorded")
    if not run.points:
        raise ValueError(f"{path.name} has no points; the run recorded nothing")
    if run.date > date.today().isoformat():
        raise ValueError(f"{path.name} is dated {run.date}, which is still to come; set the clock of that machine")
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / run.file_name
    target.write_text(json.dumps(run.as_dict(), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return target


def _read_point(data: object, where: str) -> Point:
    if not isinstance(data, dict):
        raise ValueError(f"{where} must be an object, got {data!r}")
    point = Point(**{name: _field(data, name, test, wanted, where) for name, (test, wanted) in _POINT_FIELDS.items()})
    if point.seconds is not None and not point.passed:
        raise ValueError(f"{where}: has seconds although it did not pass its check; a wrong kernel has no time")
    return point


def _field(data: dict, name: str, test: Callable[[object], bool], wanted: str, where: str) -> object:
    if name not in data:
        raise ValueError(f"{where}: {name} is missing; expected {wanted}")
    if not test(data[name]):
        raise ValueError(f"{where}: {name} must be {wanted}, got {data[name]!r}")
    return data[name]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_date(value: object) -> bool:
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < TOO_LARGE


def _is_number_or_none(value: object) -> bool:
    return value is None or _is_number(value)


def _is_texts(value: object) -> bool:
    return isinstance(value, dict) and bool(value) and all(map(_is_text, value)) and all(map(_is_text, value.values()))


_TEXT = (_is_text, "a text that is not empty")
_BOOLEAN = (lambda value: isinstance(value, bool), "true or false")
_NUMBER = (_is_number, "a finite number of at least 0")
_NUMBER_OR_NONE = (_is_number_or_none, "a finite number of at least 0, or null")
_RUN_FIELDS = {
    "device": _TEXT,
    "driver": _TEXT,
    "versions": (_is_texts, "an object of package names and versions"),
    "date": (_is_date, "a day such as 2026-01-31"),
    "commit": _TEXT,
    "interpreted": _BOOLEAN,
    "points": (lambda value: isinstance(value, list), "a list of points"),
}
_POINT_FIELDS = {
    "pair": _TEXT,
    "implementation": _TEXT,
    "dtype": _TEXT,
    "shapes": _TEXT,
    "passed": _BOOLEAN,
    "error": _NUMBER_OR_NONE,
    "allowed_error": _NUMBER_OR_NONE,
    "seconds": (lambda value: value is None or (_is_number(value) and value > 0), "a number above 0, or null"),
    "flops": _NUMBER,
    "bytes": _NUMBER,
}
