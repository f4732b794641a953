"""Distributions before and after a rule: what the bars and the table say, and what is refused."""

import numpy as np
import pytest

from llminfer.core.plots import alt_text, data_table, distributions, show

ALT = "What two rules leave of a made-up distribution over six tokens, drawn by a test."
BEFORE = np.array([0.05, 0.4, 0.2, 0.1, 0.15, 0.1])
TOKENS = ["one", "two"]  # of the two most probable ones: ids 1 and 2
CUT = np.array([0, 2 / 3, 1 / 3, 0, 0, 0])
FLAT = np.full(6, 1 / 6)


def drawn(before=BEFORE, after=None, tokens=TOKENS, **kwargs):
    return distributions(before, after or {"cut": CUT, "flat": FLAT}, tokens, **{"alt": ALT, **kwargs})


def filled(axes) -> list[float]:
    return [bar.get_width() for bar in axes.patches if bar.get_fill()]


def hollow(axes) -> list[float]:
    return [bar.get_width() for bar in axes.patches if not bar.get_fill()]


def test_the_last_bar_holds_all_tokens_that_are_not_named():
    cut, flat, *_ = drawn().axes
    assert filled(cut) == pytest.approx([2 / 3, 1 / 3, 0])
    assert filled(flat) == pytest.approx([1 / 6, 1 / 6, 4 / 6])
    assert [label.get_text() for label in cut.get_yticklabels()] == ["one", "two", "4 others"]


def test_every_panel_has_the_distribution_before_as_an_outline():
    for axes in drawn().axes[:2]:
        assert hollow(axes) == pytest.approx([0.4, 0.2, 0.4])


def test_a_panel_says_how_many_tokens_are_left():
    titles = [axes.get_title(loc="left") for axes in drawn().axes]
    assert titles[:2] == ["cut\n2 tokens left", "flat\n6 tokens left"]
    alone = drawn(after={"greedy": np.eye(6)[1]})
    assert alone.axes[0].get_title(loc="left") == "greedy\n1 token left"


def test_a_cross_stands_where_nothing_is_left():
    cut, flat, *_ = drawn().axes
    crosses = [line.get_ydata().tolist() for line in cut.lines if line.get_marker() == "x"]
    assert crosses == [[2]]
    assert [line for line in flat.lines if line.get_marker() == "x"] == []


def test_the_most_probable_token_is_on_top():
    assert drawn().axes[0].yaxis_inverted()


def test_the_table_has_a_row_for_each_distribution():
    table = data_table(drawn())
    assert table.columns == ("distribution", "one", "two", "4 others", "tokens left")
    assert [row[0] for row in table.rows] == ["before", "cut", "flat"]
    assert table.rows[1][1:] == pytest.approx((2 / 3, 1 / 3, 0, 2))


def test_panels_that_are_not_needed_do_not_show():
    figure = drawn(after={f"rule {i}": FLAT for i in range(4)})
    assert [axes.get_visible() for axes in figure.axes] == [True] * 4 + [False] * 2


def test_a_notebook_gets_picture_words_and_table():
    figure = drawn(title="Two rules")
    assert alt_text(figure) == ALT
    assert "<td>flat</td>" in show(figure)._repr_html_()


@pytest.mark.parametrize("after", [{"cut": CUT}, {f"rule {i}": CUT for i in range(9)}])
def test_nothing_is_cut_off_and_panels_do_not_run_into_each_other(after):
    figure = drawn(after=after, title="Some rules")
    figure.canvas.draw()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert -0.01 <= box.x0 <= box.x1 <= width + 0.01
    assert -0.01 <= box.y0 <= box.y1 <= height + 0.01
    boxes = [axes.get_tightbbox() for axes in figure.axes if axes.get_visible()]
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])


@pytest.mark.parametrize("alt", ["", "Distributions"])
def test_a_picture_without_words_for_it_is_refused(alt):
    with pytest.raises(ValueError, match="alt must say in a sentence or two"):
        drawn(alt=alt)


def test_logits_are_not_taken_for_probabilities():
    with pytest.raises(ValueError, match=r"'cut' sum to 0.0.*softmax\(logits\), not logits"):
        drawn(after={"cut": np.array([2.0, -1.0, -1.0, 0.0, 0.0, 0.0])})
    with pytest.raises(ValueError, match="'before' sum to 12"):
        drawn(before=np.full(6, 2.0))


def test_distributions_over_different_vocabularies_are_refused():
    with pytest.raises(ValueError, match="'short' has 5 tokens, before it were 6"):
        drawn(after={"short": np.full(5, 0.2)})


@pytest.mark.parametrize(("after", "tokens"), [({}, TOKENS), ({"cut": CUT}, []), ({"cut": CUT}, ["t"] * 6)])
def test_nothing_to_draw_is_said(after, tokens):
    with pytest.raises(ValueError, match="at least one distribution and from 1 to 5 tokens"):
        distributions(BEFORE, after, tokens, alt=ALT)
