"""EBNF, read: the notation of the W3C's specifications (`name ::= expression`) with the literals of llama.cpp's GBNF.

    root   ::= "[" item ("," item)* "]"      one after the other; ( ) groups
    item   ::= number | word                 one or the other
    number ::= [0-9]+ | "-" [0-9]{1,3}       * + ? {n} {n,} {n,m}
    word   ::= 'a' #x62 [^a-z\\n] .           literals in either quotes, a code point, a class, any character but \\n

Literals and classes know the escapes of `regular_expressions`, in literals also of their quotes. A comment is
`/* ... */`, or what follows a `#` that begins no code point, to the line's end. Names are letters, digits, - and _.
A rule ends where the next `name ::=` begins. The text begins with the rule `root`, or with the first one.
W3C's subtraction (`A - B`) is refused by name.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from llminfer.basics.expressions import Choice, Expression, Repeat, Rule, Sequence
from llminfer.basics.regular_expressions import MAX_NESTING, parse_regular_expression

TOKEN = re.compile(
    r"""
      (?P<space> \s+ | /\*.*?\*/ | \#(?!x[0-9a-fA-F]+\b)[^\n]* )
    | (?P<define> [A-Za-z_][\w-]* \s* ::= )
    | (?P<name> [A-Za-z_][\w-]* )
    | (?P<literal> "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' )
    | (?P<class> \[\^?\]?(?:\\.|[^\]\\])*\] | \. )
    | (?P<code> \#x[0-9a-fA-F]+ )
    | (?P<count> [*+?] | \{\s*\d+\s*(?:,\s*\d*\s*)?\} )
    | (?P<sign> [()|] )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    line: int


def parse_ebnf(text: str) -> tuple[dict[str, Expression], str]:
    """(rules by name, the name of the rule that a text begins with).

    Raises ValueError, naming the line, for what is malformed, and for rules that are missing or defined twice.
    """
    parser = _Parser(list(_tokens(text)))
    rules: dict[str, Expression] = {}
    while parser.next.kind != "end":
        name = parser.expect("define").text.split(":")[0].strip()
        if name in rules:
            raise parser.error(f"the rule {name!r} is defined twice; write its alternatives with |")
        rules[name] = parser.choice(0)
    if not rules:
        raise ValueError('the EBNF has no rule; expected such as  root ::= "yes" | "no"')
    for name, line in parser.named.items():
        if name not in rules:
            raise ValueError(f"EBNF, line {line}: there is no rule {name!r}; there are {', '.join(rules)}")
    return rules, "root" if "root" in rules else next(iter(rules))


class _Parser:
    """Recursive descent over tokens; `named` are the rules named so far and where."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.place = 0
        self.named: dict[str, int] = {}

    @property
    def next(self) -> Token:
        return self.tokens[self.place]

    def error(self, what: str) -> ValueError:
        return ValueError(f"EBNF, line {self.next.line}: {what}")

    def step(self) -> Token:
        self.place += 1
        return self.tokens[self.place - 1]

    def expect(self, kind: str, text: str | None = None) -> Token:
        if self.next.kind != kind or text not in (None, self.next.text):
            wanted = text or {"define": "a rule (name ::= ...)"}.get(kind, kind)
            raise self.error(f"expected {wanted}, got {self.next.text or 'the end'!r}")
        return self.step()

    def choice(self, depth: int) -> Expression:
        if depth > MAX_NESTING:
            raise self.error(f"groups nested more than {MAX_NESTING} deep; name the inner ones as rules")
        options = [self.sequence(depth)]
        while self.next.text == "|" and self.next.kind == "sign":
            self.step()
            options.append(self.sequence(depth))
        return Choice(tuple(options)) if len(options) > 1 else options[0]

    def sequence(self, depth: int) -> Expression:
        parts = []
        while self.next.kind in ("name", "literal", "class", "code") or self.next == Token("sign", "(", self.next.line):
            parts.append(self.repeated(depth))
        return Sequence(tuple(parts))

    def repeated(self, depth: int) -> Expression:
        item = self.item(depth)
        while self.next.kind == "count":
            item = Repeat(item, *self.counts(self.next.text))
            self.step()
        return item

    def counts(self, text: str) -> tuple[int, int | None]:
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if text in simple:
            return simple[text]
        low, comma, high = (part.strip() for part in text[1:-1].partition(","))
        counts = (int(low), (int(high) if high else None) if comma else int(low))
        if counts[1] is not None and counts[1] < counts[0]:
            raise self.error(f"{text} ends below where it begins")
        return counts

    def item(self, depth: int) -> Expression:
        token = self.next
        match token.kind:
            case "sign":
                self.step()
                inside = self.choice(depth + 1)
                self.expect("sign", ")")
                return inside
            case "name":
                self.named.setdefault(token.text, token.line)
                result: Expression = Rule(token.text)
            case "code":
                result = self.characters(rf"\U{int(token.text[2:], 16):08x}")
            case "literal":
                result = self.characters(self.literal(token.text[1:-1]))
            case _:
                result = self.characters(token.text)
        self.step()
        return result

    def literal(self, text: str) -> str:
        """The regular expression of these very characters; escapes stay as they are."""
        parts = re.findall(r"\\.|.", text, re.DOTALL)
        if many := [part for part in parts if part[0] == "\\" and part[1] in "dwsDWS"]:
            raise self.error(f"{many[0]} stands for many characters and has no meaning in a literal; use a class")
        return "".join(part if part[0] == "\\" else re.escape(part) for part in parts)

    def characters(self, pattern: str) -> Expression:
        """A class or literal, by the rules of regular expressions."""
        try:
            expression = parse_regular_expression(pattern)
        except ValueError as problem:
            raise self.error(f"in {self.next.text}: {problem}") from None
        return expression


def _tokens(text: str) -> Iterator[Token]:
    place, line = 0, 1
    while place < len(text):
        found = TOKEN.match(text, place)
        if not found:
            what = "subtraction is not supported" if text[place] == "-" else f"cannot read {text[place : place + 20]!r}"
            raise ValueError(f"EBNF, line {line}: {what}")
        if found.lastgroup != "space":
            yield Token(found.lastgroup, found[0], line)
        line += found[0].count("\n")
        place = found.end()
    yield Token("end", "", line)
