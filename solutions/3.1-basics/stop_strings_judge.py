"""The judge's side of "Stop strings across token borders"."""

from collections.abc import Iterator

import numpy as np

from llminfer.grading.spec import Call, Case, Mutant, Tolerance, Variant

VERSION = 1
TOLERANCE = Tolerance(relative=0)  # text is right or wrong


class Reference:
    """The rule, read off the whole text anew at every call."""

    def __init__(self, stops):
        if "" in stops:
            raise ValueError("the task excludes empty stop strings")
        self.stops, self.text, self.shown, self.end = stops, "", 0, None

    def push(self, text):
        if self.end is None:
            self.text += text
            open_places = [place for place in range(len(self.text)) if any(self._fits(place, s) for s in self.stops)]
            self.end = min(open_places, default=len(self.text))
        before, self.shown = self.shown, self.end
        if not self._at(self.end):
            self.end = None
        return self.text[before : self.shown]

    def finish(self):
        begins = [place for place in range(self.shown, len(self.text)) if self._at(place)]
        end = min(begins, default=len(self.text))
        if self.end is not None:
            end = self.end
        return self.text[self.shown : end], min(self._at(end), key=len, default=None)

    def _fits(self, place, stop):
        """Whether the text from here on is the stop string, as far as both go."""
        return all(a == b for a, b in zip(self.text[place:], stop, strict=False))

    def _at(self, place):
        return [stop for stop in self.stops if self.text[place : place + len(stop)] == stop]


def cases(group: str, rng: np.random.Generator) -> Iterator[Case]:
    if group == "in one piece":
        yield _case(["END"], ["no such thing here"], "a text without it")
        yield _case(["END"], ["Hello END and more"], "a stop string inside a piece")
        yield _case(["END"], ["END"], "nothing but a stop string")
        yield _case([], ["Hello", "", " there"], "no stop strings at all")
    elif group == "across pieces":
        yield _case(["User:"], ["Hello\n", "Us", "er", ": and more", "still more"], "over three pieces")
        yield _case(["END"], ["E", "N", "EMY is near", " at the EN"], "only looks like it, also at the end")
        yield _case(["aab"], ["a", "a", "a", "a", "b", "a"], "a new beginning inside what looked like one")
        yield _case(["\n\n"], ["one\n", "two\n", "\nthree"], "an empty line")
        yield _case(["日本"], ["今", "日", "は日", "本"], "characters that are not ASCII")
    elif group == "several":
        yield _case(["END", "STOP"], ["a ST", "EN", "D STOP"], "whichever comes first")
        yield _case(["bc", "abcd"], ["ab", "c", "d"], "one inside the other, and the outer one comes")
        yield _case(["bc", "abcd"], ["ab", "c", "e"], "one inside the other, and the outer one does not come")
        yield _case(["bc", "abcd"], ["ab", "c"], "one inside the other, and the text ends")
        yield _case(["stop!", "stop"], ["go, st", "op!"], "the longer one begins as the shorter")
    else:
        for _ in range(40):
            letters = "ab." if rng.random() < 0.7 else "ab"
            stops = list(dict.fromkeys(_word(rng, letters, 1, 5) for _ in range(rng.integers(1, 4))))
            yield _case(stops, [_word(rng, letters, 0, 4) for _ in range(rng.integers(1, 9))])


def _word(rng, letters, least, most) -> str:
    return "".join(rng.choice(list(letters), rng.integers(least, most)))


def _case(stops, pieces, label="") -> Case:
    calls = [Call("push", {"text": piece}) for piece in pieces] + [Call("finish", {})]
    return Case({"stops": stops}, tuple(calls), label)


COMPLETE_FIRST = """
class StopStrings:
    def __init__(self, stops):
        self.stops, self.held, self.found = stops, "", None

    def push(self, text):
        if self.found is not None:
            return ""
        text = self.held + text
        for end in range(1, len(text) + 1):
            ending = [stop for stop in self.stops if text[:end].endswith(stop)]
            if ending:
                self.found = max(ending, key=len)
                self.held = ""
                return text[: end - len(self.found)]
        sizes = [n for stop in self.stops for n in range(len(stop)) if text.endswith(stop[:n])]
        safe = len(text) - max(sizes, default=0)
        self.held = text[safe:]
        return text[:safe]

    def finish(self):
        return self.held, self.found
"""

COULD_BE = "any(stop.startswith(rest) for stop in self.stops)"
FOUND = "            if self.found is not None:\n                return text[:place]\n"
FINISH = 'return self.push(""), self.found'

