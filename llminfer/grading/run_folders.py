"""Where a run keeps what it found: `submissions/`, `results/`, and what is made from them.

    run.json grades.csv canvas.csv moodle.csv items.csv intake.csv to-mark.csv drops.csv
    students/ada.html students/ada.md
    submissions/ada/top_p.py            what was graded
    results/ada/3.1-top_p.json          what the judge said, and the key of all that it depended on

A result whose key still holds is never judged again, so that the folder is cache and memory in one: a run that was
killed goes on where it stopped, and a regrade judges only what changed.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from llminfer.grading.atomic_files import team_folder, write_atomically
from llminfer.grading.fingerprints import fingerprint
from llminfer.grading.results import ExerciseResult
from llminfer.grading.seeds import team
from llminfer.grading.spec import Exercise

PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class RunFolder:
    """The folder of one homework's run."""

    path: Path

    @property
    def submissions(self) -> Path:
        return self.path / "submissions"

    @property
    def students(self) -> Path:
        return self.path / "students"

    def result_file(self, members: tuple[str, ...], exercise: Exercise) -> Path:
        return self.path / "results" / team_folder(members) / f"{exercise.chapter}-{exercise.name}.json"

    def stored(self, members: tuple[str, ...], exercise: Exercise, key: str) -> ExerciseResult | None:
        """The result that was found under the same key, or None."""
        try:
            found = json.loads(self.result_file(members, exercise).read_text(encoding="utf-8"))
            return ExerciseResult.from_json(found["result"]) if found["key"] == key else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # absent, or of another version of this program: it is judged again

    def last_result(self, members: tuple[str, ...], exercise: Exercise) -> ExerciseResult:
        """The result that was found last, whatever has changed since. Raises ValueError if there is none."""
        try:
            text = self.result_file(members, exercise).read_text(encoding="utf-8")
            return ExerciseResult.from_json(json.loads(text)["result"])
        except FileNotFoundError:
            raise ValueError(
                f"{exercise.id} of {' + '.join(members)} was not judged yet; `llminfer class grade` continues the run"
            ) from None

    def store(self, members: tuple[str, ...], exercise: Exercise, key: str, result: ExerciseResult) -> None:
        text = json.dumps({"key": key, "result": result.to_json()}, indent=1, ensure_ascii=False)
        write_atomically(self.result_file(members, exercise), text)

    def last_run(self) -> dict[str, Any] | None:
        """`run.json` as the last run left it, or None. Raises ValueError if it cannot be read."""
        path = self.path / "run.json"
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as problem:
            raise ValueError(
                f"{path} is damaged ({problem}); move it away, and the grades are compared to none"
            ) from None


def result_key(
    exercise: Exercise, file: Path | None, members: tuple[str, ...], secret: bytes | None, isolation: str
) -> str:
    """A hash of all that a result depends on: submission, tests, limits, drawn inputs, library and isolation."""
    parts: Mapping[str, str] = {
        "submission": hashlib.sha256(file.read_bytes()).hexdigest() if file else "none",
        "tests": tests_hash(exercise),
        "limits": str(exercise.limits),
        "seed": hmac.new(secret or b"", f"{team(members)}\0{exercise.id}".encode(), "sha256").hexdigest(),
        "library": package_hash(),
        "isolation": isolation,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def tests_hash(exercise: Exercise) -> str:
    """Of an exercise's public spec and its judge's side."""
    names = (exercise.file_name, f"{exercise.name}_judge.py", f"{exercise.name}_rubric.md")
    beside = [exercise.solution.with_name(name) for name in names]
    files = [exercise.starter, exercise.starter.with_suffix(".toml"), *beside]
    return _hash_of(tuple(path for path in files if path.is_file()))


@cache
def package_hash() -> str:
    """Of the library's sources without the exercises, and of the versions of what computes."""
    files = [path for path in PACKAGE.rglob("*.py") if "course" not in path.relative_to(PACKAGE).parts]
    return hashlib.sha256(f"{_hash_of(tuple(sorted(files)))} {versions()}".encode()).hexdigest()


def versions() -> dict[str, str]:
    """Of Python and the packages; the sources have `package_hash`, which a mended exercise leaves alone."""
    return {name: version for name, version in fingerprint().items() if name != "sources"}


def _hash_of(files: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()
