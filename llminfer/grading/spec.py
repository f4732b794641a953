"""What an exercise is: a public spec beside its starter, and the judge's side, which nobody but the judge loads.

exercises/3.1-basics/top_p.py            the starter: task in the docstring, bodies raise NotImplementedError
exercises/3.1-basics/top_p.toml          its spec: points, groups, hints, limits; students may read it
solutions/3.1-basics/top_p.py            the starter, solved
solutions/3.1-basics/top_p_judge.py      cases, reference, tolerance, mutants and honest variants
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

KINDS: tuple[str, ...] = ("number", "function", "class", "kernel", "short-answer")
DTYPE_RULES: tuple[str, ...] = ("same", "floating", "any")


@dataclass(frozen=True)
class Call:
    """One call in the life of an object."""

    method: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One question. arguments: by name, NumPy arrays and plain Python values.

    A class is made with `arguments` and goes through `calls` in order; what each returns, or the name of the exception
    that it raises, is compared.
    """

    arguments: Mapping[str, Any]
    calls: tuple[Call, ...] = ()
    label: str = ""


@dataclass(frozen=True)
class Tolerance:
    """relative: largest error allowed, as a fraction of the largest expected magnitude (0: exact).

    dtype: "same" as the reference's, any "floating" one, or "any" that holds the values.
    """

    relative: float = 1e-5
    dtype: str = "same"

    def __post_init__(self) -> None:
        if self.relative < 0:
            raise ValueError(f"relative must not be negative, got {self.relative}")
        if self.dtype not in DTYPE_RULES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPE_RULES)}, got {self.dtype!r}")


@dataclass(frozen=True)
class Variant:
    """Another program for the same task: the solution with `edits` (old, new), or a `source` of its own."""

    name: str
    edits: tuple[tuple[str, str], ...] = ()
    source: str = ""

    def applied_to(self, solution: str) -> str:
        """The variant's source. Raises ValueError if an edit's old text does not occur exactly once."""
        if self.source:
            return self.source
        for old, new in self.edits:
            if solution.count(old) != 1:
                raise ValueError(f"variant {self.name!r}: {old!r} occurs {solution.count(old)} times, needed once")
            solution = solution.replace(old, new)
        return solution


@dataclass(frozen=True)
class Mutant(Variant):
    """A plausible mistake, which must lose points, and what to tell the student who makes it.

    like: what the mistake computes, as a NumPy function of a case's arguments; without it the judge runs the mutated
    solution itself, which it cannot do with kernels.
    """

    hint: str = ""
    like: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Group:
    """Cases that earn `points` together, all or nothing. about: what they try. hint: all that a hidden group says."""

    name: str
    points: float
    visible: bool
    about: str
    hint: str = ""


@dataclass(frozen=True)
class Limits:
    """What one submission may use. seconds: for one case, by the wall clock; memory_mib: data of the process."""

    seconds: float = 5.0
    memory_mib: int = 1024


@dataclass(frozen=True)
class Exercise:
    """The public spec. section: of the book. stubs: library functions that are this exercise's answer, dotted names."""

    chapter: str
    name: str
    folder: Path
    title: str
    kind: str
    order: int
    section: str
    minutes: int
    difficulty: int
    groups: tuple[Group, ...]
    hints: tuple[str, ...] = ()
    limits: Limits = Limits()
    stubs: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """As in `llminfer grade 3.1/top_p`."""
        return f"{self.chapter}/{self.name}"

    @property
    def points(self) -> float:
        return sum(group.points for group in self.groups)

    @property
    def answer_in_library(self) -> bool:
        return bool(self.stubs)

    @property
    def file_name(self) -> str:
        return f"{self.name}.md" if self.kind == "short-answer" else f"{self.name}.py"

    @property
    def entry(self) -> str:
        """What the judge calls: the function of the file's name, the class of its name in CapWords, or `answer`."""
        if self.kind == "class":
            return "".join(word.capitalize() for word in self.name.split("_"))
        return "answer" if self.kind == "number" else self.name

    @property
    def starter(self) -> Path:
        return self.folder / self.file_name

    @property
    def solution(self) -> Path:
        return self.folder.parent.parent / "solutions" / self.folder.name / self.file_name

    @cached_property
    def judge_side(self) -> "JudgeSide":
        """Loaded when first asked for."""
        return load_judge_side(self)


