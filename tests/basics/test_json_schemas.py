"""What a schema allows and what it refuses; the oracles on whole schemas are in test_constraint_oracles.py."""

import json
import re
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llminfer.basics import intersections
from llminfer.basics.grammars import Grammar

BOUND = (
    st.none() | st.integers(-40, 40) | st.decimals(-40, 40, places=2).map(float) | st.sampled_from([-1500, 0, 0.001])
)


def allows(schema, *texts: str) -> list[bool]:
    grammar = Grammar.from_json_schema(schema)
    return [grammar.accepts(text) for text in texts]


@settings(max_examples=60, deadline=None)
@given(BOUND, BOUND, st.booleans(), st.booleans(), st.sampled_from(["integer", "number"]), st.data())
def test_numbers_between_bounds_are_those_whose_decimals_are(low, high, low_open, high_open, kind, data):
    schema = {"type": kind}
    if low is not None:
        schema["exclusiveMinimum" if low_open else "minimum"] = low
    if high is not None:
        schema["exclusiveMaximum" if high_open else "maximum"] = high
    try:
        grammar = Grammar.from_json_schema(schema)
    except ValueError as problem:
        assert "contradict" in str(problem) or "allows no text" in str(problem)
        grammar = None
    edges = [bound for bound in (low, high) if bound is not None] or [0]
    near = st.builds(
        lambda edge, step: f"{Decimal(str(edge)) + step:f}", st.sampled_from(edges), st.decimals(-2, 2, places=3)
    )
    form = st.builds(
        "{}{}{}".format, st.sampled_from(["", "-"]), st.integers(0, 50), st.sampled_from(["", ".0", ".50", ".001"])
    )
    for text in data.draw(st.lists(near | form, min_size=10, max_size=30)) + [
        f"{Decimal(str(edge)):f}" for edge in edges
    ]:
        x = Decimal(text)
        inside = (low is None or x > Decimal(str(low)) or (x == Decimal(str(low)) and not low_open)) and (
            high is None or x < Decimal(str(high)) or (x == Decimal(str(high)) and not high_open)
        )
        expected = inside and (kind == "number" or "." not in text)
        assert (grammar is not None and grammar.accepts(text)) == expected, (schema, text)


def test_open_bounds_leave_the_bound_itself_out():
    assert allows({"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 6}, "3", "4", "5", "6") == [
        False, True, True, False,
    ]  # fmt: skip


def test_zeros_behind_the_point_do_not_step_over_an_open_bound():
    schema = {"type": "number", "exclusiveMinimum": 3, "maximum": 3.05}
    assert allows(schema, "3", "3.0", "3.00", "3.001", "3.05", "3.051") == [False, False, False, True, True, False]


@pytest.mark.parametrize("text", ["01", "+1", "1.", ".5", "-", "1e", "0x1", "1_000", "NaN", "Infinity", ""])
def test_what_is_no_json_number_is_none(text):
    assert allows({"type": "number"}, text) == [False]


def test_numbers_without_bounds_have_every_form_of_json():
    assert all(allows({"type": "number"}, "0", "-0", "12.50", "1e9", "-1.5E-10", "2e+0"))


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=4), st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_lengths_count_characters_however_they_are_spelled(text, least, more, ascii_only):
    spelled = json.dumps(text, ensure_ascii=ascii_only)
    assert allows({"type": "string", "minLength": least, "maxLength": least + more}, spelled) == [
        least <= len(text) <= least + more
    ]


