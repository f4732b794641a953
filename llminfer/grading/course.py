"""A course: its homework, what that is worth and when it is due, and what was decided for single students.

`course_file` reads it from `course.toml`. The class secret and the class list lie in files of their own.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from llminfer.grading.late import LatePolicy
from llminfer.grading.rosters import Roster, load_roster
from llminfer.grading.spec import Exercise

FILE_NAME = "course.toml"
HIDDEN_SHOWN = ("visible", "after_due_date", "after_published", "hidden")


@dataclass(frozen=True)
class Extension:
    """One student's own due date, and why."""

    student: str
    due: datetime
    reason: str


@dataclass(frozen=True)
class Override:
    """Points that a person decided, and why: for one exercise, or (exercise None) for the homework after lateness."""

    student: str
    points: float
    reason: str
    exercise: str | None = None


@dataclass(frozen=True)
class GradescopeSettings:
    """What the assignment's autograder container is set to, and when students see the hidden groups' points."""

    memory_mb: int = 768
    cpus: float = 0.5
    minutes: float = 10
    hidden_groups: str = "after_published"

    def __post_init__(self) -> None:
        if self.hidden_groups not in HIDDEN_SHOWN:
            raise ValueError(f"hidden_groups must be one of {', '.join(HIDDEN_SHOWN)}, got {self.hidden_groups!r}")
        if not 0 < self.minutes <= 40:
            raise ValueError(f"minutes must lie above 0 and at most at 40, Gradescope's limit, got {self.minutes}")


@dataclass(frozen=True)
class Ceilings:
    """The most that any exercise of the course may use, whatever its own limits; None leaves those alone."""

    seconds: float | None = None
    memory_mib: int | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be above 0, got {value}")

    def over(self, exercise: Exercise) -> Exercise:
        """The exercise with limits that are no higher."""
        set_here = {name: value for name, value in asdict(self).items() if value is not None}
        lowered = {name: min(value, getattr(exercise.limits, name)) for name, value in set_here.items()}
        return replace(exercise, limits=replace(exercise.limits, **lowered))


@dataclass(frozen=True)
class Homework:
    """One homework. exercises: with the limits that hold here. points: by exercise id, what each is worth here.

    Times carry their offset.
    """

    name: str
    exercises: tuple[Exercise, ...]
    title: str = ""
    points: Mapping[str, float] = field(default_factory=dict, hash=False)
    opens: datetime | None = None
    due: datetime | None = None
    late: LatePolicy = LatePolicy()
    extensions: tuple[Extension, ...] = ()
    overrides: tuple[Override, ...] = ()
    canvas: str = ""
    gradescope: GradescopeSettings = GradescopeSettings()

    @property
    def heading(self) -> str:
        return self.title or self.name

    def worth(self, exercise: Exercise) -> float:
        """What the exercise is worth in this homework."""
        return self.points.get(exercise.id, exercise.points)

    @property
    def max_points(self) -> float:
        return sum(self.worth(exercise) for exercise in self.exercises)

    def due_for(self, student: str) -> datetime | None:
        """The latest of the due date and the student's extensions."""
        own = [extension.due for extension in self.extensions if extension.student == student]
        return max([*own, *([self.due] if self.due else [])], default=None)


@dataclass(frozen=True)
class Course:
    """folder: where `course.toml` lies; the files that it names are relative to it."""

    folder: Path
    homework: tuple[Homework, ...]
    name: str = ""
    ceilings: Ceilings = Ceilings()
    secret_file: Path | None = None
    roster_file: Path | None = None

    def find(self, name: str | None) -> Homework:
        """A homework by name; without a name the only one there is. Raises ValueError naming those there are."""
        names = [homework.name for homework in self.homework]
        if name is None and len(names) == 1:
            return self.homework[0]
        if name not in names:
            asked = f"there is no homework {name!r}" if name else "which homework?"
            raise ValueError(f"{asked}; {self.folder / FILE_NAME} has {', '.join(names) or 'none'}")
        return self.homework[names.index(name)]

    @cached_property
    def roster(self) -> Roster | None:
        return load_roster(self.roster_file) if self.roster_file else None

    @property
    def secret(self) -> bytes:
        """What the hidden inputs are drawn with. Raises ValueError if there is none, or if others can read it."""
        if self.secret_file is None or not self.secret_file.is_file():
            raise ValueError(
                f"there is no class secret at {self.secret_file}, so hidden groups cannot be drawn; "
                "`llminfer class init` makes one, or copy the one that the class began with"
            )
        if os.name == "posix" and self.secret_file.stat().st_mode & 0o077:
            raise ValueError(f"others can read {self.secret_file}; run: chmod 600 {self.secret_file}")
        secret = self.secret_file.read_bytes().strip()
        if len(secret) < 32:
            raise ValueError(f"{self.secret_file} holds {len(secret)} characters; a secret has at least 32")
        return secret
