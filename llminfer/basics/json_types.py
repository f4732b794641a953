"""The types of JSON Schema. Every integer is a number too."""

from collections.abc import Mapping
from typing import Any

ALL_TYPES = frozenset({"null", "boolean", "string", "integer", "number", "array", "object"})


def declared_types(schema: Mapping[str, Any], path: str) -> frozenset[str]:
    """What `type` allows, all types where it is absent. Raises ValueError for names that are no types."""
    named = schema.get("type", list(ALL_TYPES))
    named = [named] if isinstance(named, str) else named
    if not isinstance(named, list) or not named or not all(isinstance(n, str) and n in ALL_TYPES for n in named):
        raise ValueError(f"{path}/type: expected one or some of {', '.join(sorted(ALL_TYPES))}, got {schema['type']!r}")
    return frozenset(named) | ({"integer"} if "number" in named else set())


def has_type(value: Any, name: str) -> bool:
    """Is a value, as Python reads it from JSON, of this type? 1.0 is an integer, true is no number."""
    match value:
        case None:
            return name == "null"
        case bool():
            return name == "boolean"
        case str():
            return name == "string"
        case int():
            return name in ("integer", "number")
        case float():
            return name == "number" or name == "integer" and value.is_integer()
        case list():
            return name == "array"
        case dict():
            return name == "object"
    raise ValueError(f"{value!r} is no JSON value")
