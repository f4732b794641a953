"""When things were handed in, from a table of one's own: the one source that every platform can fill."""

import csv
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from llminfer.grading.intake import Intake


def with_times(intake: Intake, path: Path) -> Intake:
    """Add the times in a CSV of student and submitted. A group's time is that of its last member.

    Raises ValueError naming the line whose time cannot be read or has no offset.
    """
    known: dict[str, datetime] = {}
    with path.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.DictReader(lines)
        if not {"student", "submitted"} <= set(reader.fieldnames or ()):
            raise ValueError(f"{path} needs the columns student and submitted, got {reader.fieldnames}")
        for row in reader:
            known[row["student"].strip()] = _time(row["submitted"] or "", f"{path}, line {reader.line_num}")
    timed = []
    for submission in intake.submissions:
        times = [known[member] for member in submission.members if member in known]
        timed.append(replace(submission, submitted=max(times, default=submission.submitted)))
    return replace(intake, submissions=tuple(timed))


def _time(text: str, where: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ValueError(f"{where}: submitted needs its offset, such as 2027-03-01T23:59:00+01:00, got {text!r}")
    return found
