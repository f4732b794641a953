"""What `llminfer pack` says in its zip about itself, and what the intake makes of it: notes, never points."""

import hashlib
import json
from collections.abc import Mapping

from llminfer.grading.archives import Member, shown
from llminfer.grading.chosen_files import Say
from llminfer.grading.fingerprints import differences, fingerprint

PACK_NOTE = "llminfer-pack.json"


def note_text(homework: str, student: str, files: Mapping[str, bytes]) -> str:
    """Which homework, whose, and made with which versions."""
    hashes = {name: hashlib.sha256(raw).hexdigest() for name, raw in files.items()}
    note = {"homework": homework, "student": student, "files": hashes, "made_with": fingerprint()}
    return json.dumps(note, indent=1)


def compare_note(note: Member, team: tuple[str, ...], homework: str, say: Say) -> None:
    """Tell the teacher where a packed homework does not fit. It is the student's word: nothing follows from it."""
    try:
        said = json.loads(note.read(1 << 16))
        made_with = {str(name): str(version) for name, version in said["made_with"].items()}
        packed, student = str(said["homework"]), str(said["student"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return say(note.shown, "cannot be read; it says nothing about the files")
    if packed != homework:
        say(note.shown, f"was packed as {shown(packed)}")
    if student and student not in team:
        say(note.shown, f"was packed by {shown(student)}")
    for difference in differences(fingerprint(), made_with):
        say(note.shown, f"made with other versions: {shown(difference)}")
