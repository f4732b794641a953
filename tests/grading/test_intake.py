"""What a messy class hands in, sorted: the right file of the right student, and a note for all that was not plain."""

import io
import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llminfer.grading.course import Homework
from llminfer.grading.fingerprints import fingerprint
from llminfer.grading.intake import MAX_FILE_BYTES, load_intake, store_intake, take_in
from llminfer.grading.pack_notes import PACK_NOTE
from llminfer.grading.rosters import Roster, Student
from llminfer.grading.spec import all_exercises

EXERCISES = {exercise.name: exercise for exercise in all_exercises("3.1")}
SOFTMAX, ROPE = EXERCISES["stable_softmax"], EXERCISES["rope_both"]
HOMEWORK = Homework("hw1", (SOFTMAX, ROPE))
ROSTER = Roster((Student("ada", "Ada Lovelace", canvas_id="101"), Student("bob", "Bob Roe"), Student("cy")))


def lay(folder: Path, files: dict[str, bytes]) -> Path:
    for name, raw in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(raw)
    return folder


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, raw in files.items():
            archive.writestr(name, raw)
    return out.getvalue()


def taken(folder: Path, files: dict[str, bytes], roster: Roster | None = ROSTER):
    return take_in(lay(folder / "in", files), HOMEWORK, roster, folder / "out")


def read(intake, student: str) -> dict[str, bytes]:
    submission = intake.submission_of(student)
    return {name.split("/")[1]: path.read_bytes() for name, path in submission.files.items()} if submission else {}


@pytest.mark.parametrize(
    "name",
    [
        "stable_softmax.py",
        "hw1/deep/er/stable_softmax.py",
        "stable_softmax-1.py",
        "stable_softmax (1).py",
        "stable_softmax(2)-3.py",
        "Stable-Softmax.py",
        "stable softmax.py",
        "stable_softmax - Copy.py",
        "stable_softmax.py.txt",
        "STABLE_SOFTMAX.PY",
        "lovelace_hw1_stable_softmax.py",
    ],
)
def test_a_renamed_file_is_recognised(tmp_path, name):
    intake = taken(tmp_path, {f"ada/{name}": b"mine"})
    assert read(intake, "ada") == {"stable_softmax": b"mine"}
    assert (tmp_path / "out" / "ada" / "stable_softmax.py").read_bytes() == b"mine"
    renamed = not name.endswith("/stable_softmax.py") and name != "stable_softmax.py"
    assert [note.note for note in intake.notes] == ["taken as stable_softmax.py"] * renamed


@pytest.mark.parametrize("name", ["softmax.py", "stable_softmax_old.py", "test_rope.py", "stable_softmax.txt", "x.exe"])
def test_what_means_something_else_is_left(tmp_path, name):
    assert read(taken(tmp_path, {f"ada/{name}": b""}), "ada") == {}


def test_a_name_that_ends_in_another_exercises_name_is_that_exercise(tmp_path, monkeypatch):
    every = {"softmax", "stable_softmax"}
    monkeypatch.setattr("llminfer.grading.intake.all_exercises", lambda: [type("E", (), {"name": n}) for n in every])
    assert read(taken(tmp_path, {"ada/my_stable_softmax.py": b"1"}), "ada") == {"stable_softmax": b"1"}


def test_of_several_the_exact_name_counts_then_the_last_copy_and_the_rest_is_noted(tmp_path):
    files = {
        "ada/stable_softmax.py": b"exact",
        "ada/stable_softmax (3).py": b"copy",
        "ada/old/stable_softmax.py": b"old",
    }
    intake = taken(tmp_path, files | {"bob/stable_softmax-1.py": b"first", "bob/stable_softmax-2.py": b"last"})
    assert read(intake, "ada") == {"stable_softmax": b"exact"}
    assert read(intake, "bob") == {"stable_softmax": b"last"}
    assert sorted(note.found for note in intake.notes if note.note.startswith("not graded")) == [
        "ada/old/stable_softmax.py",
        "ada/stable_softmax (3).py",
        "bob/stable_softmax-1.py",
    ]


