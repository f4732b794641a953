"""What changed between two runs of a homework: whose points, by how much, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]
"""`run.json`, as `records` makes it."""


@dataclass(frozen=True)
class Change:
    """One number that differs. exercise: or "total"."""

    student: str
    exercise: str
    before: float
    after: float
    why: str

    @property
    def falls(self) -> bool:
        return self.after < self.before


def differences(before: Record, after: Record) -> list[Change]:
    """Every score and total that differs, by student. Who is in one run only is compared to no points."""
    found = []
    for student in sorted({*before["students"], *after["students"]}):
        old, new = (run["students"].get(student, {}) for run in (before, after))
        for exercise in sorted({*old.get("scores", {}), *new.get("scores", {})}):
            was, is_ = (_points(row.get("scores", {}).get(exercise)) for row in (old, new))
            if was != is_:
                found.append(Change(student, exercise, was, is_, _why(exercise, old, new, before, after)))
        was, is_ = old.get("total", 0.0), new.get("total", 0.0)
        if was != is_:
            found.append(Change(student, "total", was, is_, _why_total(old, new)))
    return found


def _points(score: Mapping[str, Any] | None) -> float:
    return score["points"] if score else 0.0


def _why(exercise: str, old: Record, new: Record, before: Record, after: Record) -> str:
    """Everything that the result depends on and that is not the same."""
    if not old or not new:
        return "not in the run before" if not old else "no longer in the run"
    tests, now = (run["exercises"].get(exercise) for run in (before, after))
    if tests is None or now is None:
        return "not in the homework before" if tests is None else "no longer in the homework"
    reasons = []
    if old["files"].get(exercise) != new["files"].get(exercise):
        reasons.append("another submission")
    if tests["version"] != now["version"]:
        reasons.append(f"tests of version {tests['version']} -> {now['version']}")
    elif tests["tests"] != now["tests"]:
        reasons.append(f"tests changed, still called version {now['version']}")
    if tests["worth"] != now["worth"]:
        reasons.append(f"worth {tests['worth']:g} -> {now['worth']:g}")
    was, is_ = (row["scores"].get(exercise, {}).get("reason", "") for row in (old, new))
    if was != is_:
        reasons.append(is_ or "override taken back")
    reasons += [f"another {what}" for what in ("secret", "library", "isolation") if before[what] != after[what]]
    if old["members"] != new["members"]:
        reasons.append("another group")
    # Nothing that may change a score has changed, so the program behaves differently each time, or met its time limit.
    return ", ".join(reasons) or "judged again with the same inputs: it is not the same every time"


def _why_total(old: Record, new: Record) -> str:
    if not old or not new:
        return "not in the run before" if not old else "no longer in the run"
    reasons = ["scores"] if old["earned"] != new["earned"] else []
    if old["days_late"] != new["days_late"] or old["kept"] != new["kept"]:
        reasons.append("lateness")
    if old["notes"] != new["notes"]:
        reasons.append("decisions")
    return ", ".join(reasons) or "the rules of the sum"
