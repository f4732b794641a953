"""Packs a homework for upload, and proves the zip by reading it as the teacher's program will."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from llminfer.grading.archive_writing import zipped
from llminfer.grading.archives import Member, members
from llminfer.grading.atomic_files import write_atomically
from llminfer.grading.chosen_files import chosen_file
from llminfer.grading.course import Homework
from llminfer.grading.intake import MAX_FILE_BYTES
from llminfer.grading.pack_notes import PACK_NOTE, note_text
from llminfer.grading.spec import Exercise


@dataclass(frozen=True)
class Packed:
    """A zip to hand in. missing: exercises without a file. unchanged: whose file is the starter as handed out."""

    path: Path
    sha256: str
    files: tuple[str, ...]
    missing: tuple[str, ...]
    unchanged: tuple[str, ...]


def pack(homework: Homework, found: Mapping[Exercise, Path | None], out: Path, student: str = "") -> Packed:
    """Write `out` from the homework's files, as `workplace.submission` finds them.

    Raises ValueError if there are none, if one is too large, or if the zip does not give back what went in.
    """
    present = {exercise: path.read_bytes() for exercise, path in found.items() if path}
    if not present:
        names = ", ".join(exercise.file_name for exercise in homework.exercises)
        raise ValueError(f"none of the files of {homework.name} is here: {names}; run this where they are")
    for exercise, raw in present.items():
        if len(raw) > MAX_FILE_BYTES:
            raise ValueError(f"{exercise.file_name} has {len(raw)} bytes; at most {MAX_FILE_BYTES} are graded")
    files = {exercise.file_name: raw for exercise, raw in present.items()}
    whole = zipped({**files, PACK_NOTE: note_text(homework.name, student, files)})
    write_atomically(out, whole)
    _prove(out, present)
    return Packed(
        out,
        hashlib.sha256(whole).hexdigest(),
        tuple(files),
        tuple(exercise.file_name for exercise in homework.exercises if exercise not in present),
        tuple(each.file_name for each, raw in present.items() if raw.split() == each.starter.read_bytes().split()),
    )


def _prove(path: Path, present: dict[Exercise, bytes]) -> None:
    """Read it with the intake's own eyes."""
    found = [each for each in members(path) if isinstance(each, Member)]
    for exercise, raw in present.items():
        member = chosen_file(exercise, found)
        if member is None or member.read(MAX_FILE_BYTES) != raw:
            raise ValueError(f"{path} does not give {exercise.file_name} back as it was packed; is the disk full?")
