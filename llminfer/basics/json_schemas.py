"""JSON Schema (Draft 2020-12) to a grammar of the documents that are valid under it.

Policy, where the standard leaves a choice or a grammar must make one:
- Spacing is that of `json.dumps`: ", " and ": ", nowhere else.
- Properties come in the order of `properties`, then what is required but not listed, then additional ones.
- `additionalProperties` absent means none where `properties` says what there is, and any where nothing does; `items`
  beside `prefixItems` likewise. The standard means any; whoever wants it here writes `true`.
- Names, and the strings of `enum` and `const`, have one spelling (`json.dumps`, ensure_ascii=False), so that they can
  be forced; other strings have all. `enum` and `const` hold values exactly as `json.dumps` writes them.
- Integers have no fraction and no exponent, numbers with bounds no exponent; bounds are compared as decimals.
- `pattern` is searched in the decoded string; `\\d \\w \\s` are ASCII. Lengths count code points.
- Without `type`, a value of any type may come, and each keyword binds its own type, as the standard says.
- The same additional name may come twice, which no automaton can prevent; readers of JSON take the last.

ANNOTATIONS are ignored. Every other keyword is refused by name and place, `format` among them: the standard does not
make it bind, and a text that looks checked and is not helps nobody.
"""

import json
from collections.abc import Mapping
from typing import Any

from llminfer.basics.expressions import (
    NOTHING,
    UNICODE,
    Characters,
    Expression,
    Repeat,
    Rule,
    Separated,
    alphabet,
    choice,
    optional,
    sequence,
)
from llminfer.basics.intersections import both
from llminfer.basics.json_choices import disjoint
from llminfer.basics.json_limits import bounds, counts
from llminfer.basics.json_numbers import integers, numbers
from llminfer.basics.json_pointers import resolve
from llminfer.basics.json_strings import other_names, quoted, spelled
from llminfer.basics.json_types import ALL_TYPES, declared_types, has_type
from llminfer.basics.regular_expressions import parse_search

ANNOTATIONS = frozenset(
    "title description default examples deprecated readOnly writeOnly $schema $comment $defs definitions "
    "contentEncoding contentMediaType contentSchema".split()
)
KEYWORDS = {
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "array": ("prefixItems", "items", "minItems", "maxItems"),
    "object": ("properties", "required", "additionalProperties"),
}
WHOLE_SCHEMAS = ("$ref", "enum", "const", "anyOf", "oneOf", "allOf")
"""Keywords that describe a value alone; beside them only `type` may stand."""
ANYTHING = "any JSON value"


def rules_of_schema(schema: Mapping[str, Any] | bool) -> dict[str, Expression]:
    """A rule for the schema, named "#", and one for each place that a `$ref` leads to, named by its JSON pointer.

    Raises ValueError, naming keyword and place, for what is not supported, malformed, or plainly contradictory.
    """
    compiler = _Compiler(schema)
    rules: dict[str, Expression] = {}
    try:
        while missing := compiler.named - rules.keys():
            for name in missing:
                rules[name] = compiler.anything() if name == ANYTHING else compiler.value(resolve(schema, name), name)
    except RecursionError:
        raise ValueError("the JSON Schema is nested too deep to be followed; flatten it") from None
    return rules


