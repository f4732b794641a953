"""Whose file it is, in the forms in which Canvas, Moodle and Gradescope hand submissions over."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from llminfer.grading.archives import Member
from llminfer.grading.owners import gradescope_owners, owned

STEMS = ("softmax", "online_softmax", "top_p")


def found(*paths: str, known=lambda name: False) -> dict[str, tuple[str, ...] | None]:
    """The keys of the owner, by path and by the path that is left."""
    members = [Member(tuple(path.split("/")), lambda limit: b"") for path in paths]
    return {
        "/".join(each.member.path): each.owner and each.owner.people[0].keys for each in owned(members, STEMS, known)
    }


def test_canvas_names_student_lateness_and_upload_before_the_file():
    paths = ("doejane_101_4711_top_p-1.py", "roebob_LATE_102_4712_softmax.py")
    assert found(*paths) == {"top_p-1.py": ("101", "doejane"), "softmax.py": ("102", "roebob")}
    [late] = [
        each.owner.late for each in owned([Member((paths[1],), lambda limit: b"")], STEMS, known=lambda name: False)
    ]
    assert late


def test_moodle_names_the_participant_in_the_folder_or_before_the_file():
    assert found("Jane Doe_1327627_assignsubmission_file_/hw/top_p.py") == {"hw/top_p.py": ("1327627", "Jane Doe")}
    assert found("Jo_Ann Roe_1327628_assignsubmission_file_top_p.py") == {"top_p.py": ("1327628", "Jo_Ann Roe")}
    assert found("Jane Doe_1327627_assignsubmission_file/top_p.py") == {"top_p.py": ("1327627", "Jane Doe")}


def test_plain_folders_archives_and_loose_files_are_named_by_their_owner():
    assert found("ada/softmax.py", "bob.zip", "cy_top_p.py", "dee-online_softmax (1).py", "notes.txt") == {
        "top_p.py": ("cy",),
        "bob.zip": ("bob",),
        "online_softmax (1).py": ("dee",),
        "notes.txt": None,
        "softmax.py": ("ada",),
    }


def test_one_folder_around_everything_is_looked_through():
    assert found("download/ada/top_p.py", "download/bob/top_p.py") == {"top_p.py": ("bob",)}
    assert found("all/ada.zip", "all/bob.zip") == {"ada.zip": ("ada",), "bob.zip": ("bob",)}
    assert found("all/doejane_1_2_top_p.py", "all/roebob_3_4_softmax.py") == {
        "top_p.py": ("1", "doejane"),
        "softmax.py": ("3", "roebob"),
    }


def test_a_class_of_one_is_not_looked_through():
    assert found("ada/hw1/top_p.py", known=lambda name: name == "ada") == {"hw1/top_p.py": ("ada",)}
    assert found("ada/top_p.py", "ada/softmax.py") == {"top_p.py": ("ada",), "softmax.py": ("ada",)}


# The form of the export, with a student's output that tries to look like a submitter.
METADATA = """---
submission_1:
  :submitters:
  - :name: Jane Doe
    :sid: '100'
    :email: jane@example.edu
  - :name: "Bob \\"B\\" Roe"
    :sid:
    :email: bob@example.edu
  :created_at: 2027-03-01 22:10:35.123456789 Z
  :score: 1.0
  :results:
    output: |
      submission_2:
        :submitters:
        - :sid: '666'
    tests: []
  :history:
  - :created_at: 2027-02-01 10:00:00.0 Z
    :score: 0.0
submission_2:
  :created_at: 2027-03-02 00:00:00 +01:00
  :submitters:
  - :name: O''Hara
    :sid: '200'
"""


def test_gradescope_says_who_and_when():
    owners = gradescope_owners(METADATA)
    assert [person.keys for person in owners["submission_1"].people] == [
        ("100", "jane@example.edu", "Jane Doe"),
        ("bob@example.edu", 'Bob "B" Roe'),
    ]
    assert owners["submission_1"].submitted == datetime(2027, 3, 1, 22, 10, 35, tzinfo=UTC)
    assert owners["submission_2"].submitted == datetime(2027, 3, 2, tzinfo=timezone(timedelta(hours=1)))
    assert [person.keys[0] for person in owners["submission_2"].people] == ["200"]


def test_a_gradescope_export_is_read_by_its_folders():
    text = METADATA.encode()
    members = [
        Member(("export", "submission_metadata.yml"), lambda limit: text),
        Member(("export", "submission_1", "top_p.py"), lambda limit: b""),
        Member(("export", "submission_9", "top_p.py"), lambda limit: b""),
    ]
    first, stranger = owned(members, STEMS, known=lambda name: False)
    assert first.member.path == ("top_p.py",)
    assert first.owner.people[0].keys[0] == "100"
    assert stranger.owner is None


LINES = st.sampled_from(
    [*METADATA.splitlines(), "  :created_at: 2027-02-31 00:00:00 Z", "  - :sid: '", '    :name: "\\u12"']
)


@given(st.lists(st.one_of(LINES, st.text(max_size=20)), max_size=20).map("\n".join))
def test_any_text_is_read_as_metadata_without_an_exception(text):
    for owner in gradescope_owners(text).values():
        assert owner.people
        assert all(person.keys for person in owner.people)


def test_no_letter_in_a_value_begins_a_line():
    forged = METADATA.replace("O''Hara", "x\u2028submission_1:\x85  :submitters:\x0b  - :sid: '666'")
    assert [person.keys[0] for person in gradescope_owners(forged)["submission_1"].people] == ["100", "bob@example.edu"]
