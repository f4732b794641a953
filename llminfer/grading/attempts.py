"""A log of attempts, for the student who wants one: a line for each, in a file beside the work, and nowhere else."""

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from llminfer.grading.results import ExerciseResult

FILE_NAME = "attempts.jsonl"


def keep(results: Iterable[ExerciseResult], folder: Path, begin: bool = False) -> None:
    """Add the results to the log. Without `begin` only where there is one already."""
    path = folder / FILE_NAME
    if not (begin or path.is_file()):
        return
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    with path.open("a", encoding="utf-8") as log:
        for result in results:
            told = {"when": now, "exercise": result.exercise, "status": result.status, "points": result.points}
            log.write(json.dumps(told) + "\n")
