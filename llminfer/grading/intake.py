"""From what the platform gave to one folder a student: only the files of the homework, under their own names.

What was renamed, doubled, refused or belongs to nobody is written down; nothing in a submission can stop the intake.
"""

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from llminfer.grading.archives import MAX_ARCHIVE_BYTES, Member, RefusedError, members, members_of_bytes, shown
from llminfer.grading.atomic_files import team_folder, write_atomically
from llminfer.grading.chosen_files import Say, chosen_file
from llminfer.grading.course import Homework
from llminfer.grading.notebooks import extract
from llminfer.grading.owners import Owner, owned
from llminfer.grading.pack_notes import PACK_NOTE, compare_note
from llminfer.grading.rosters import Roster, Student
from llminfer.grading.spec import Exercise, all_exercises

MAX_FILE_BYTES = 1 << 20
MAX_NOTEBOOK_BYTES = 8 << 20
MAX_NESTED = 2


@dataclass(frozen=True)
class Note:
    """What the teacher should know about one file. student: "" where nobody's."""

    student: str
    found: str
    note: str


@dataclass(frozen=True)
class Submission:
    """What one student, or one group, handed in. members: ids, sorted. files: by exercise id, copies in `folder`."""

    members: tuple[str, ...]
    folder: Path
    files: Mapping[str, Path] = field(default_factory=dict, hash=False)
    submitted: datetime | None = None
    marked_late: bool = False


@dataclass(frozen=True)
class Intake:
    """students: everybody who gets a grade, also without a submission. notes: a row for all that was not plain."""

    students: tuple[Student, ...]
    submissions: tuple[Submission, ...]
    notes: tuple[Note, ...]

    def submission_of(self, student: str) -> Submission | None:
        """The one that counts for the student: the own one, or the group's."""
        return next((each for each in self.submissions if student in each.members), None)


def store_intake(out: Path, intake: Intake, isolation: str) -> None:
    """Remember the intake in the run folder, so that reports can be made again without the submissions' archive."""
    submissions = [
        {
            "members": each.members,
            "files": {exercise: path.name for exercise, path in each.files.items()},
            "submitted": each.submitted and each.submitted.isoformat(),
            "marked_late": each.marked_late,
        }
        for each in intake.submissions
    ]
    people = [{"id": student.id, "name": student.name} for student in intake.students]
    notes = [[note.student, note.found, note.note] for note in intake.notes]
    data = {"isolation": isolation, "students": people, "submissions": submissions, "notes": notes}
    write_atomically(out / "intake.json", json.dumps(data, indent=1))


def load_intake(out: Path, folder: Path, roster: Roster | None) -> tuple[Intake, str]:
    """The intake again, with the class list as it is now, and the isolation level that the run had.

    Raises ValueError if there is none.
    """
    path = out / "intake.json"
    if not path.is_file():
        raise ValueError(f"{out} holds no run that came to its end; `llminfer class grade` makes or continues one")
    data = json.loads(path.read_text(encoding="utf-8"))
    submissions = []
    for each in data["submissions"]:
        own = folder / team_folder(tuple(each["members"]))
        files = {exercise: own / name for exercise, name in each["files"].items()}
        submitted = each["submitted"] and datetime.fromisoformat(each["submitted"])
        submissions.append(Submission(tuple(each["members"]), own, files, submitted, each["marked_late"]))
    students = roster.students if roster else tuple(Student(each["id"], each["name"]) for each in data["students"])
    return Intake(students, tuple(submissions), tuple(Note(*note) for note in data["notes"])), data["isolation"]


def take_in(source: Path, homework: Homework, roster: Roster | None, into: Path) -> Intake:
    """Sort the files in `source`, a folder or an archive, into `into`, which afterwards holds nothing else.

    Raises ValueError only where `source` itself cannot be read.
    """
    collected = _Collected(roster)
    found = []
    for member in members(source):
        if isinstance(member, RefusedError):
            collected.note("", shown(str(member)), "refused")
        else:
            found.append(member)
    every = {exercise.name for exercise in all_exercises()}
    for file in owned(found, every, known=lambda name: roster is not None and roster.find(name) is not None):
        collected.add(file.member, file.owner)
    submissions = [
        collected.submission(team, homework, every, into / team_folder(team)) for team in sorted(collected.files)
    ]
    _remove_others(into, {submission.folder for submission in submissions})
    return Intake(collected.students(), tuple(submissions), tuple(collected.notes))


