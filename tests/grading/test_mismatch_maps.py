"""Which elements are wrong, drawn and in words."""

import numpy as np
import pytest

from llminfer.grading.mismatch_maps import COLUMNS, ROWS, mismatch_map, pattern


def test_a_small_array_is_drawn_element_by_element():
    wrong = np.zeros((3, 8), bool)
    wrong[1:, 4:] = True
    lost = np.zeros_like(wrong)
    lost[2, 7] = True
    assert mismatch_map(wrong, lost).splitlines() == [
        "   0    5",
        "0  ........",
        "1  ....xxxx",
        "2  ....xxxN",
        "   . right   x wrong   N NaN or infinite",
    ]


def test_leading_axes_are_rows_under_their_own_index():
    wrong = np.zeros((2, 2, 3), bool)
    wrong[1, 0, 2] = True
    assert mismatch_map(wrong).splitlines()[1:5] == ["0,0  ...", "0,1  ...", "1,0  ..x", "1,1  ..."]


def test_a_large_array_is_drawn_in_tiles_that_fit():
    wrong = np.zeros((100, 1000), bool)
    wrong[0, 0] = True
    wrong[54:63, 500:] = True
    lines = mismatch_map(wrong).splitlines()
    assert len(lines) <= ROWS + 2
    assert max(map(len, lines[1:-1])) <= COLUMNS + 5
    assert lines[1].startswith(" 0  o...")
    assert lines[7].endswith("xxx")
    assert "one character: 9 x 18 elements" in lines[-1]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (np.eye(4, dtype=bool), "exactly those on the diagonal"),
        (np.triu(np.ones((2, 4, 4), bool), 1), "exactly those above the diagonal"),
        (np.tril(np.ones((4, 6), bool)), "exactly those on or below the diagonal"),
        (np.arange(10) % 2 == 1, "only in places 1, 3, 5, ..."),
        (np.arange(10) > 7, "only in places 8-9"),
        (np.pad(np.ones((1, 2), bool), ((1, 2), (0, 3))), "only in columns 0-1 of row 1"),
        (np.ones((3, 3), bool), ""),
    ],
)
def test_patterns_in_words(wrong, words):
    assert pattern(wrong) == words
