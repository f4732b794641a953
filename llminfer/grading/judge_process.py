"""A judge in a process of its own: a job a line comes in, a result a line goes out, until the input ends.

A class is graded by several of these, so that nothing that happens to one ends the run. The secret comes in with the
first line, not as an argument or a variable, which other processes could read.
"""

import json
import signal
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from llminfer.grading import isolation, judge
from llminfer.grading.results import ExerciseResult
from llminfer.grading.spec import Exercise, Limits, all_exercises


def main() -> None:
    """Answer until nobody asks any more: a killed parent closes our input."""
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever prints, it does not print into an answer
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # in order: a student's program must not outlive its judge
    order = json.loads(sys.stdin.readline())
    secret = bytes.fromhex(order["secret"]) or None
    level = isolation.tried(order["isolation"])
    known = {exercise.id: exercise for exercise in all_exercises()}
    exercises = {name: replace(known[name], limits=Limits(**limits)) for name, limits in order["limits"].items()}
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = _judged(exercises[job["exercise"]], job, secret, level).to_json()
        except Exception:  # ours, not the student's; the class goes on
            answer = {"problem": traceback.format_exc(limit=-4)}
        print(json.dumps(answer), file=answers, flush=True)


def _judged(exercise: Exercise, job: dict[str, Any], secret: bytes | None, level) -> ExerciseResult:
    file = Path(job["file"]) if job["file"] else None
    return judge.grade(exercise, file, student=job["student"], secret=secret, isolation=level)


if __name__ == "__main__":
    main()
