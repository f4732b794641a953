"""What lateness costs, by arithmetic done by hand."""

from datetime import datetime, timedelta, timezone

import pytest

from llminfer.grading.late import LatePolicy

DUE = datetime.fromisoformat("2027-03-01T23:59:00+01:00")


@pytest.mark.parametrize(
    ("late", "days"),
    [(-5, 0), (0, 0), (10, 0), (10.5, 1), (24 * 60, 1), (24 * 60 + 1, 2), (72 * 60, 3)],
)
def test_each_begun_day_after_the_grace_counts(late, days):
    policy = LatePolicy(grace_minutes=10, percent_per_day=10)
    assert policy.days_late(DUE + timedelta(minutes=late), DUE) == days


def test_the_offset_of_the_clock_does_not_matter():
    same_moment = DUE.astimezone(timezone(timedelta(hours=-8)))
    assert LatePolicy().days_late(same_moment, DUE) == 0


def test_what_is_kept_falls_by_the_day_and_never_below_nothing():
    policy = LatePolicy(percent_per_day=30, last_day=4)
    assert [policy.kept(days) for days in (0, 1, 3, 4, 5)] == pytest.approx([1.0, 0.7, 0.1, 0.0, 0.0])


def test_after_the_last_day_nothing_is_kept_even_without_a_percentage():
    assert [LatePolicy(last_day=2).kept(days) for days in (2, 3)] == [1.0, 0.0]


@pytest.mark.parametrize("wrong", [{"grace_minutes": -1}, {"percent_per_day": 101}, {"last_day": -1}])
def test_a_policy_that_cannot_be_meant_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        LatePolicy(**wrong)
