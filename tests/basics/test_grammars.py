"""Grammars in EBNF, with and without recursion."""

import random

import pytest

from llminfer.basics.grammars import Grammar

ARITHMETIC = """
# what a calculator reads
root   ::= term (("+" | "-") term)*      /* sums, from left to right */
term   ::= factor (("*" | '/') factor)*
factor ::= [0-9]+ | "(" root ")" | #x78 | "\\n"
"""


def test_arithmetic_nests_its_parentheses():
    grammar = Grammar.from_ebnf(ARITHMETIC)
    assert grammar.recursive
    for text in ("1", "1+2*x", "(((3)))-(4/5)", "\n", "(" * 300 + "7" + ")" * 300):
        assert grammar.accepts(text), text
    for text in ("", "1+", "(1", "1)", "()", "1 + 2", "(" * 300 + "7" + ")" * 299):
        assert not grammar.accepts(text), text


def test_rules_without_recursion_are_one_finite_automaton():
    grammar = Grammar.from_ebnf('root ::= word ("," word){0,2}\nword ::= [a-z]+ | "é"\n')
    assert not grammar.recursive
    assert [grammar.accepts(text) for text in ("ab,é,c", "a,b,c,d", "é", "")] == [True, False, True, False]


def test_the_first_rule_is_the_root_where_none_is_called_so():
    assert Grammar.from_ebnf('start ::= "a" end\nend ::= "b"').accepts("ab")


def test_every_form_of_the_notation():
    grammar = Grammar.from_ebnf(r"""root ::= "\x41\u00e9\"" '\'' [^\n\]a-c] . #x1F600 [0-9]{2} "z"{1,} ("y"? | )""")
    assert grammar.accepts("Aé\"'d!😀42zzy")
    assert not grammar.accepts("Aé\"'a!😀42zzy")


def test_matched_brackets_agree_with_a_counter():
    grammar = Grammar.from_ebnf('root ::= ("(" root ")" | "[" root "]")*')
    rng = random.Random(7)
    pairs = {")": "(", "]": "["}
    outcomes = set()
    for _ in range(2000):
        text, stack = "".join(rng.choice("()[]") for _ in range(rng.choice([2, 4, 6, 7]))), []
        for bracket in text:
            if bracket in pairs and stack[-1:] == [pairs[bracket]]:
                stack.pop()
            else:
                stack.append(bracket)
        assert grammar.accepts(text) == (not stack), text
        outcomes.add(not stack)
    assert outcomes == {True, False}


def test_palindromes_need_more_than_one_reading_at_a_time():
    grammar = Grammar.from_ebnf('root ::= "a" root "a" | "b" root "b" | "a" | "b" | ""')
    rng = random.Random(8)
    for _ in range(300):
        half = "".join(rng.choice("ab") for _ in range(rng.randrange(6)))
        text = half + rng.choice(["", "a"]) + half[::-1]
        assert grammar.accepts(text), text
        other = "".join(rng.choice("ab") for _ in range(rng.randrange(9)))
        assert grammar.accepts(other) == (other == other[::-1]), other


def test_right_recursion_keeps_no_stack():
    grammar = Grammar.from_ebnf('root ::= "a" root | "b"')
    pushdown = grammar.pushdown
    assert {len(stack) for stack in pushdown.after(pushdown.start, b"a" * 5000)} == {1}
    assert grammar.accepts("a" * 5000 + "b")


@pytest.mark.parametrize(
    "text",
    [
        'root ::= root "a" | "b"',
        'root ::= x "a" | "b"\nx ::= root "c" | "d"',
        'root ::= maybe root "c" | "d"\nmaybe ::= "b" maybe | ""',
    ],
)
def test_left_recursion_is_refused_with_the_way_out(text):
    with pytest.raises(ValueError, match="left recursion.*write it as a repetition"):
        Grammar.from_ebnf(text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("root ::= missing", "line 1: there is no rule 'missing'"),
        ('root ::= "a"\nroot ::= "b"', "line 2: the rule 'root' is defined twice"),
        ('root ::= "a" - "b"', "line 1: subtraction is not supported"),
        ('root ::= ("a"', "line 1: expected \\)"),
        ('root = "a"', "line 1: cannot read"),
        ('\n\nroot ::= "a" )', "line 3: expected a rule"),
        ('root ::= "a"{3,2}', "ends below"),
        (r'root ::= "\d"', "has no meaning in a literal"),
        (r"root ::= [b-a]", "backwards"),
        ("", "has no rule"),
        ('root ::= "a" root', "allows no text"),
        ('root ::= "a" | b\nb ::= (c)\nc ::= ((((' + "(" * 99, "nested more than"),
    ],
)
def test_a_grammar_that_cannot_be_meant_says_where(text, what):
    with pytest.raises(ValueError, match=what):
        Grammar.from_ebnf(text)


def test_a_grammar_written_out_beyond_the_bound_is_refused():
    doubling = "\n".join(f"r{n} ::= r{n + 1} r{n + 1}" for n in range(40)) + '\nr40 ::= "a"'
    with pytest.raises(ValueError, match="characters once its repetitions are written out"):
        Grammar.from_ebnf(doubling)


def test_a_text_with_too_many_readings_is_refused_and_the_bound_named():
    grammar = Grammar.from_ebnf(
        'root ::= "a" root "x" | "a" twin "y" | "c"\ntwin ::= "a" root "x" | "a" twin "y" | "d"'
    )
    with pytest.raises(ValueError, match="more than 2000 ways"):
        grammar.accepts("a" * 30)
