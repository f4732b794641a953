"""Two languages at once, against Python's own engine; alone, and as a part of something larger."""

import re
from itertools import product

import pytest

from llminfer.basics.expressions import Repeat, choice
from llminfer.basics.grammars import Grammar
from llminfer.basics.intersections import both
from llminfer.basics.regular_expressions import parse_regular_expression

TEXTS = ["".join(letters) for length in range(6) for letters in product("ab", repeat=length)]


@pytest.mark.parametrize(("left", "right"), [("a*b*", "[ab]{2,4}"), ("(ab)*", "(a|b)*b"), ("a*", "a|b|"), (".*", "a+")])
def test_a_text_must_please_both(left, right):
    expression = both(parse_regular_expression(left), parse_regular_expression(right), "it")
    grammar = Grammar.from_rules({"root": expression}, "root")
    for text in TEXTS:
        assert grammar.accepts(text) == bool(re.fullmatch(left, text) and re.fullmatch(right, text)), text


def test_what_stands_beside_it_is_not_entered_by_its_loops():
    loop = both(parse_regular_expression("a*"), parse_regular_expression("[ab]*"), "it")
    once = Grammar.from_rules({"root": choice([loop, "b"])}, "root")
    again = Grammar.from_rules({"root": Repeat(choice([loop, "b"]), 1, 2)}, "root")
    for text in TEXTS:
        assert once.accepts(text) == bool(re.fullmatch("a*|b", text)), text
        assert again.accepts(text) == bool(re.fullmatch("(a*|b){1,2}", text)), text