@pytest.mark.parametrize(
    ("spelled", "valid"),
    [
        (r'"\u00e9"', True), (r'"\uD83D\uDE00"', True), (r'"\ud83d\ude00"', True), (r'"\/"', True), ('"\x7f"', True),
        (r'"\ud83d"', False), (r'"\ude00"', False), (r'"\u12"', False), (r'"\x41"', False), ('"\n"', False),
        ('"a', False), ("'a'", False), (r'"\"', False), (r'"\\"', True),
    ],
)  # fmt: skip
def test_strings_are_spelled_as_json_spells_them(spelled, valid):
    assert allows({"type": "string"}, spelled) == [valid]


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from(
        ["b", "^b", "b$", "^b$", "^[ab]+$", "^a|b$", r"\d{2}", "é", '"', r"\\", "^.$", "^$", "😀", "^[^a]*$"]
    ),
    st.text('ab1é"\\\n😀', max_size=4),
    st.booleans(),
)
def test_a_pattern_is_searched_in_what_the_string_means(pattern, text, ascii_only):
    found = re.search(pattern.replace("$", r"\Z"), text, re.ASCII) is not None
    assert allows({"type": "string", "pattern": pattern}, json.dumps(text, ensure_ascii=ascii_only)) == [found]


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(
        ["b", "^a.*b$", "^(ab)*$", "^a|bb$", "^[ab]+$", r"^.\\.?$", "^[^a]*$", "^$", "(a*)*b", "é|😀", "^a{3}"]
    ),
    st.text('ab"\\\n😀é', max_size=5),
    st.integers(0, 3),
    st.none() | st.integers(0, 2),
    st.booleans(),
)
def test_a_pattern_and_lengths_must_both_hold(pattern, text, least, more, ascii_only):
    schema = {"type": "string", "pattern": pattern, "minLength": least}
    if more is not None:
        schema["maxLength"] = least + more
    found = re.search(pattern.replace("$", r"\Z"), text, re.ASCII) is not None
    long_enough = len(text) >= least and (more is None or len(text) <= least + more)
    spelled = json.dumps(text, ensure_ascii=ascii_only)
    try:
        grammar = Grammar.from_json_schema(schema)
    except ValueError as problem:
        assert "allows no text" in str(problem) and not (found and long_enough)
    else:
        assert grammar.accepts(spelled) == (found and long_enough)


def test_a_pattern_and_lengths_that_need_too_many_states_together_are_refused(monkeypatch):
    monkeypatch.setattr(intersections, "MAX_STATES", 50)
    with pytest.raises(ValueError, match="#/items: pattern with its lengths needs more than 50 states, the bound"):
        Grammar.from_json_schema({"items": {"type": "string", "pattern": "^(ab|c)*$", "maxLength": 30}})


def test_names_of_closed_objects_are_not_written_out_in_order_to_be_excluded():
    properties = {f"{i} {'x' * 100}": {"type": "boolean"} for i in range(10)}  # to exclude them would pass the bound
    assert allows({"type": "object", "properties": properties}, json.dumps(dict.fromkeys(properties, True))) == [True]


def test_properties_come_in_their_order_and_only_optional_ones_are_left_out():
    schema = {"type": "object", "properties": {"b": {"type": "null"}, "a": {"const": 1}, "c": {}}, "required": ["a"]}
    assert all(allows(schema, '{"a": 1}', '{"b": null, "a": 1}', '{"b": null, "a": 1, "c": [{}]}', '{"a": 1, "c": ""}'))
    assert not any(
        allows(schema, "{}", '{"b": null}', '{"a": 1, "b": null}', '{"a": 1, }', '{, "a": 1}', '{"a": 1, "d": 1}')
    )


def test_additional_properties_follow_and_have_other_names():
    schema = {
        "type": "object",
        "properties": {"a": {}, "ab": {}},
        "required": ["x"],
        "additionalProperties": {"type": "null"},
    }
    assert all(allows(schema, '{"x": null}', '{"a": 1, "x": null, "abc": null, "": null, "b\\n": null, "é": null}'))
    assert not any(
        allows(schema, "{}", '{"x": 1}', '{"x": null, "a": null}', '{"x": null, "x": null}', '{"x": null, "q": 1}')
    )


