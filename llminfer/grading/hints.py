"""Hints, one more each time somebody asks; how many were taken stands in a file beside the work."""

import json
from pathlib import Path

from llminfer.grading.spec import Exercise

FILE_NAME = ".llminfer-hints.json"


def next_hint(exercise: Exercise, folder: Path) -> str:
    """The hints taken so far and one more, as text. Says so when there are none, or no more."""
    if not exercise.hints:
        return f"{exercise.id} has no hints; section {exercise.section} of the book is the place to look"
    taken = _taken(folder)
    shown = min(taken.get(exercise.id, 0) + 1, len(exercise.hints))
    (folder / FILE_NAME).write_text(json.dumps({**taken, exercise.id: shown}, indent=1), encoding="utf-8")
    return "\n".join(
        f"hint {number} of {len(exercise.hints)}: {hint}" for number, hint in enumerate(exercise.hints[:shown], start=1)
    )


def _taken(folder: Path) -> dict[str, int]:
    try:
        found = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {key: n for key, n in found.items() if type(n) is int} if isinstance(found, dict) else {}