def test_archives_in_archives_are_opened_twice_and_no_deeper(tmp_path):
    inner = zipped({"x/stable_softmax.py": b"deep"})
    twice, thrice = zipped({"inner.zip": inner}), zipped({"a.zip": zipped({"inner.zip": inner})})
    intake = taken(tmp_path, {"ada.zip": twice, "bob.zip": thrice})
    assert read(intake, "ada") == {"stable_softmax": b"deep"}
    assert read(intake, "bob") == {}
    assert "archive in an archive in an archive" in intake.notes[-1].note


def test_broken_huge_and_linked_files_are_notes_and_the_rest_is_graded(tmp_path):
    files = {
        "ada/stable_softmax.py": b"#" * (MAX_FILE_BYTES + 1),
        "ada/rope_both.py": b"fine",
        "bob.zip": b"PK\x03\x04no",
    }
    lay(tmp_path / "in", files)
    (tmp_path / "in" / "cy").mkdir()
    (tmp_path / "in" / "cy" / "stable_softmax.py").symlink_to("/etc/passwd")
    intake = take_in(tmp_path / "in", HOMEWORK, ROSTER, tmp_path / "out")
    assert read(intake, "ada") == {"rope_both": b"fine"}
    assert intake.submission_of("cy") is None
    notes = {(note.student, note.note.split(":")[0]) for note in intake.notes}
    assert {("ada", "refused"), ("bob", "refused"), ("", "refused")} <= notes


def test_bytes_arrive_as_they_are_whatever_their_encoding(tmp_path):
    raw = "# héllo\r\n".encode("latin-1") + b"\0\xff"
    assert read(taken(tmp_path, {"ada/stable_softmax.py": raw}), "ada") == {"stable_softmax": raw}


def test_names_that_are_not_utf_8_are_read_and_shown(tmp_path):
    lay(tmp_path / "in", {"ada/rope_both.py": b"1"})
    (tmp_path / "in" / "ada" / "caf\udce9_stable_softmax.py").write_bytes(b"2")
    intake = take_in(tmp_path / "in", HOMEWORK, ROSTER, tmp_path / "out")
    assert read(intake, "ada") == {"stable_softmax": b"2", "rope_both": b"1"}
    assert intake.notes[0].found == "ada/caf\N{REPLACEMENT CHARACTER}_stable_softmax.py"


def test_who_is_not_in_the_class_list_is_noted_and_who_handed_nothing_in_is_there(tmp_path):
    intake = taken(tmp_path, {"mallory/stable_softmax.py": b"", "readme.txt": b""})
    assert [student.id for student in intake.students] == ["ada", "bob", "cy"]
    assert intake.submissions == ()
    assert {note.found for note in intake.notes} == {"mallory/stable_softmax.py", "readme.txt"}


def test_without_a_class_list_everybody_is_taken_as_named(tmp_path):
    intake = taken(tmp_path, {"doejane_101_1_stable_softmax.py": b"1", "zoe/stable_softmax.py": b"2"}, roster=None)
    assert [(student.id, student.name) for student in intake.students] == [("101", "doejane"), ("zoe", "")]


def test_a_group_has_one_submission_and_one_folder(tmp_path):
    roster = Roster((Student("ada", group="g"), Student("bob", group="g"), Student("cy")))
    intake = taken(tmp_path, {"bob/stable_softmax.py": b"ours"}, roster)
    assert intake.submission_of("ada") is intake.submission_of("bob")
    assert intake.submission_of("ada").members == ("ada", "bob")
    assert intake.submission_of("cy") is None


