"""Who is in the class. Three kinds of list are read as they are: one's own, Canvas's gradebook, Moodle's worksheet."""

import csv
import io
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

OWN_COLUMNS = ("id", "name", "email", "group", "section", "canvas_id", "moodle_id")
CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MOODLE_COLUMNS = ("Identifier", "Full name", "Email address")


@dataclass(frozen=True)
class Student:
    """One student. row: the line of the list as it was, for lists that go back to where they came from."""

    id: str
    name: str = ""
    email: str = ""
    group: str = ""
    section: str = ""
    canvas_id: str = ""
    moodle_id: str = ""
    row: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """Everything by which a learning platform may name this student, most certain first."""
        words = self.name.split()
        turned = " ".join(part.strip() for part in reversed(self.name.split(","))) if "," in self.name else ""
        backwards = "".join([*words[-1:], *words[:-1]])  # Canvas writes Jane Doe as doejane
        found = (self.id, self.canvas_id, self.moodle_id, self.email, self.name, turned, backwards)
        return tuple(dict.fromkeys(plain(key) for key in found if key))


@dataclass(frozen=True)
class Roster:
    """The students by id, and the form of list they came from: "own", "canvas" or "moodle"."""

    students: tuple[Student, ...]
    form: str = "own"
    header: tuple[str, ...] = OWN_COLUMNS

    @cached_property
    def by_id(self) -> dict[str, Student]:
        return {student.id: student for student in self.students}

    @cached_property
    def _by_key(self) -> dict[str, list[Student]]:
        found: dict[str, list[Student]] = {}
        for student in self.students:
            for key in student.keys:
                found.setdefault(key, []).append(student)
        return found

    def find(self, *keys: str) -> Student | None:
        """The student whom the first key that fits names; None where it fits none, or more than one."""
        for key in keys:
            fitting = self._by_key.get(plain(key), [])
            if len(fitting) == 1:
                return fitting[0]
        return None

    def members(self, student_id: str) -> tuple[str, ...]:
        """The ids of the student's group, sorted; without a group the student alone."""
        student = self.by_id.get(student_id)
        if student is None or not student.group:
            return (student_id,)
        return tuple(sorted(other.id for other in self.students if other.group == student.group))


def plain(name: str) -> str:
    """A name without case, accents, spaces and punctuation, as file names mangle them. "@" and digits stay."""
    letters = unicodedata.normalize("NFKD", name).casefold()
    return "".join(letter for letter in letters if letter.isalnum() or letter == "@")


def load_roster(path: Path) -> Roster:
    """Read a class list. Raises ValueError naming the line for a list of unknown columns or an id that comes twice."""
    reader = csv.DictReader(io.StringIO(_text(path)))
    header = tuple(reader.fieldnames or ())
    form, read = _form(path, header)
    students = [student for row in reader if (student := read(row)) is not None]
    _check_ids(path, students)
    return Roster(tuple(sorted(students, key=lambda student: student.id)), form, header)


def _text(path: Path) -> str:
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8-sig")  # spreadsheets write a byte order mark
    except UnicodeDecodeError as problem:
        raise ValueError(f"{path} is not UTF-8: {problem}; save it as CSV UTF-8") from None


def _form(path: Path, header: tuple[str, ...]):
    if "id" in header:
        unknown = sorted(set(header) - set(OWN_COLUMNS))
        if unknown:
            raise ValueError(f"{path}: unknown column {', '.join(unknown)}; known are {', '.join(OWN_COLUMNS)}")
        return "own", _own
    if {"Student", "ID"} <= set(header):
        return "canvas", _canvas
    if {"Identifier", "Email address"} <= set(header):
        return "moodle", _moodle
    raise ValueError(
        f"{path} has the columns {', '.join(header) or '(none)'}; expected a list of one's own with at least the "
        "column id, Canvas's gradebook export (Student, ID, ...), or Moodle's grading worksheet (Identifier, ...)"
    )


def _clean(row: Mapping[str | None, str | None]) -> dict[str, str]:
    return {key: (value or "").strip() for key, value in row.items() if key is not None}


def _own(row: Mapping[str, str]) -> Student | None:
    cells = _clean(row)
    return Student(**cells, row=cells) if any(cells.values()) else None


def _canvas(row: Mapping[str, str]) -> Student | None:
    """Canvas numbers its users in ID; the line of possible points and the test student have no login."""
    cells = _clean(row)
    login = cells.get("SIS Login ID") or cells.get("SIS User ID")
    if not login or not cells["ID"]:
        return None
    email = login if "@" in login else ""
    section = cells.get("Section", "")
    return Student(login, cells["Student"], email, section=section, canvas_id=cells["ID"], row=cells)


def _moodle(row: Mapping[str, str]) -> Student | None:
    """Moodle's worksheet says "Participant 123456", and its downloads name the folder by that number."""
    cells = _clean(row)
    if not cells["Identifier"]:
        return None
    number = cells["Identifier"].split()[-1]
    key = cells.get("ID number") or cells["Email address"] or number
    return Student(key, cells.get("Full name", ""), cells["Email address"], moodle_id=number, row=cells)


def _check_ids(path: Path, students: Iterable[Student]) -> None:
    seen: dict[str, str] = {}
    for student in students:
        if not student.id:
            raise ValueError(f"{path}: {student.name or student.email or 'a line'} has no id; every student needs one")
        folded = student.id.casefold()  # reports become files, and some file systems do not tell Ada from ada
        if folded in seen:
            raise ValueError(f"{path}: the id {student.id!r} comes twice (also as {seen[folded]!r}); ids must differ")
        seen[folded] = student.id