def test_properties_not_said_to_be_additional_are_not_allowed_but_an_open_object_is_open():
    assert allows({"type": "object", "properties": {"a": {}}}, '{"b": 1}') == [False]
    assert allows({"type": "object", "properties": {"a": {}}, "additionalProperties": True}, '{"b": 1}') == [True]
    assert allows({"type": "object"}, '{"b": 1}') == [True]


def test_items_and_their_counts():
    schema = {
        "type": "array",
        "prefixItems": [{"type": "null"}, {"type": "boolean"}],
        "items": {"const": 7},
        "minItems": 1,
    }
    assert all(allows({**schema, "maxItems": 4}, "[null]", "[null, true]", "[null, false, 7, 7]"))
    assert not any(
        allows({**schema, "maxItems": 4}, "[]", "[true]", "[null, 7]", "[null, true, 7, 7, 7]", "[null,true]")
    )
    ones = {"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 3}
    assert allows(ones, "[1]", "[1, 1]", "[1, 1, 1, 1]") == [False, True, False]
    assert allows({"type": "array", "maxItems": 0}, "[]", "[1]") == [True, False]
    assert allows({"type": "array", "prefixItems": [{}], "maxItems": 1}, "[]", "[1]", "[1, 1]") == [True, True, False]


def test_constants_are_written_as_json_dumps_writes_them():
    values = ["é\n", 1, 1.5, None, True, {"a": [1, 2]}]
    assert all(allows({"enum": values}, *(json.dumps(value, ensure_ascii=False) for value in values)))
    assert allows({"type": "string", "enum": ["a", 1]}, '"a"', "1") == [True, False]
    assert allows({"const": {"a": 1}}, '{"a":1}') == [False]


def test_types_and_alternatives():
    assert allows({"type": ["null", "integer"]}, "null", "3", "3.5", "true") == [True, True, False, False]
    assert allows({"minLength": 2}, '"a"', "3", "null") == [False, True, True]  # binds strings only
    assert allows({"type": "string", "anyOf": [{"maxLength": 1}, {"const": "xyz"}]}, '"a"', '"xyz"', '"ab"', "1") == [
        True, True, False, False,
    ]  # fmt: skip


def test_a_recursive_schema_goes_as_deep_as_the_document():
    schema = {"$ref": "#/$defs/list", "$defs": {"list": {"anyOf": [{"type": "null"}, {
        "type": "object", "properties": {"next": {"$ref": "#/$defs/list"}}, "required": ["next"]}]}}}  # fmt: skip
    deep = '{"next": ' * 200 + "null" + "}" * 200
    assert allows(schema, "null", deep, deep[:-1], deep + "}") == [True, True, False, False]


def test_one_of_is_taken_where_it_is_plain_that_only_one_can_hold():
    shapes = [
        {"type": "object", "properties": {"kind": {"const": kind}, "r": {"type": "number"}}, "required": ["kind"]}
        for kind in ("circle", "square")
    ]
    assert allows({"oneOf": shapes}, '{"kind": "square", "r": 1}', '{"kind": "line"}') == [True, False]
    assert allows({"oneOf": [{"type": "null"}, {"enum": ["a"]}]}, "null", '"a"') == [True, True]
    assert allows({"oneOf": [{"enum": [1, "a"]}, {"enum": [True, "b"]}]}, "1", "true") == [True, True]  # 1 is not true
    for overlapping in (
        [{"type": "integer"}, {"type": "number"}],
        [{"const": 1}, {"enum": [1.0, 2]}],
        [{}, {"type": "null"}],
    ):
        with pytest.raises(ValueError, match="#/oneOf: two of the schemas may hold"):
            Grammar.from_json_schema({"oneOf": overlapping})


@pytest.mark.parametrize(
    "keyword",
    ["multipleOf", "uniqueItems", "patternProperties", "propertyNames", "minProperties", "maxProperties", "contains",
     "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems",
     "format", "$dynamicRef", "$anchor", "minimun"],
)  # fmt: skip
def test_other_keywords_are_refused_by_name_and_place(keyword):
    schema = {"type": "object", "properties": {"a": {"items": {keyword: 1}}}}
    with pytest.raises(ValueError, match=re.escape(f"#/properties/a/items: the keyword {keyword!r} is not supported")):
        Grammar.from_json_schema(schema)


def test_annotations_change_nothing():
    plain = {"type": "integer", "minimum": 3}
    noted = plain | {"title": "t", "description": "d", "default": 4, "examples": [5], "$schema": "s", "$id": "i",
                     "$comment": "c", "deprecated": True, "readOnly": True, "writeOnly": False}  # fmt: skip
    assert (Grammar.from_json_schema(noted).automaton.table == Grammar.from_json_schema(plain).automaton.table).all()


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        ({"type": "integer", "minimum": 3, "maximum": 2}, "contradict"),
        ({"type": "number", "minimum": 3, "exclusiveMaximum": 3}, "contradict"),
        ({"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 4}, "allows no text"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "minLength 3 is above maxLength 2"),
        ({"type": "array", "minItems": 3, "maxItems": 2}, "minItems 3 is above maxItems 2"),
        ({"type": "array", "prefixItems": [{}], "minItems": 2}, "allows no text"),
        ({"type": "object", "required": ["a"], "additionalProperties": False}, "'a' is required"),
        ({"type": "string", "enum": [1]}, "none of the values"),
        (False, "allows no text"),
        ({"$ref": "#"}, "allows no text"),
        ({"type": "array", "items": {"$ref": "#"}, "minItems": 1}, "allows no text"),
        ({"type": "string", "pattern": "^a{3}$", "maxLength": 2}, "allows no text"),
    ],
)  # fmt: skip
def test_a_schema_that_no_document_satisfies_is_refused(schema, what):
    with pytest.raises(ValueError, match=what):
        Grammar.from_json_schema(schema)


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        ({"type": "strin"}, "#/type: expected one or some of"),
        ({"$ref": "other.json"}, r"#/\$ref: expected a pointer"),
        ({"$ref": "#/$defs/none"}, "leads nowhere"),
        ({"$ref": "#", "minimum": 3}, r"'minimum' beside '\$ref' is not supported"),
        ({"anyOf": []}, "#/anyOf: expected a list"),
        ({"allOf": [{}, {}]}, "#/allOf: more than one"),
        ({"type": "array", "items": [{}]}, "prefixItems since Draft 2020-12"),
        ({"type": "integer", "minimum": True}, "#/minimum: expected a finite number"),
        ({"type": "string", "maxLength": -1}, "#/maxLength: expected a whole number"),
        ({"type": "string", "pattern": "(?=a)"}, "#/pattern: .*lookahead"),
        ({"type": "string", "pattern": 3}, "#/pattern: expected a regular expression as a string, got 3"),
        ({"type": "array", "prefixItems": 3}, "#/prefixItems: expected a list of schemas, got 3"),
        ({"properties": {"a": {"enum": [float("nan")]}}}, "#/properties/a: nan cannot be written as JSON"),
        ({"properties": {"\ud800": {}}}, r"#: '\\ud800' cannot be written as JSON in UTF-8"),
        ({"properties": {"a": 3}}, "#/properties/a: a schema is an object or a boolean"),
        ({"type": "string", "maxLength": 10**6}, "the bound is"),
    ],
)  # fmt: skip
def test_what_is_malformed_or_not_supported_says_where(schema, what):
    with pytest.raises(ValueError, match=what):
        Grammar.from_json_schema(schema)


@pytest.mark.parametrize("depth", [300, 3000])
def test_a_schema_nested_beyond_following_is_refused(depth):
    schema = {"type": "null"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    with pytest.raises(ValueError, match="nested too deep"):
        Grammar.from_json_schema(schema)
