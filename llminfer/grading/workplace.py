"""Where a student works: which exercises are meant, where their files lie, and fresh starters to begin with."""

import difflib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from llminfer.grading.notebooks import extract
from llminfer.grading.spec import Exercise, all_exercises, course_folder

FOLDER = "exercises"


@dataclass(frozen=True)
class Copied:
    """A file of a hand-out: where it went, or would have gone if something had not been there already."""

    path: Path
    written: bool


def meant(asked: str | None, folder: Path) -> tuple[Exercise, ...]:
    """The exercises of "3.1", "3.1/top_p", "top_p" or "hw1"; without a word, all of which there is a file here.

    Raises ValueError naming what there is.
    """
    every = all_exercises()
    if asked is None:
        found = tuple(exercise for exercise in every if source_file(exercise, folder))
        if not found:
            raise ValueError("there are no exercises here; `llminfer exercises copy 3.1` brings the starters of 3.1")
        return found
    chosen = tuple(exercise for exercise in every if asked in (exercise.chapter, exercise.id, exercise.name))
    if chosen:
        return chosen
    if _is_homework(asked, folder):
        from llminfer.grading.course_file import load_course

        return load_course(folder).find(asked).exercises
    raise ValueError(f"there is no exercise, chapter or homework {asked!r}{_near(asked, every)}")


def source_file(exercise: Exercise, folder: Path) -> Path | None:
    """The student's file: here, in the chapter's folder, or in `exercises/`; None if there is none."""
    for place in (folder, folder / exercise.folder.name, folder / FOLDER / exercise.folder.name, folder / FOLDER):
        if (place / exercise.file_name).is_file():
            return place / exercise.file_name
    return None


def submission(exercise: Exercise, folder: Path, scratch: Path) -> Path | None:
    """The student's file; or, where there is none, its module out of a notebook here, written to `scratch`."""
    if (found := source_file(exercise, folder)) or exercise.kind == "short-answer":
        return found
    for notebook in sorted([*folder.glob("*.ipynb"), *(folder / exercise.folder.name).glob("*.ipynb")]):
        if source := extract(notebook.read_bytes(), exercise):
            target = scratch / exercise.file_name
            target.write_text(source, encoding="utf-8")
            return target
    return None


def copy_starters(exercises: Sequence[Exercise], folder: Path) -> list[Copied]:
    """Starters, and the pictures that belong to them, into `folder/3.1-basics/`. What is there already stays."""
    done = []
    guide = course_folder() / FOLDER / "README.md"
    for source, target in [(guide, folder / guide.name), *_files(exercises, folder)]:
        if not source.is_file() or (target.exists() and target.samefile(source)):
            continue
        written = not target.exists()
        if written:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        done.append(Copied(target, written))
    return done


def _files(exercises: Sequence[Exercise], folder: Path) -> list[tuple[Path, Path]]:
    """What a student gets of an exercise: everything of its name, but for the spec that the package has anyway."""
    return [
        (path, folder / exercise.folder.name / path.name)
        for exercise in exercises
        for path in sorted(exercise.folder.glob(f"{exercise.name}.*"))
        if path.suffix != ".toml"
    ]


def _is_homework(asked: str, folder: Path) -> bool:
    return asked.startswith("hw") or (folder / "course.toml").is_file()


def _near(asked: str, every: Sequence[Exercise]) -> str:
    names = [name for exercise in every for name in (exercise.name, exercise.id)]
    close = difflib.get_close_matches(asked, names, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    chapters = ", ".join(dict.fromkeys(exercise.chapter for exercise in every))
    return f"; there are chapters {chapters}, and `llminfer exercises list` names the exercises"
