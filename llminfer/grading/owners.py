"""Whose file is it? Reads that from the names that Canvas, Moodle and Gradescope give, and from plain folders."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from llminfer.grading.archives import ARCHIVES, Member

CANVAS = re.compile(r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<user>\d+)_(?P<upload>\d+)_(?P<file>.+)")
MOODLE = re.compile(r"(?P<name>.+)_(?P<number>\d+)_assignsubmission_[a-z]+_?(?P<file>.*)")
METADATA = "submission_metadata.yml"
TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.\d+)? *(Z|[+-]\d\d:?\d\d)")


@dataclass(frozen=True)
class Person:
    """What a platform says of a student. keys: by which the class list may know them, most certain first."""

    keys: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True)
class Owner:
    """Who handed a file in, when (as the platform's server says), and whether the platform calls it late."""

    people: tuple[Person, ...]
    submitted: datetime | None = None
    late: bool = False


@dataclass(frozen=True)
class Owned:
    """A file, under the name that its owner gave it; owner None: nobody's."""

    member: Member
    owner: Owner | None


def owned(found: Iterable[Member], stems: Iterable[str], known: Callable[[str], bool]) -> list[Owned]:
    """Each file with its owner. stems: the names of the exercises, so that a loose `ada_top_p.py` can be told apart."""
    found = _without_outer_folder(list(found), known)
    exports = [member for member in found if member.path == (METADATA,)]
    if exports:
        submissions = gradescope_owners(exports[0].read(64 << 20).decode("utf-8", "replace"))
        return [
            Owned(member.moved(member.path[1:]), submissions.get(member.path[0]))
            for member in found
            if len(member.path) > 1
        ]
    longest_first = sorted(stems, key=len, reverse=True)
    return [_owned(member, longest_first) for member in found]


def _without_outer_folder(found: list[Member], known: Callable[[str], bool]) -> list[Member]:
    """Archives often hold one folder around everything. It is a student's if class list or platform say so, and
    otherwise if files lie in it directly that are not whole submissions."""
    while len({member.path[0] for member in found}) == 1:
        outer = found[0].path[0]
        inside = {member.path[1] for member in found if len(member.path) > 1}
        whole = [name for name in inside if name.lower().endswith(ARCHIVES) or _by_platform(name)]
        around = METADATA in inside or len(whole) > 1 or all(len(member.path) > 2 for member in found)
        if known(outer) or _by_platform(outer) or not around:
            break
        found = [member.moved(member.path[1:]) for member in found if len(member.path) > 1]
    return found


def _by_platform(name: str) -> Owner | None:
    if (match := MOODLE.fullmatch(name)) is not None:
        return Owner((Person((match["number"], match["name"]), match["name"]),))
    if (match := CANVAS.fullmatch(name)) is not None:
        return Owner((Person((match["user"], match["name"]), match["name"]),), late=match["late"] is not None)
    return None


def _owned(member: Member, stems: list[str]) -> Owned:
    top = member.path[0]
    platform = _by_platform(top)
    if platform is not None:
        match = MOODLE.fullmatch(top) or CANVAS.fullmatch(top)
        rest = (match["file"],) if match["file"] else ()
        return Owned(member.moved((*rest, *member.path[1:]) or (top,)), platform)
    if len(member.path) > 1:
        return Owned(member.moved(member.path[1:]), Owner((Person((top,)),)))
    name = top.lower()
    for ending in ARCHIVES:
        if name.endswith(ending):
            return Owned(member, Owner((Person((top[: -len(ending)],)),)))
    for stem in stems:  # ada_top_p.py, ada-top_p-1.py
        match = re.fullmatch(rf"(?P<key>.+?)[ _-]{re.escape(stem)}(?P<copy>[ _()\d-]*)\.(py|md)", top, re.IGNORECASE)
        if match is not None:
            rest = top[match.end("key") + 1 :]
            return Owned(member.moved((rest,)), Owner((Person((match["key"],)),)))
    if name.endswith(".ipynb"):
        return Owned(member, Owner((Person((top[:-6],)),)))
    return Owned(member, None)


def gradescope_owners(text: str) -> dict[str, Owner]:
    """The submitters in Gradescope's `submission_metadata.yml`, by folder.

    Reads the few lines that say who and when, by their indentation, and none of the others: results and history, which
    may hold anything that a student's program printed, stand deeper.
    """
    people: dict[str, list[dict[str, str]]] = {}
    times: dict[str, datetime] = {}
    folder, within = "", False
    for line in text.replace("\r\n", "\n").split("\n"):  # splitlines would end lines at letters that may be in a value
        if re.fullmatch(r"\S+:", line):
            folder, within = line[:-1].strip("'\""), False
            people.setdefault(folder, [])
        elif re.match(r"  :\w+:", line):
            within = folder in people and line.rstrip() == "  :submitters:"
            if (match := re.match(r"  :created_at: *['\"]?", line)) and (time := _time(line[match.end() :])):
                times.setdefault(folder, time)
        elif within and (match := re.fullmatch(r"  (- |  ):(\w+): ?(.*)", line)):
            if match[1] == "- ":
                people[folder].append({})
            if people[folder]:
                people[folder][-1][match[2]] = _scalar(match[3])
    known = {folder: tuple(filter(None, map(_person, found))) for folder, found in people.items()}
    return {folder: Owner(found, times.get(folder)) for folder, found in known.items() if found}


def _person(fields: Mapping[str, str]) -> Person | None:
    keys = tuple(key for name in ("sid", "email", "name") if (key := fields.get(name)))
    return Person(keys, fields.get("name", "")) if keys else None


def _scalar(text: str) -> str:
    """A YAML scalar of one line: plain, 'single' or "double" quoted; nothing for null."""
    text = text.strip()
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    if text.startswith('"'):
        try:
            return str(json.loads(text))
        except ValueError:
            return text.strip('"')
    return "" if text in ("", "~", "null") else text


def _time(text: str) -> datetime | None:
    match = TIME.match(text)
    try:
        return datetime.fromisoformat(f"{match[1]}T{match[2]}{match[3]}") if match else None
    except ValueError:  # the 31st of February
        return None