def test_what_an_earlier_intake_left_is_removed(tmp_path):
    taken(tmp_path, {"ada/stable_softmax.py": b"1", "ada/rope_both.py": b"1", "bob/rope_both.py": b"1"})
    (tmp_path / "in" / "ada" / "rope_both.py").unlink()
    (tmp_path / "in" / "bob" / "rope_both.py").unlink()
    take_in(tmp_path / "in", HOMEWORK, ROSTER, tmp_path / "out")
    left = [str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.py")]
    assert left == ["ada/stable_softmax.py"]


def test_ids_that_are_no_file_names_stay_inside_the_folder(tmp_path):
    roster = Roster((Student("../../up"), Student("a/b"), Student("con"), Student("é")))
    files = {f"{number}.zip": zipped({"stable_softmax.py": b"1"}) for number in range(4)}
    people = tuple(Student(student.id, f"{number}") for number, student in enumerate(roster.students))
    intake = taken(tmp_path, files, Roster(people))
    assert len(intake.submissions) == 4
    assert {submission.folder.parent for submission in intake.submissions} == {tmp_path / "out"}


def test_an_intake_comes_back_as_it_was(tmp_path):
    intake = taken(tmp_path, {"ada/stable_softmax-1.py": b"1", "who.txt": b""})
    store_intake(tmp_path, intake, "bwrap")
    assert load_intake(tmp_path, tmp_path / "out", ROSTER) == (intake, "bwrap")


NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=12)
PATHS = st.lists(st.one_of(NAMES, st.sampled_from(["ada", "..", "stable_softmax.py", "a.zip"])), min_size=1, max_size=4)


@given(st.dictionaries(PATHS.map("/".join), st.binary(max_size=40), max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
def test_any_archive_is_sorted_without_an_exception_and_nothing_is_written_outside(tmp_path, files):
    (tmp_path / "all.zip").write_bytes(zipped(files))
    take_in(tmp_path / "all.zip", HOMEWORK, ROSTER, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} <= {"all.zip", "out"}
    for path in (tmp_path / "out").rglob("*.py") if (tmp_path / "out").is_dir() else ():
        assert path.name in (SOFTMAX.file_name, ROPE.file_name)


def notebook(*cells: str, tags: tuple[str, ...] = ()) -> bytes:
    found = [{"cell_type": "code", "metadata": {"tags": list(tags)}, "source": cell} for cell in cells]
    return json.dumps({"cells": found, "nbformat": 4}).encode()


def test_an_exercise_may_come_out_of_a_notebook_where_there_is_no_file_of_it(tmp_path):
    cells = ("import numpy as np", "def stable_softmax(x):\n    return np.exp(x)", "def rope_both(x):\n    return x")
    intake = taken(tmp_path, {"ada/my work.ipynb": notebook(*cells), "ada/rope_both.py": b"own"})
    assert read(intake, "ada") == {
        "stable_softmax": b"import numpy as np\n\n\ndef stable_softmax(x):\n    return np.exp(x)\n",
        "rope_both": b"own",
    }
    assert [note.note for note in intake.notes] == ["stable_softmax.py was taken from its cells"]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b'{"cells": 1}',
        b'{"cells": [1, null, {"cell_type": "code", "source": [1]}]}',
        notebook("def stable_softmax(x:\n"),
        notebook("def stable_softmax(x): return '\ud800'"),
        b"[" * 100_000,
    ],
)
def test_a_broken_notebook_is_an_exercise_less_and_never_an_exception(tmp_path, raw):
    intake = taken(tmp_path, {"ada/a.ipynb": raw, "ada/rope_both.py": b"own"})
    assert read(intake, "ada")["rope_both"] == b"own"


def test_what_a_packed_homework_says_of_itself_becomes_notes(tmp_path):
    note = {"homework": "hw9", "student": "mallory", "files": {}, "made_with": {**fingerprint(), "numpy": "1.0\x1b"}}
    packed = zipped({"stable_softmax.py": b"1", PACK_NOTE: json.dumps(note).encode()})
    intake = taken(tmp_path, {"ada.zip": packed, "bob.zip": zipped({PACK_NOTE: b"[]"})})
    assert read(intake, "ada") == {"stable_softmax": b"1"}
    told = [note.note for note in intake.notes]
    assert told[:2] == ["was packed as hw9", "was packed by mallory"]
    assert told[2].startswith("made with other versions: numpy ")
    assert "\x1b" not in told[2]
    assert told[3] == "cannot be read; it says nothing about the files"
