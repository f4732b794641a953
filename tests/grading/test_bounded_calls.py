"""A program of ours that would not end is ended, after the same number of lines on any machine."""

import sys

import pytest

from llminfer.grading.bounded_calls import TooManyLinesError, bounded


def endless(start: int) -> int:
    while True:
        try:
            start += 1
        except Exception:
            raise AssertionError("the end of a call is no Exception") from None


def counted(number: int) -> int:
    total = 0
    for each in range(number):
        total += each
    return total


def test_a_loop_without_an_end_is_ended():
    with pytest.raises(TooManyLinesError, match="more than 1000 lines"):
        bounded(1000, endless, 3)


def test_a_call_that_ends_gives_its_value_whatever_its_arguments_are_called():
    assert bounded(1000, counted, number=10) == 45
    assert bounded(1000, lambda lines, function: (lines, function), lines=1, function=2) == (1, 2)
    assert bounded(None, counted, 1000) == 499500


def test_the_count_is_of_lines_and_not_of_time():
    with pytest.raises(TooManyLinesError):
        bounded(1000, counted, 1000)


def test_what_traced_before_traces_afterwards():
    before = sys.gettrace()
    bounded(10, counted, 1)
    assert sys.gettrace() is before
