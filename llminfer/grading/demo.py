"""A class to try the grader on: nine students who each hand in something else, and one of them cheats."""

import csv
import io
import zipfile
from datetime import datetime, timedelta
from pathlib import Path

from llminfer.grading.atomic_files import write_atomically
from llminfer.grading.new_course import make_course
from llminfer.grading.spec import Exercise, all_exercises

TO_DO = 'raise NotImplementedError("your turn")'
STUDENTS = {
    "ada": "Ada Perfect",
    "ben": "Ben Partial",
    "cleo": "Cleo Wrong",
    "dan": "Dan Crash",
    "eve": "Eve Cheat",
    "finn": "Finn Loop",
    "gus": "Gus Memory",
    "hana": "Hana Nothing",
    "ivo": "Ivo Late",
}
CRASH = 'raise KeyError("the key that is not there")'
LOOP = """while True:
        try:
            pass
        except BaseException:
            pass"""
MEMORY = "return [bytearray(1 << 28) for _ in range(1 << 12)]"
CHEAT = """import os
    import sys
    from pathlib import Path

    try:
        for folder in map(Path, sys.path):
            for path in folder.glob("solutions/*/*_judge.py"):
                print(path.read_text())
        Path("results.json").write_text('{"score": 100}')
    finally:
        os._exit(0)"""


def make_demo(folder: Path) -> Path:
    """Write a course with its class list, submissions and times into `folder`; return `course.toml`."""
    chosen = [each for each in all_exercises() if each.kind == "function" and TO_DO in _text(each.starter)][:3]
    due = (datetime.now().astimezone() - timedelta(days=2)).replace(hour=23, minute=59, second=0, microsecond=0)
    path = make_course(folder, tuple(exercise.id for exercise in chosen), due, roster="roster.csv")
    write_atomically(folder / "roster.csv", _csv(("id", "name"), STUDENTS.items()))
    for name, files in _submissions(chosen).items():
        write_atomically(folder / "submissions" / name, files)
    times = {name: due - timedelta(hours=3) for name in STUDENTS} | {"ivo": due + timedelta(days=1, hours=5)}
    write_atomically(folder / "times.csv", _csv(("student", "submitted"), _stamped(times)))
    return path


def _submissions(chosen: list[Exercise]) -> dict[str, bytes]:
    solved = {exercise.file_name: _text(exercise.solution) for exercise in chosen}
    first, second, third = solved
    partial = {first: solved[first], second: _mutated(chosen[1])}
    wrong = {f"{exercise.name} (1).py": _mutated(exercise) for exercise in chosen}
    crash = {first: "def broken(:\n", second: _with_body(chosen[1], CRASH), third: _with_body(chosen[2], CRASH)}
    found = {f"ada/{name}": text.encode() for name, text in solved.items()}
    found["ben.zip"] = _zip({f"homework/{name}": text for name, text in partial.items()})
    found |= {f"cleo/hw1/final/{name}": text.encode() for name, text in wrong.items()}
    found |= {f"dan/{name}": text.encode() for name, text in crash.items()}
    found |= {f"eve/{exercise.file_name}": _with_body(exercise, CHEAT).encode() for exercise in chosen}
    found |= {f"finn_{chosen[0].file_name}": _with_body(chosen[0], LOOP).encode()}
    found |= {f"gus/{chosen[0].file_name}": _with_body(chosen[0], MEMORY).encode()}
    found |= {f"ivo/{name}": text.encode("utf-8-sig") for name, text in solved.items()}
    return found | {"somebody-else/notes.txt": b"whose is this?\n"}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _with_body(exercise: Exercise, body: str) -> str:
    return _text(exercise.starter).replace(TO_DO, body)


def _mutated(exercise: Exercise) -> str:
    """The solution with the first mistake that the judge's side knows."""
    return exercise.judge_side.mutants[0].applied_to(_text(exercise.solution))


def _stamped(times: dict[str, datetime]) -> list[tuple[str, str]]:
    return [(name, time.isoformat()) for name, time in times.items() if name != "hana"]


def _csv(header: tuple[str, ...], lines) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *lines])
    return out.getvalue()


def _zip(files: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return out.getvalue()
