"""Regular expressions, read: the part of Python's syntax that describes a regular language, as an `Expression`.

Understood: characters, `.`, classes `[a-z]` and `[^a-z]`, escapes (`\\d \\w \\s` and their opposites, ASCII as under
`re.ASCII` and in ECMA-262; `\\n \\t \\r \\f \\v \\a \\0 \\xHH \\uHHHH \\UHHHHHHHH`), `|`, groups (plain, `(?:...)`,
named), `* + ?` and `{m,n}`, greedy or lazy, which is the same language. `^ \\A $ \\Z` may begin or end the expression
or one of its outermost alternatives. As in `re`, `.` is every character but a line end.

Refused by name: lookaround, backreferences, word boundaries, flags, atomic groups, possessive repetition, `\\p{...}`.
"""

import re
from dataclasses import dataclass

from llminfer.basics.expressions import (
    UNICODE,
    Characters,
    Choice,
    Expression,
    Ranges,
    Repeat,
    Sequence,
    complement,
    united,
)

MAX_NESTING = 30
DIGIT: Ranges = ((0x30, 0x39),)
WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE: Ranges = ((0x09, 0x0D), (0x20, 0x20))
ANY_BUT_LINE_END: Ranges = complement(((0x0A, 0x0A),))
CLASSES = {"d": DIGIT, "w": WORD, "s": SPACE, "D": complement(DIGIT), "W": complement(WORD), "S": complement(SPACE)}
CONTROLS = {"n": 0x0A, "t": 0x09, "r": 0x0D, "f": 0x0C, "v": 0x0B, "a": 0x07, "0": 0x00}
HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
REPETITION = re.compile(r"\{(?!\})(\d*)(,(\d*))?\}")
REFUSED_GROUPS = {
    "(?=": "lookahead", "(?!": "negative lookahead", "(?<=": "lookbehind", "(?<!": "negative lookbehind",
    "(?>": "an atomic group", "(?P=": "a backreference", "(?(": "a conditional", "(?#": "a comment",
}  # fmt: skip


@dataclass(frozen=True)
class Alternative:
    """One of the outermost alternatives of an expression, and whether it says where a text begins and ends."""

    expression: Expression
    begins: bool
    ends: bool


def parse_regular_expression(pattern: str) -> Expression:
    """What the pattern matches as a whole (`re.fullmatch`).

    Raises ValueError, naming construct and place, for what is malformed or not understood here.
    """
    return Choice(tuple(alternative.expression for alternative in parse_alternatives(pattern)))


def parse_search(pattern: str) -> Expression:
    """The texts in which the pattern is found (`re.search`): anything before and after, where no anchor forbids it.

    Raises as `parse_regular_expression` does.
    """
    anything = Repeat(Characters(UNICODE))
    return Choice(
        tuple(
            Sequence((*(() if a.begins else (anything,)), a.expression, *(() if a.ends else (anything,))))
            for a in parse_alternatives(pattern)
        )
    )


def parse_alternatives(pattern: str) -> tuple[Alternative, ...]:
    """The outermost alternatives, with their anchors. Raises as `parse_regular_expression` does."""
    parser = _Parser(pattern)
    alternatives = [parser.alternative()]
    while parser.take("|"):
        alternatives.append(parser.alternative())
    if parser.rest:
        raise parser.error("an unmatched )")
    return tuple(alternatives)


