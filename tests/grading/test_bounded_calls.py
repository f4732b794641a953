"""A program of ours that would not end is ended, after the same number of instructions on any machine."""

import sys

import pytest

from llminfer.grading.bounded_calls import TooManyStepsError, bounded


def endless(start: int) -> int:
    while True:
        try:
            start += 1
        except Exception:
            raise AssertionError("the end of a call is no Exception") from None


def on_one_line() -> None:
    while True: pass  # fmt: skip  # noqa: E701


def counted(number: int) -> int:
    total = 0
    for each in range(number):
        total += each
    return total


@pytest.mark.parametrize(("function", "arguments"), [(endless, (3,)), (on_one_line, ()), (counted, (10_000,))])
def test_what_takes_too_many_steps_is_ended(function, arguments):
    with pytest.raises(TooManyStepsError, match="more than 1000 instructions"):
        bounded(1000, function, *arguments)


def test_a_call_that_ends_gives_its_value_whatever_its_arguments_are_called():
    assert bounded(1000, counted, number=10) == 45
    assert bounded(1000, lambda steps, function: (steps, function), steps=1, function=2) == (1, 2)
    assert bounded(None, counted, 100_000) == 4999950000


def test_what_traced_before_traces_afterwards():
    before = sys.gettrace()
    bounded(1000, counted, 1)
    assert sys.gettrace() is before
