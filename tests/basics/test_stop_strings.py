"""Stop strings are found wherever the text is cut into parts, and no more is held back than must be."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llminfer.basics.stop_strings import StopStrings

TEXT = st.text("ab.", max_size=20)
STOPS = st.lists(st.text("ab.", min_size=1, max_size=4), max_size=3)


def parts(data, text: str) -> list[str]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def by_definition(text: str, stops: list[str]) -> tuple[str, str | None]:
    """Read letter by letter until what was read ends with a stop string; the longest such is cut off."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            longest = max(found, key=len)
            return text[: end - len(longest)], longest
    return text, None


@settings(deadline=None)
@given(data=st.data(), text=TEXT, stops=STOPS)
def test_the_outcome_is_that_of_reading_letter_by_letter(data, text, stops):
    watch = StopStrings(stops)
    shown = "".join(watch.push(part) for part in parts(data, text)) + watch.flush()
    assert (shown, watch.found) == by_definition(text, stops)


@settings(deadline=None)
@given(data=st.data(), text=TEXT, stops=STOPS)
def test_only_the_beginning_of_a_stop_string_is_held_back(data, text, stops):
    watch, pushed, shown = StopStrings(stops), "", ""
    for part in parts(data, text):
        pushed += part
        shown += watch.push(part)
        if watch.found:
            return
        held = pushed.removeprefix(shown)
        assert not held or any(stop.startswith(held) and stop != held for stop in stops)


def test_a_stop_string_across_three_parts_is_never_shown():
    watch = StopStrings(["\nUser:"])
    assert [watch.push(part) for part in ("Hello\n", "Us", "er", ": and more")] == ["Hello", "", "", ""]
    assert watch.found == "\nUser:"
    assert watch.flush() == ""


def test_what_only_looked_like_a_stop_string_comes_later():
    watch = StopStrings(["END"])
    assert [watch.push(part) for part in ("E", "N", "E", "N")] == ["", "", "EN", ""]
    assert watch.flush() == "EN"


def test_nothing_comes_after_a_stop_string():
    watch = StopStrings(["."])
    assert watch.push("a.b") == "a"
    assert watch.push("c") == ""


def test_an_empty_stop_string_is_refused():
    with pytest.raises(ValueError, match="at least one character"):
        StopStrings(["a", ""])