class _Parser:
    """Recursive descent; `place` is the index of the next character."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.place = 0
        self.depth = 0

    @property
    def rest(self) -> str:
        """The next character, or nothing at the end."""
        return self.pattern[self.place : self.place + 1]

    def take(self, text: str) -> bool:
        """Step over `text` if it comes next."""
        found = self.pattern.startswith(text, self.place)
        self.place += len(text) * found
        return found

    def error(self, what: str) -> ValueError:
        return ValueError(f"regular expression {self.pattern!r}, index {self.place}: {what}")

    def refusal(self, what: str) -> ValueError:
        return self.error(f"{what} is not supported; only what a finite automaton can match is")

    def alternative(self) -> Alternative:
        begins = ends = False
        while self.take("^") or self.take(r"\A"):
            begins = True
        parts = []
        while self.rest and self.rest not in "|)":
            if self.take("$") or self.take(r"\Z"):
                ends = True
            elif ends:
                raise self.error("an end ($) inside of an expression; it may stand at its end only")
            else:
                parts.append(self.repeated())
        return Alternative(Sequence(tuple(parts)), begins, ends)

    def group(self) -> Expression:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.error(f"groups nested more than {MAX_NESTING} deep")
        options = [self.inner_sequence()]
        while self.take("|"):
            options.append(self.inner_sequence())
        if not self.take(")"):
            raise self.error("a group is not closed; expected )")
        self.depth -= 1
        return Choice(tuple(options)) if len(options) > 1 else options[0]

    def inner_sequence(self) -> Expression:
        parts = []
        while self.rest and self.rest not in "|)":
            parts.append(self.repeated())
        return Sequence(tuple(parts))

    def repeated(self) -> Expression:
        item = self.atom()
        counts = self.counts()
        if counts is None:
            return item
        if self.take("+"):
            raise self.refusal("possessive repetition")
        self.take("?")  # lazy: the same texts match
        if self.rest and self.rest in "*+?" or REPETITION.match(self.pattern, self.place):
            raise self.error("a repetition of a repetition; put the first one in a group")
        return Repeat(item, *counts)

    def counts(self) -> tuple[int, int | None] | None:
        """(minimum, maximum) of the repetition that comes next, if one does; steps over it."""
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return counts
        found = REPETITION.match(self.pattern, self.place)
        if not found:  # as in `re`, a brace that counts nothing is a character
            return None
        low, comma, high = found.groups()
        minimum = int(low or 0)
        maximum = (int(high) if high else None) if comma else minimum
        if maximum is not None and maximum < minimum:
            raise self.error(f"{found[0]} ends below where it begins")
        self.place = found.end()
        return minimum, maximum

    def atom(self) -> Expression:
        if self.rest == "(":
            return self.opened_group()
        if self.take("["):
            return Characters(self.character_class())
        if self.take("."):
            return Characters(ANY_BUT_LINE_END)
        if self.rest in "*+?":
            raise self.error(f"{self.rest} repeats nothing; write \\{self.rest} for the character")
        if self.rest in "^$" or self.pattern.startswith((r"\A", r"\Z"), self.place):
            raise self.error("an anchor inside of an expression; it may begin or end one of its outermost alternatives")
        return Characters(self.character(in_class=False))

    def opened_group(self) -> Expression:
        for opening, name in REFUSED_GROUPS.items():
            if self.pattern.startswith(opening, self.place):
                raise self.refusal(f"{name}, {opening}...)")
        named = re.compile(r"\(\?P<\w+>").match(self.pattern, self.place)
        if named:
            self.place = named.end()
        elif not self.take("(?:"):
            if self.pattern.startswith("(?", self.place):
                raise self.refusal(f"a flag, {self.pattern[self.place : self.place + 4]}...")
            self.take("(")
        return self.group()

    def character_class(self) -> Ranges:
        opposite = self.take("^")
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self.rest != "]":
            if not self.rest:
                raise self.error("a class is not closed; expected ]")
            first = False
            low = self.character(in_class=True)
            if self.rest == "-" and self.pattern[self.place + 1 : self.place + 2] not in ("]", ""):
                self.take("-")
                high = self.character(in_class=True)
                if len(low) != 1 or len(high) != 1 or low[0][0] != low[0][1] or high[0][0] != high[0][1]:
                    raise self.error("a range must lie between two characters")
                if high[0][0] < low[0][0]:
                    raise self.error(f"the range {chr(low[0][0])}-{chr(high[0][0])} runs backwards")
                ranges.append((low[0][0], high[0][0]))
            else:
                ranges += low
        self.take("]")
        return complement(united(ranges)) if opposite else united(ranges)

    def character(self, in_class: bool) -> Ranges:
        """One character, escaped or not, or a class by its letter."""
        if not self.take("\\"):
            return self.single(ord(self.step()))
        if not self.rest:
            raise self.error("a backslash with nothing after it")
        letter = self.step()
        if letter in CLASSES:
            return CLASSES[letter]
        if letter in HEX_DIGITS:
            return self.single(self.hexadecimal(HEX_DIGITS[letter]))
        if letter == "b" and in_class:
            return self.single(0x08)
        if letter in CONTROLS and not (letter == "0" and self.rest.isdigit()):
            return self.single(CONTROLS[letter])
        if letter.isdigit():
            raise self.refusal(f"a backreference or octal number, \\{letter}")
        if letter in "bB":
            raise self.refusal(f"a word boundary, \\{letter}")
        if letter in "pP":
            raise self.refusal(f"a Unicode property, \\{letter},")
        if letter.isascii() and letter.isalpha():
            raise self.error(f"an unknown escape, \\{letter}")
        return self.single(ord(letter))

    def single(self, code_point: int) -> Ranges:
        if 0xD800 <= code_point <= 0xDFFF or code_point > 0x10FFFF:
            raise self.error(f"{code_point:#x} is no character")
        return ((code_point, code_point),)

    def hexadecimal(self, width: int) -> int:
        digits = self.pattern[self.place : self.place + width]
        if not re.fullmatch(rf"[0-9a-fA-F]{{{width}}}", digits):
            raise self.error(f"expected {width} hexadecimal digits, got {digits!r}")
        self.place += width
        return int(digits, 16)

    def step(self) -> str:
        self.place += 1
        return self.pattern[self.place - 1]
