"""What a grading run found: plain data that goes to JSON and comes back, the same for the same submission.

Only `seconds` may differ between two runs. Nothing here knows how anything was judged.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How a call, a group or an exercise ended. Only OK earns points; absence of failure is not OK."""

    OK = "ok"
    WRONG = "wrong"
    SHAPE = "shape"
    DTYPE = "dtype"
    NONFINITE = "nonfinite"
    MUTATED_INPUT = "mutated_input"
    EXCEPTION = "exception"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    KILLED = "killed"
    EXIT = "exit"
    IMPORT_ERROR = "import_error"
    MISSING = "missing"
    NOT_DONE = "not_done"  # the body still raises NotImplementedError
    FORBIDDEN_IMPORT = "forbidden_import"
    BAD_REPLY = "bad_reply"
    OUTPUT_LIMIT = "output_limit"
    GRADER_ERROR = "grader_error"  # ours, not the student's: flagged, and the run exits with 2
    COLLECTED = "collected"  # a short answer, which people read
    NOT_RUN = "not_run"  # a hidden group without the secret


@dataclass(frozen=True)
class Failure:
    """The one failing case that is shown, made as small as it could be. Texts are empty where they do not apply.

    message: one sentence. reproduction: lines for a Python prompt beside the student's file. expected_at, got_at,
    error, allowed: the values at worst_index, how far they are apart and how far they may be. limit: which limit was
    met and how much was used.
    """

    group: str
    status: Status
    message: str
    label: str = ""
    reproduction: str = ""
    expected: str = ""
    got: str = ""
    worst_index: tuple[int, ...] | None = None
    expected_at: str = ""
    got_at: str = ""
    mismatch_map: str = ""
    error: float | None = None
    allowed: float | None = None
    cause: str = ""
    section: str = ""
    shrunk: bool = False
    limit: str = ""
    traceback: str = ""
    printed: str = ""


@dataclass(frozen=True)
class GroupResult:
    """passed of total cases. note: what may be said about the group; all that a hidden one says."""

    name: str
    visible: bool
    points: float
    max_points: float
    passed: int
    total: int
    status: Status
    note: str = ""


@dataclass(frozen=True)
class ExerciseResult:
    """version: of the tests. isolation: a sentence about what held the student's code. fingerprint: versions here."""

    exercise: str
    title: str
    version: int
    status: Status
    points: float
    max_points: float
    groups: tuple[GroupResult, ...] = ()
    failure: Failure | None = None
    seconds: float = 0.0
    isolation: str = ""
    fingerprint: Mapping[str, str] = field(default_factory=dict)

    @property
    def visible_right(self) -> bool:
        """Every visible group earned its points: the success of a student's own run."""
        return all(group.status in (Status.OK, Status.COLLECTED) for group in self.groups if group.visible)

    @property
    def hidden_points(self) -> float:
        """Points of the groups that were not run because the secret is the teacher's."""
        return sum(group.max_points for group in self.groups if group.status is Status.NOT_RUN)

    def to_json(self) -> dict[str, Any]:
        """Plain data for `json.dumps`."""
        return json.loads(json.dumps(asdict(self), allow_nan=False))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "ExerciseResult":
        """The result again. Raises ValueError naming what is unknown, missing or wrong."""
        groups = tuple(_filled(GroupResult, group) for group in data.get("groups", ()))
        failure = data.get("failure") and _filled(Failure, data["failure"])
        return _filled(cls, {**data, "groups": groups, "failure": failure})


def _filled(kind: type, data: Mapping[str, Any]) -> Any:
    unknown = sorted(set(data) - {entry.name for entry in fields(kind)})
    if unknown:
        raise ValueError(f"unknown field {', '.join(unknown)} in a {kind.__name__}")
    values = dict(data, status=Status(data.get("status")))
    if values.get("worst_index") is not None:
        values["worst_index"] = tuple(values["worst_index"])
    try:
        return kind(**values)
    except TypeError as problem:
        raise ValueError(str(problem)) from problem
