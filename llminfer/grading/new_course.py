"""Begins a course: a `course.toml` to change, and the class secret."""

import secrets
from datetime import datetime
from pathlib import Path

from llminfer.grading.atomic_files import write_atomically
from llminfer.grading.course import FILE_NAME

TEMPLATE = """\
# `llminfer class grade --explain` prints every value that holds, also those that are not written here.
name = "LLM inference"
secret = "class-secret"  # hidden inputs are drawn with it: never hand it out, and never change it during a course
{roster}

[late]
grace_minutes = 15
percent_per_day = 10     # of the points earned, for each begun day
last_day = 3             # what comes later earns nothing

# [limits]               # ceilings over what the exercises themselves allow
# seconds = 5            # for one case
# memory_mib = 2048

[[homework]]
name = "hw1"             # students say: llminfer grade hw1
title = "Homework 1"
exercises = [{exercises}]
due = {due}

# points = {{ "{first}" = 10 }}  # instead of what the exercise itself says
# canvas = "Homework 1 (4711)"   # the heading of the column in Canvas's gradebook export
# marks = "hw1-marks.csv"        # points given by hand: to-mark.csv, filled in

# [[homework.extension]]
# student = "ada"
# due = {due}
# reason = "ill until Monday"

# [[homework.override]]
# student = "ada"
# exercise = "{first}"  # without this line the total is set, after lateness
# points = 3
# reason = "a slip in the task's text"
"""
NO_ROSTER = (
    "# roster = \"roster.csv\"  # a list with the column id, Canvas's gradebook export, or Moodle's grading worksheet"
)
IGNORED = "class-secret\nruns/\n"


def make_course(folder: Path, exercises: tuple[str, ...], due: datetime, roster: str = "") -> Path:
    """Write `course.toml`, `class-secret` and `.gitignore` into `folder`, and return the first.

    due: of the first homework, with its offset. Raises ValueError if there is a course already, whose secret must not
    be lost.
    """
    path, secret = folder / FILE_NAME, folder / "class-secret"
    if present := [each.name for each in (path, secret) if each.exists()]:
        raise ValueError(f"{folder} holds {' and '.join(present)} already; nothing was changed, choose another folder")
    named = f'roster = "{roster}"' if roster else NO_ROSTER
    values = {"roster": named, "exercises": ", ".join(f'"{each}"' for each in exercises), "due": due.isoformat()}
    write_atomically(secret, secrets.token_hex(32) + "\n", mode=0o600)
    write_atomically(folder / ".gitignore", IGNORED)
    write_atomically(path, TEMPLATE.format(first=exercises[0], **values))
    return path
