"""A result goes to JSON and comes back the same; what is not one is refused by the name of the field."""

import json

import pytest

from llminfer.grading.results import ExerciseResult, Failure, GroupResult, Status

RESULT = ExerciseResult(
    exercise="3.1/top_p",
    title="Top-p",
    version=2,
    status=Status.WRONG,
    points=2.0,
    max_points=6.5,
    groups=(
        GroupResult("small", True, 2.0, 2.0, 3, 3, Status.OK, "rows"),
        GroupResult("large", True, 0.0, 1.5, 1, 2, Status.WRONG),
        GroupResult("any", False, 0.0, 3.0, 0, 0, Status.NOT_RUN),
    ),
    failure=Failure("large", Status.WRONG, "2 of 3 wrong", worst_index=(0, 2), error=0.5, allowed=1e-5),
    seconds=0.25,
    isolation="bwrap",
    fingerprint={"numpy": "2.4"},
)


def test_a_result_survives_the_way_through_json():
    assert ExerciseResult.from_json(json.loads(json.dumps(RESULT.to_json()))) == RESULT


def test_visible_groups_alone_decide_a_students_own_run():
    assert not RESULT.visible_right
    assert RESULT.hidden_points == 3.0
    right = ExerciseResult("a", "A", 1, Status.OK, 2, 5, (RESULT.groups[0], RESULT.groups[2]))
    assert right.visible_right


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"score": 3}, "unknown field score"),
        ({"status": "passed"}, "'passed' is not a valid Status"),
        ({"groups": [{"name": "small", "status": "ok"}]}, "missing"),
        ({"failure": {"group": "a", "status": "wrong", "message": "", "secret": 1}}, "unknown field secret"),
    ],
)
def test_what_is_no_result_is_refused(change, complaint):
    with pytest.raises(ValueError, match=complaint):
        ExerciseResult.from_json(RESULT.to_json() | change)
