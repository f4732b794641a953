"""Class lists in the forms that Canvas and Moodle export them, and one's own."""

from pathlib import Path

import pytest

from llminfer.grading.rosters import load_roster

# The forms as the platforms write them: the line of possible points, the test student, a column of assignments.
CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Homework 1 (4711)
    Points Possible,,,,,10
"Doe, Jane",101,9001,jdoe,Sec 1,
"Núñez, José María",102,9002,jnunez,Sec 1,
"Student, Test",103,,,Sec 1,
"""
MOODLE = """Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,Last modified (grade)
Participant 1327627,Jane Doe,jane@example.edu,Submitted for grading,,10.00,Yes,-
Participant 1327628,José María Núñez,jose@example.edu,No submission,,10.00,Yes,-
"""
OWN = "id,name,email,group\nada,Ada Lovelace,ada@example.edu,g1\nbob,Bob,,g1\ncy,Cy,,\n"


def roster(folder: Path, text: str):
    (folder / "roster.csv").write_bytes(text.encode("utf-8-sig"))
    return load_roster(folder / "roster.csv")


def test_canvas_students_are_found_by_number_login_and_mangled_name(tmp_path):
    found = roster(tmp_path, CANVAS)
    assert [student.id for student in found.students] == ["jdoe", "jnunez"]
    for key in ("101", "jdoe", "doejane", "Jane Doe", "DOE, JANE"):
        assert found.find(key).id == "jdoe"
    assert found.find("nunezjosemaria").id == "jnunez"


def test_moodle_students_are_found_by_the_number_in_their_folder(tmp_path):
    found = roster(tmp_path, MOODLE)
    assert found.find("1327628", "somebody else").email == "jose@example.edu"
    assert found.find("Jane Doe").moodle_id == "1327627"


def test_members_of_a_group_are_sorted_and_a_loner_is_alone(tmp_path):
    found = roster(tmp_path, OWN)
    assert found.members("bob") == found.members("ada") == ("ada", "bob")
    assert found.members("cy") == ("cy",)


def test_a_name_that_two_students_bear_finds_neither(tmp_path):
    found = roster(tmp_path, "id,name\na1,Jane Doe\na2,Jane Doe\n")
    assert found.find("Jane Doe") is None
    assert found.find("Jane Doe", "a2").id == "a2"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("id,nmae\na,b\n", "unknown column nmae"),
        ("name\nada\n", "columns name; expected"),
        ("id,name\nada,A\nAda,B\n", "'Ada' comes twice"),
        ("id,name\n,Ada\n", "Ada has no id"),
    ],
)
def test_a_list_that_cannot_be_used_is_refused(tmp_path, text, named):
    with pytest.raises(ValueError, match=named):
        roster(tmp_path, text)


def test_another_encoding_is_named(tmp_path):
    (tmp_path / "roster.csv").write_bytes("id,name\na,José\n".encode("latin-1"))
    with pytest.raises(ValueError, match="save it as CSV UTF-8"):
        load_roster(tmp_path / "roster.csv")
