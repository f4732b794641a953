"""Reads `course.toml`. What is unknown, missing or of the wrong type is refused by the name of its table and key."""

import csv
import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from llminfer.grading.course import FILE_NAME, Ceilings, Course, Extension, GradescopeSettings, Homework, Override
from llminfer.grading.late import LatePolicy
from llminfer.grading.spec import Exercise, all_exercises

TOP_KEYS = ("name", "secret", "roster", "late", "limits", "homework")
HOMEWORK_KEYS = (
    *("name", "title", "exercises", "points", "opens", "due", "late", "extension", "override", "marks", "canvas"),
    "gradescope",
)


def load_course(path: Path) -> Course:
    """The course in `path`, a `course.toml` or its folder. Raises ValueError naming what is wrong and where."""
    path = path / FILE_NAME if path.is_dir() else path
    if not path.is_file():
        raise ValueError(f"there is no {path}; `llminfer class init FOLDER` makes one, --course names another")
    try:
        return _course(tomllib.loads(path.read_text(encoding="utf-8")), path.parent)
    except ValueError as problem:  # TOML's own errors are ValueErrors
        raise ValueError(f"{path}: {problem}") from problem


def _course(table: Mapping[str, Any], folder: Path) -> Course:
    _check_keys(table, TOP_KEYS, "the top of the file")
    for key in ("name", "secret", "roster"):
        _check_type(table.get(key, ""), str, f"the top of the file: {key}")
    late = _filled(LatePolicy, table.get("late", {}), "[late]")
    ceilings = _filled(Ceilings, table.get("limits", {}), "[limits]")
    homework = tuple(_homework(each, late, ceilings, folder) for each in table.get("homework", []))
    _check_differ([each.name for each in homework], "homework names")
    roster = folder / table["roster"] if table.get("roster") else None
    secret = folder / table.get("secret", "class-secret")
    return Course(folder, homework, table.get("name", ""), ceilings, secret, roster)


def _homework(table: Mapping[str, Any], late: LatePolicy, ceilings: Ceilings, folder: Path) -> Homework:
    name = table.get("name")
    if not isinstance(name, str) or not name.replace("-", "").replace("_", "").isalnum():
        raise ValueError(f"[[homework]] needs a name of letters, digits, - and _, such as hw1, got {name!r}")
    where = f"homework {name!r}"
    _check_keys(table, HOMEWORK_KEYS, where)
    exercises = tuple(map(ceilings.over, _exercises(table.get("exercises", []), where)))
    decided = [_filled(Override, each, f"{where}, override") for each in table.get("override", [])]
    parts = {
        "exercises": exercises,
        "points": _points(table.get("points", {}), exercises, where),
        "late": _filled(LatePolicy, table["late"], f"{where}, late") if "late" in table else late,
        "extensions": tuple(_filled(Extension, each, f"{where}, extension") for each in table.get("extension", [])),
        "overrides": (*decided, *_marks(table.get("marks"), folder, where)),
        "gradescope": _filled(GradescopeSettings, table.get("gradescope", {}), f"{where}, gradescope"),
    }
    plain = {key: table[key] for key in ("name", "title", "opens", "due", "canvas") if key in table}
    homework = _filled(Homework, plain, where, parts)
    _check_times(homework, where)
    _check_decided(homework, where)
    return homework


def _exercises(asked: list[str], where: str) -> tuple[Exercise, ...]:
    """Exercises by id, or a whole chapter by its number."""
    _check_type(asked, list, f"{where}: exercises")
    known = {exercise.id: exercise for exercise in all_exercises()}
    found: list[Exercise] = []
    for name in asked:
        chapter = [exercise for exercise in known.values() if exercise.chapter == name]
        if name not in known and not chapter:
            near = difflib.get_close_matches(str(name), known, n=3)
            raise ValueError(f"{where}: there is no exercise {name!r}" + (f"; near: {', '.join(near)}" if near else ""))
        found += chapter or [known[name]]
    if not found:
        raise ValueError(f'{where}: exercises is empty; write exercises = ["3.1"], or single ones such as "3.1/NAME"')
    # A submission is told apart by the names of its files, so that two exercises of one name cannot be in one homework.
    _check_differ([exercise.name for exercise in found], f"{where}: exercises")
    return tuple(found)


