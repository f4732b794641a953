"""Places in a JSON document by pointer (RFC 6901), in the form that `$ref` uses: "#/$defs/node"."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

MAX_DEPTH = 100


def resolve(document: Any, pointer: str) -> Any:
    """The value that `pointer` leads to. Raises ValueError where there is none."""
    value = document
    for step in pointer.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            raise ValueError(f"$ref {pointer!r} leads nowhere; there is no {name!r} on its way")
    return value