@dataclass(frozen=True)
class JudgeSide:
    """What `NAME_judge.py` defines, in capitals or as functions.

    version: raised whenever the cases or what is accepted change. cases(group, rng) gives a group's cases. reference:
    called as the submission is; for kind "class" it is a class, for "kernel" it returns what each of `outputs` must
    hold, by name; for "number" it takes what draw(rng) gave and returns the answers by group name. accept(case, got,
    expected) replaces the comparison where a fixed tolerance cannot judge (samples): None, or what is wrong.
    """

    version: int
    reference: Callable[..., Any]
    cases: Callable[[str, np.random.Generator], Iterable[Case]] | None = None
    draw: Callable[[np.random.Generator], Mapping[str, Any]] | None = None
    tolerance: Tolerance = Tolerance()
    accept: Callable[[Case, Any, Any], str | None] | None = None
    outputs: tuple[str, ...] = ()
    mutants: tuple[Mutant, ...] = ()
    honest: tuple[Variant, ...] = ()


def course_folder() -> Path:
    """Where `exercises/` and `solutions/` lie: inside an installed wheel, or at the root of a checkout."""
    packaged = Path(__file__).with_name("course")
    return packaged if packaged.is_dir() else Path(__file__).parents[2]


def all_exercises(chapter: str | None = None, course: Path | None = None) -> tuple[Exercise, ...]:
    """Every exercise, or one chapter's, in the order in which they are meant to be done."""
    folders = sorted((course or course_folder()).glob("exercises/[0-9]*-*"))
    found = [load_exercise(path) for folder in folders for path in sorted(folder.glob("*.toml"))]
    kept = [exercise for exercise in found if chapter in (None, exercise.chapter)]
    return tuple(sorted(kept, key=lambda exercise: (exercise.chapter, exercise.order, exercise.name)))


def load_exercise(path: Path) -> Exercise:
    """The spec in one TOML file. Raises ValueError naming the file and the key that is missing, unknown or wrong."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        groups = tuple(_filled(Group, group) for group in table.pop("groups", []))
        limits = _filled(Limits, table.pop("limits", {}))
        lists = {key: tuple(table.pop(key, ())) for key in ("hints", "stubs")}
        given = {"chapter": path.parent.name.split("-")[0], "name": path.stem, "folder": path.parent, "groups": groups}
        exercise = _filled(Exercise, {**table, **given, **lists, "limits": limits})
        _check(exercise)
    except ValueError as error:  # TOML's own errors are ValueErrors
        raise ValueError(f"{path}: {error}") from error
    return exercise


def load_judge_side(exercise: Exercise) -> JudgeSide:
    """Run `NAME_judge.py`. Raises ValueError when it is absent (a hand-out has none) or lacks a part."""
    path = exercise.solution.with_name(f"{exercise.name}_judge.py")
    if not path.is_file():
        raise ValueError(f"{exercise.id}: there is no {path.name} beside the solution, so nothing can be judged here")
    module = _module(path)
    found = {}
    for field in fields(JudgeSide):
        for name in (field.name, field.name.upper(), "Reference" if field.name == "reference" else ""):
            if hasattr(module, name):
                found[field.name] = getattr(module, name)
    return _filled(JudgeSide, found)


def _module(path: Path) -> ModuleType:
    spec = spec_from_file_location(f"{path.parent.name}.{path.stem}", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _filled(kind: type, table: Mapping[str, Any]) -> Any:
    """The dataclass from a table. Raises ValueError for keys it does not know, TypeError's words for missing ones."""
    known = [field.name for field in fields(kind)]
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise ValueError(f"unknown key {', '.join(unknown)}; {kind.__name__.lower()} has {', '.join(known)}")
    try:
        return kind(**table)
    except TypeError as error:
        raise ValueError(str(error)) from error


def _check(exercise: Exercise) -> None:
    if exercise.kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {exercise.kind!r}")
    if not exercise.groups:
        raise ValueError("an exercise needs at least one [[groups]] table")
    names = [group.name for group in exercise.groups]
    if len(set(names)) != len(names):
        raise ValueError(f"group names must differ, got {', '.join(names)}")
    if any(group.points < 0 for group in exercise.groups):
        raise ValueError("points must not be negative")
    if not 1 <= exercise.difficulty <= 3:
        raise ValueError(f"difficulty must be 1, 2 or 3, got {exercise.difficulty}")