MUTANTS = (
    Mutant(
        "every piece by itself",
        ((COULD_BE, "False"),),
        hint="Push the same text letter by letter: is the stop string still found?",
    ),
    Mutant(
        "holds back a fixed number",
        ((COULD_BE, "len(rest) < max(map(len, self.stops), default=0)"),),
        hint="Some characters come late, though no stop string can begin with them. A reader waits for those.",
    ),
    Mutant(
        "only all of what is held",
        ((COULD_BE, f"place == 0 and {COULD_BE}"),),
        hint="You hold text as long as all of it could be a beginning. Where in 'aaa' could 'aab' begin?",
    ),
    Mutant(
        "forgets the rest",
        ((FINISH, 'return "", self.found'),),
        hint="The text ended while you held something back that turned out to be harmless. Where did it go?",
    ),
    Mutant(
        "goes on after the stop",
        (
            ('        if self.found is not None:\n            return ""\n', ""),
            (FOUND, FOUND.replace("return", 'self.held = ""\n                return')),
        ),
        hint="What does push return once a stop string was found?",
    ),
    Mutant(
        "shows the stop string",
        ((FOUND, FOUND.replace("place]", "place + len(self.found)]")),),
        hint="Look at the last characters that were shown: does the text end before the stop string, or behind it?",
    ),
    Mutant(
        "the first that is complete",
        source=COMPLETE_FIRST,
        hint="A stop string was found, and it was there. But could another one have begun before it?",
    ),
    Mutant(
        "no search at the end",
        ((FINISH, 'return "" if self.found else self.held, self.found'),),
        hint="At finish() you held text for a stop string that never came. Is a shorter one in what you held?",
    ),
    Mutant(
        "the first in the list",
        (("sorted(stops, key=len)", "stops"),),
        hint="Two stop strings begin at the same place. Which of them does finish() name, and what if they change "
        "places in the list?",
    ),
)

AUTOMATON = '''
class StopStrings:
    """Letter by letter, with all beginnings that are still open."""

    def __init__(self, stops):
        self.stops, self.held, self.found = set(stops), "", None
        self.beginnings = {stop[:n] for stop in stops for n in range(1, len(stop) + 1)}

    def push(self, text):
        return "".join(map(self._letter, text))

    def _letter(self, letter):
        if self.found is not None:
            return ""
        self.held += letter
        shown = ""
        while self.held and self.found is None and self.held not in self.beginnings - self.stops:
            self.found = self._shortest()
            if self.found is None:
                shown, self.held = shown + self.held[0], self.held[1:]
        return shown

    def _shortest(self):
        return min((stop for stop in self.stops if self.held.startswith(stop)), key=len, default=None)

    def finish(self):
        shown = ""
        while self.held and self.found is None:
            self.found = self._shortest()
            if self.found is None:
                shown, self.held = shown + self.held[0], self.held[1:]
        return shown, self.found
'''

EXPRESSION = '''
import re


class StopStrings:
    """With regular expressions: complete, or a beginning at the end of the text."""

    def __init__(self, stops):
        stops = sorted(stops, key=len)
        whole = "|".join(map(re.escape, stops)) or "(?!)"
        part = "|".join(re.escape(stop[:n]) + r"\\Z" for stop in stops for n in range(1, len(stop))) or "(?!)"
        self.whole, self.either = re.compile(whole), re.compile(f"(?P<whole>{whole})|{part}")
        self.held, self.found = "", None

    def push(self, text):
        if self.found is not None:
            return ""
        text = self.held + text
        match = self.either.search(text)
        if match is None:
            self.held = ""
            return text
        self.found = match["whole"]
        self.held = "" if self.found else text[match.start() :]
        return text[: match.start()]

    def finish(self):
        match = self.whole.search(self.held)
        if match is None:
            return self.held, self.found
        return self.held[: match.start()], match[0]
'''

HONEST = (
    Variant("letter by letter", source=AUTOMATON),
    Variant("regular expressions", source=EXPRESSION),
    Variant(
        "keeps everything it has read",
        source="""
class StopStrings:
    def __init__(self, stops):
        self.stops, self.text, self.shown = stops, "", 0

    def push(self, text):
        self.text += text
        end = self._first(lambda rest, stop: rest.startswith(stop) or stop.startswith(rest))
        before, self.shown = self.shown, max(end, self.shown)
        return self.text[before:end]

    def finish(self):
        end = self._first(str.startswith)
        at_end = [stop for stop in self.stops if self.text[end:].startswith(stop)]
        return self.text[self.shown : end], min(at_end, key=len, default=None)

    def _first(self, begins):
        places = range(len(self.text))
        return next((p for p in places if any(begins(self.text[p:], s) for s in self.stops)), len(self.text))
""",
    ),
)