class _Collected:
    """Files by the team that they belong to, and what there is to say about them."""

    def __init__(self, roster: Roster | None) -> None:
        self.roster = roster
        self.files: dict[tuple[str, ...], list[Member]] = {}
        self.owners: dict[tuple[str, ...], Owner] = {}
        self.strangers: dict[str, Student] = {}  # without a class list everybody is taken as the platform names them
        self.notes: list[Note] = []

    def note(self, student: str, found: str, text: str) -> None:
        self.notes.append(Note(student, found, text))

    def students(self) -> tuple[Student, ...]:
        known = self.roster.students if self.roster else ()
        return tuple(sorted((*known, *self.strangers.values()), key=lambda student: student.id))

    def add(self, member: Member, owner: Owner | None) -> None:
        team = self._team(owner) if owner else ()
        if not team:
            return self.note("", member.shown, "belongs to nobody in the class list" if self.roster else "whose is it?")
        self.files.setdefault(team, []).append(member)
        before = self.owners.setdefault(team, owner)
        if owner.late and not before.late:
            self.owners[team] = replace(before, late=True)

    def _team(self, owner: Owner) -> tuple[str, ...]:
        found: set[str] = set()
        for person in owner.people:
            if self.roster:
                student = self.roster.find(*person.keys)
                found.update(self.roster.members(student.id) if student else ())
            else:
                key = shown(person.keys[0])
                self.strangers[key] = Student(key, shown(person.name))
                found.add(key)
        return tuple(sorted(found))

    def submission(self, team: tuple[str, ...], homework: Homework, every: set[str], folder: Path) -> Submission:
        say = lambda found, text: self.note("+".join(team), found, text)  # noqa: E731
        files = lay_out(self.files[team], homework, team, folder, say, every)
        owner = self.owners[team]
        return Submission(team, folder, files, owner.submitted, owner.late)


def lay_out(
    found: Iterable[Member],
    homework: Homework,
    team: tuple[str, ...],
    folder: Path,
    say: Say,
    every: set[str] | None = None,
) -> dict[str, Path]:
    """One team's files as exercises, by id: copied into `folder`, which afterwards holds nothing else."""
    within = list(_expanded(found, say))
    for note in within:
        if note.name == PACK_NOTE:
            compare_note(note, team, homework.name, say)
    files = {}
    for exercise in homework.exercises:
        chosen = chosen_file(exercise, within, every, say)
        raw = _read(chosen, MAX_FILE_BYTES, say) if chosen else _out_of_a_notebook(exercise, within, say)
        if raw is not None:
            files[exercise.id] = folder / exercise.file_name
            write_atomically(files[exercise.id], raw)
    _remove_others(folder, set(files.values()))
    return files


def _out_of_a_notebook(exercise: Exercise, found: Iterable[Member], say: Say) -> bytes | None:
    """The exercise's module from the first notebook that has it."""
    for member in found if exercise.kind != "short-answer" else ():
        if member.name.lower().endswith(".ipynb") and (raw := _read(member, MAX_NOTEBOOK_BYTES, say)) is not None:
            source = extract(raw, exercise)
            if source is not None:
                say(member.shown, f"{exercise.file_name} was taken from its cells")
                return source.encode("utf-8", "replace")  # JSON can hold half a letter, which no file can
    return None


def _expanded(found: Iterable[Member], say: Say, depth: int = 0) -> Iterable[Member]:
    """The files, and those in archives among them."""
    for member in found:
        if not member.is_archive:
            yield member
            continue
        if depth == MAX_NESTED:
            say(member.shown, f"an archive in an archive in an archive; {MAX_NESTED} are opened")
            continue
        raw = _read(member, MAX_ARCHIVE_BYTES, say)
        inside = []
        for each in members_of_bytes(member.name, raw) if raw is not None else ():
            if isinstance(each, RefusedError):
                say(member.shown, f"refused: {each}")
            else:
                inside.append(
                    Member((*member.path, *each.path), each.read, (*(member.found_at or member.path), *each.path))
                )
        yield from _expanded(inside, say, depth + 1)


def _read(member: Member, limit: int, say: Say) -> bytes | None:
    try:
        return member.read(limit)
    except RefusedError as reason:
        say(member.shown, f"refused: {reason}")
        return None


def _remove_others(folder: Path, kept: set[Path]) -> None:
    for path in folder.iterdir() if folder.is_dir() else ():
        if path not in kept:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
