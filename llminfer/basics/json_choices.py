"""When `oneOf` is `anyOf`: if no value is valid under two of the schemas, and that can be seen by looking at them."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from llminfer.basics.json_pointers import MAX_DEPTH, resolve
from llminfer.basics.json_types import ALL_TYPES, declared_types, has_type


def disjoint(root: Any, schemas: Sequence[Any]) -> bool:
    """Is it plain that no value is valid under two of the schemas? False means only that it is not plain."""
    return all(_apart(root, left, right, 0) for left, right in combinations(schemas, 2))


def _apart(root: Any, left: Any, right: Any, depth: int) -> bool:
    """By type, by the values they list, or by a property that both require and that is apart in both."""
    left, right = _followed(root, left), _followed(root, right)
    if left is False or right is False:
        return True
    if not isinstance(left, Mapping) or not isinstance(right, Mapping) or depth > MAX_DEPTH:
        return False
    left_types, right_types = _types(left), _types(right)
    if not left_types & right_types:
        return True
    left_values, right_values = _values(left), _values(right)
    if left_values is not None and right_values is not None:
        return not any(_equal(a, b) for a in left_values for b in right_values)
    if left_types != {"object"} or right_types != {"object"}:
        return False
    shared = {*left.get("required", ())} & {*right.get("required", ())}
    pairs = [(side.get("properties", {}).get(name) for side in (left, right)) for name in shared]
    return any(_apart(root, a, b, depth + 1) for a, b in pairs)


def _followed(root: Any, schema: Any) -> Any:
    """Where `$ref` leads, through at most MAX_DEPTH of them."""
    for _ in range(MAX_DEPTH):
        if not isinstance(schema, Mapping) or not isinstance(schema.get("$ref"), str):
            return schema
        schema = resolve(root, schema["$ref"])
    return schema


def _types(schema: Mapping[str, Any]) -> frozenset[str]:
    values = _values(schema)
    if values is None:
        return declared_types(schema, "oneOf")
    return frozenset(name for name in ALL_TYPES if any(has_type(value, name) for value in values))


def _values(schema: Mapping[str, Any]) -> Sequence[Any] | None:
    return [schema["const"]] if "const" in schema else schema.get("enum")


def _equal(left: Any, right: Any) -> bool:
    """Equality of JSON: 1 is 1.0, but true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[name], right[name]) for name in left)
    return left == right