class _Compiler:
    """Schemas to expressions; `named` are the rules that the expressions so far call."""

    def __init__(self, root: Mapping[str, Any] | bool) -> None:
        self.root = root
        self.named = {"#"}

    def rule(self, name: str) -> Rule:
        self.named.add(name)
        return Rule(name)

    def anything(self) -> Expression:
        return choice(self.of_type(name, {}, ANYTHING) for name in sorted(ALL_TYPES - {"integer"}))

    def value(self, schema: Any, path: str, allowed: frozenset[str] = ALL_TYPES) -> Expression:
        """The texts of the values that are valid under `schema` and of an allowed type."""
        if schema is False:
            return NOTHING
        schema = {} if schema is True else schema
        check_keywords(schema, path)
        types = declared_types(schema, path) & allowed
        if not types:
            raise ValueError(f"{path}: no type is left of {schema.get('type')!r} and the types around it")
        whole = next((keyword for keyword in WHOLE_SCHEMAS if keyword in schema), None)
        match whole:
            case "$ref":
                return self.reference(schema["$ref"], path, types)
            case "enum" | "const":
                return self.constants(schema, path, types)
            case "anyOf" | "oneOf" | "allOf":
                return self.combination(schema, whole, path, types)
        if types == ALL_TYPES and not any(keyword in schema for words in KEYWORDS.values() for keyword in words):
            return self.rule(ANYTHING)
        return choice(
            self.of_type(name, schema, path) for name in sorted(types) if name != "integer" or "number" not in types
        )

    def of_type(self, name: str, schema: Mapping[str, Any], path: str) -> Expression:
        match name:
            case "null":
                return sequence("null")
            case "boolean":
                return choice(["true", "false"])
            case "integer":
                return integers(bounds(schema, path))
            case "number":
                return numbers(bounds(schema, path))
            case "string":
                return string(schema, path)
            case "array":
                return self.array(schema, path)
        return self.object(schema, path)

    def reference(self, target: Any, path: str, types: frozenset[str]) -> Expression:
        if types != ALL_TYPES:
            raise ValueError(
                f"{path}: type beside (or around) $ref is not supported; put it into the schema referred to"
            )
        if not isinstance(target, str) or not (target == "#" or target.startswith("#/")):
            raise ValueError(f"{path}/$ref: expected a pointer into this schema such as '#/$defs/node', got {target!r}")
        resolve(self.root, target)
        return self.rule(target)

    def constants(self, schema: Mapping[str, Any], path: str, types: frozenset[str]) -> Expression:
        values = [schema["const"]] if "const" in schema else schema["enum"]
        if not isinstance(values, list):
            raise ValueError(f"{path}/enum: expected a list of values, got {values!r}")
        fitting = [constant(value, path) for value in values if any(has_type(value, name) for name in types)]
        if not fitting:
            raise ValueError(f"{path}: none of the values {values!r} is of the type {sorted(types)}")
        return choice(fitting)

    def combination(self, schema: Mapping[str, Any], keyword: str, path: str, types: frozenset[str]) -> Expression:
        branches = schema[keyword]
        if not isinstance(branches, list) or not branches:
            raise ValueError(f"{path}/{keyword}: expected a list of at least one schema, got {branches!r}")
        if keyword == "allOf" and len(branches) > 1:
            raise ValueError(f"{path}/allOf: more than one schema at once is not supported; merge them into one")
        if keyword == "oneOf" and not disjoint(self.root, branches):
            raise ValueError(
                f"{path}/oneOf: two of the schemas may hold for the same value, which a grammar cannot exclude; make "
                "them differ by type, by const or enum, or by such a property that both require, or write anyOf"
            )
        return choice(self.value(branch, f"{path}/{keyword}/{i}", types) for i, branch in enumerate(branches))

    def array(self, schema: Mapping[str, Any], path: str) -> Expression:
        least, most = counts(schema, "minItems", "maxItems", path)
        prefix = schema.get("prefixItems", [])
        if not isinstance(prefix, list):
            raise ValueError(f"{path}/prefixItems: expected a list of schemas, got {prefix!r}")
        first = [self.value(item, f"{path}/prefixItems/{i}") for i, item in enumerate(prefix)]
        rest = schema.get("items", "prefixItems" not in schema)
        if isinstance(rest, list):
            raise ValueError(f"{path}/items: a list of schemas is called prefixItems since Draft 2020-12")
        item = self.value(rest, f"{path}/items")
        if not first:  # so that every further item has a comma before it
            first = [item]
        if most is not None:
            first = first[:most]
        more_least = max(least - len(first), 0)
        more = Repeat(sequence(", ", item), more_least, None if most is None else most - len(first))
        tail: Expression = more if first or most != 0 else sequence()
        for place in reversed(range(len(first))):
            tail = sequence(*([", "] if place else []), first[place], tail)
            if place >= least:
                tail = optional(tail)
        return sequence("[", tail, "]")

    def object(self, schema: Mapping[str, Any], path: str) -> Expression:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(properties, Mapping):
            raise ValueError(f"{path}/properties: expected an object of schemas by name, got {properties!r}")
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            raise ValueError(f"{path}/required: expected a list of names, got {required!r}")
        additional = schema.get("additionalProperties", "properties" not in schema)
        unlisted = [name for name in dict.fromkeys(required) if name not in properties]
        if unlisted and additional is False:
            raise ValueError(f"{path}/required: {unlisted[0]!r} is required, but neither in properties nor additional")
        members = [
            (sequence(constant(name, path), ": ", self.value(value, f"{path}/properties/{name}")), name not in required)
            for name, value in properties.items()
        ]
        other = self.value(additional, f"{path}/additionalProperties")
        members += [(sequence(constant(name, path), ": ", other), False) for name in unlisted]
        if additional is not False:
            member = sequence(other_names([*properties, *unlisted]), ": ", other)
            members.append((sequence(member, Repeat(sequence(", ", member))), True))
        return sequence("{", Separated(tuple(members), sequence(", ")), "}")


def string(schema: Mapping[str, Any], path: str) -> Expression:
    """Strings of a length, or in which a pattern is found."""
    least, most = counts(schema, "minLength", "maxLength", path)
    if "pattern" not in schema:
        return quoted(Repeat(Characters(UNICODE), least, most))
    if not isinstance(schema["pattern"], str):
        raise ValueError(f"{path}/pattern: expected a regular expression as a string, got {schema['pattern']!r}")
    try:
        content = parse_search(schema["pattern"])
    except ValueError as problem:
        raise ValueError(f"{path}/pattern: {problem}") from None
    if (least, most) == (0, None):
        return quoted(content)
    length = Repeat(Characters(alphabet(content)), least, most)  # other characters cannot come, and would cost states
    return sequence('"', both(spelled(content), spelled(length), f"{path}: pattern with its lengths"), '"')


def constant(value: Any, path: str) -> Expression:
    """One value, as `json.dumps` writes it. Raises ValueError for what JSON cannot say: NaN, infinity, surrogates."""
    try:
        return sequence(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except ValueError as problem:
        raise ValueError(f"{path}: {value!r} cannot be written as JSON in UTF-8: {problem}") from None


def check_keywords(schema: Any, path: str) -> None:
    """Raise ValueError for what is no schema, and for keywords, alone or beside each other, that are not supported."""
    if not isinstance(schema, Mapping):
        raise ValueError(f"{path}: a schema is an object or a boolean, got {schema!r}")
    typed = {keyword for words in KEYWORDS.values() for keyword in words}
    ignored = ANNOTATIONS | ({"$id"} if path == "#" else set())  # further down it moves what # means
    for keyword in schema:
        if keyword not in typed | ignored | {"type", *WHOLE_SCHEMAS}:
            remedy = "; write it as a pattern, or leave it out" if keyword == "format" else "; leave it out"
            raise ValueError(f"{path}: the keyword {keyword!r} is not supported{remedy} and check the value afterwards")
    whole = [keyword for keyword in WHOLE_SCHEMAS if keyword in schema]
    beside = [keyword for keyword in schema if keyword in typed] if whole else []
    if len(whole) > 1 or beside:
        raise ValueError(f"{path}: {(whole + beside)[1]!r} beside {whole[0]!r} is not supported; merge them into one")