def _points(table: Mapping[str, float], exercises: tuple[Exercise, ...], where: str) -> dict[str, float]:
    _check_keys(table, [exercise.id for exercise in exercises], f"{where}, points")
    for name, points in table.items():
        _check_type(points, float, f"{where}: points of {name}")
        if not 0 <= points < float("inf"):
            raise ValueError(f"{where}: points of {name} must be at least 0, got {points}")
    return dict(table)


def _marks(name: str | None, folder: Path, where: str) -> list[Override]:
    """Points given by hand, in the form of `to-mark.csv`; lines without points are left out."""
    if name is None:
        return []
    path = folder / name
    with path.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.DictReader(lines)
        missing = {"student", "exercise", "points", "reason"} - set(reader.fieldnames or ())
        if missing:
            raise ValueError(f"{where}: {path} lacks the column {', '.join(sorted(missing))}")
        return [_mark(row, f"{where}: {path}, line {reader.line_num}") for row in reader if row["points"]]


def _mark(row: Mapping[str, str], where: str) -> Override:
    try:
        points = float(row["points"])
    except ValueError:
        raise ValueError(f"{where}: points must be a number, got {row['points']!r}") from None
    return Override(row["student"], points, row["reason"] or "marked by hand", row["exercise"] or None)


def _check_times(homework: Homework, where: str) -> None:
    times = {"opens": homework.opens, "due": homework.due}
    times |= {f"due of the extension for {each.student}": each.due for each in homework.extensions}
    for name, time in times.items():
        if time is not None and time.tzinfo is None:
            raise ValueError(f"{where}: {name} needs its offset, such as 2027-03-01T23:59:00+01:00, got {time}")
    if homework.opens and homework.due and not homework.opens < homework.due:
        raise ValueError(f"{where}: opens {homework.opens} must come before due {homework.due}")


def _check_decided(homework: Homework, where: str) -> None:
    ids = [exercise.id for exercise in homework.exercises]
    for decided in (*homework.extensions, *homework.overrides):
        if not decided.reason.strip():
            raise ValueError(f"{where}: what was decided for {decided.student} needs a reason, which the student reads")
    for override in homework.overrides:
        if override.exercise not in (None, *ids):
            raise ValueError(f"{where}: override for {override.student}: {override.exercise!r} is not in this homework")
        if not 0 <= override.points < float("inf"):
            raise ValueError(f"{where}: override for {override.student}: points must be at least 0")


def _filled(kind: type, table: Mapping[str, Any], where: str, parts: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """The dataclass from a table, whose values are checked, and from parts that are made already."""
    entries = {entry.name: entry.type for entry in fields(kind)}
    _check_type(table, dict, where)
    _check_keys(table, entries, where)
    for key, value in table.items():
        _check_type(value, entries[key], f"{where}: {key}")
    try:
        return kind(**table, **parts)
    except (TypeError, ValueError) as problem:
        raise ValueError(f"{where}: {problem}") from problem


def _check_type(value: Any, kind: Any, where: str) -> None:
    """An int is a float too, as in Python's annotations; a truth value is no number."""
    fits = isinstance(value, kind) or (isinstance(value, int) and float in (kind, *get_args(kind)))
    if isinstance(value, bool) or not fits:
        raise ValueError(f"{where} must be {getattr(kind, '__name__', kind)}, got {value!r}")


def _check_keys(table: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            raise ValueError(f"{where}: unknown key {key!r}; {hint}")


def _check_differ(names: list[str], what: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{what} must differ, {', '.join(twice)} comes twice")
