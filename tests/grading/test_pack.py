"""The zip that a student hands in is the one that the teacher's intake reads."""

import json
import zipfile

import pytest

from llminfer.grading.intake import take_in
from llminfer.grading.pack import pack
from llminfer.grading.pack_notes import PACK_NOTE
from llminfer.grading.rosters import Roster, Student
from llminfer.grading.spec import all_exercises

EXERCISES = {exercise.name: exercise for exercise in all_exercises("3.1")}
SOFTMAX, ROPE = EXERCISES["stable_softmax"], EXERCISES["rope_both"]


@pytest.fixture
def homework(course):
    return course.find("hw1")


def test_a_packed_homework_is_taken_in_byte_by_byte(homework, tmp_path):
    (tmp_path / "in").mkdir()
    file = tmp_path / "stable_softmax.py"
    file.write_bytes(b"# caf\xe9\r\nmine")
    packed = pack(homework, {SOFTMAX: file, ROPE: None}, tmp_path / "in" / "ada.zip", student="ada")
    assert (packed.files, packed.missing) == (("stable_softmax.py",), ("rope_both.py",))
    intake = take_in(tmp_path / "in", homework, Roster((Student("ada"),)), tmp_path / "out")
    assert intake.notes == ()
    assert intake.submission_of("ada").files[SOFTMAX.id].read_bytes() == b"# caf\xe9\r\nmine"


def test_the_zip_says_whose_it_is_and_what_made_it(homework, tmp_path):
    packed = pack(homework, {ROPE: ROPE.starter}, tmp_path / "hw1.zip", student="ada")
    with zipfile.ZipFile(packed.path) as archive:
        note = json.loads(archive.read(PACK_NOTE))
    assert (note["homework"], note["student"], list(note["files"])) == ("hw1", "ada", ["rope_both.py"])
    assert note["made_with"]["numpy"]
    assert packed.unchanged == ("rope_both.py",)


def test_packing_twice_gives_the_same_sum(homework, tmp_path):
    first = pack(homework, {ROPE: ROPE.starter}, tmp_path / "a.zip")
    assert pack(homework, {ROPE: ROPE.starter}, tmp_path / "b.zip").sha256 == first.sha256


def test_nothing_to_pack_is_said_with_the_names_that_are_looked_for(homework, tmp_path):
    with pytest.raises(ValueError, match="stable_softmax.py, rope_both.py"):
        pack(homework, {SOFTMAX: None, ROPE: None}, tmp_path / "hw1.zip")


def test_a_file_that_would_not_be_graded_is_refused_before_the_deadline(homework, tmp_path):
    (tmp_path / "rope_both.py").write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(ValueError, match="rope_both.py has 1048577 bytes"):
        pack(homework, {ROPE: tmp_path / "rope_both.py"}, tmp_path / "hw1.zip")
