"""The numbers of a model description that came in a file, each checked as it is taken.

Knows nothing about any format: config.json of a Hugging Face folder and GGUF metadata are both read through `Fields`.
"""

import math
import reprlib
from collections.abc import Mapping
from typing import Any

LARGEST_COUNT = 2**31 - 1
MOST_LAYERS = 4096  # no file has more; a lying one would make us build tuples of that length
_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 80
shown = _short.repr  # a value as an error may show it, however long or deeply nested


class Fields:
    """Named values of a file nobody vouches for; a value of null counts as absent.

    Every method raises ValueError with the field, what stands there and what was expected.
    """

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values = values
        self.where = where

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def integer(self, name: str, default: int | None = None, least: int = 1, most: int = LARGEST_COUNT) -> int:
        """A count between least and most; required unless there is a default."""
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.error(name, f"expected an integer in {least}..{most}")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number above zero; required unless there is a default."""
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise self.error(name, "expected a finite number above 0")
        try:
            return float(value)
        except OverflowError:
            raise self.error(name, "expected a number that fits a float") from None

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self._take(name, default)
        if not isinstance(value, bool):
            raise self.error(name, "expected true or false")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A string; required unless there is a default."""
        value = self._take(name, default)
        if not isinstance(value, str):
            raise self.error(name, "expected a string")
        return value

    def section(self, name: str) -> "Fields":
        """The fields of a nested object; no fields when it is absent."""
        value = self._take(name, {})
        if not isinstance(value, Mapping):
            raise self.error(name, "expected an object with fields")
        return Fields(value, f"{self.where}: {name}")

    def token_ids(self, name: str) -> tuple[int, ...]:
        """One token id or a list of them; empty when absent."""
        value = self.values.get(name)
        ids = value if isinstance(value, list) else [] if value is None else [value]
        if any(isinstance(i, bool) or not isinstance(i, int) or not 0 <= i <= LARGEST_COUNT for i in ids):
            raise self.error(name, "expected a token id or a list of them")
        return tuple(ids)

    def demand(self, name: str, default: Any, *supported: Any) -> Any:
        """The value, which must be one of the supported ones: anything else would be computed wrongly here."""
        value = self._take(name, default)
        if not any(type(value) is type(known) and value == known for known in supported):
            raise self.error(name, f"supported: {', '.join(repr(known) for known in supported)}")
        return value

    def error(self, name: str, expected: str) -> ValueError:
        """The complaint about one field."""
        return ValueError(f"{self.where}: {name} is {shown(self.values.get(name))}; {expected}")

    def _take(self, name: str, default: Any) -> Any:
        value = self.values.get(name)
        if value is None:
            if default is None:
                raise ValueError(f"{self.where}: {name} is missing")
            return default
        return value
