"""Values as Python source that gives the same values back, to be pasted into a prompt.

Everything that a case may hold can be written. An array that follows a rule is written by the rule, so that even a
large one stays a line; `pattern_arrays` gives the rules, and the shrinker tries them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from llminfer.core.tolerances import is_floating

FULLY_WRITTEN = 400
"""Elements of an array that follows no rule, beyond which `literal` gives up and a case is named instead."""


class TooLongError(ValueError):
    """The value cannot be written in a few lines."""


def literal(value: Any) -> str:
    """Source of `value` where numpy is `np`. Raises TooLongError for a large array that follows no rule."""
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, np.generic):
        return f"{_dtype(value.dtype)}({literal(value.item())})"
    if isinstance(value, float):
        return repr(value) if np.isfinite(value) else f'float("{value}")'
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(literal, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(key)}: {literal(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, str | bytes) and len(value) > 2000:
        raise TooLongError(f"a text of {len(value)} cannot be written in a few lines")
    return repr(value)


def imports(source: str) -> str:
    """The import lines that `source` needs."""
    known = {"np.": "import numpy as np", "ml_dtypes.": "import ml_dtypes", "torch.": "import torch"}
    return "\n".join(line for name, line in known.items() if name in source)


def pattern_arrays(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays of the same shape and dtype that one short expression gives, the plainest first, and the expression."""
    shape, dtype = array.shape, array.dtype
    named = _dtype(dtype)
    size = literal(shape)
    if array.size:
        first = array.ravel()[0]
        if first != 0:
            yield f"np.full({size}, {next(_numbers(array))}, dtype={named})", np.full(shape, first, dtype)
    yield f"np.zeros({size}, dtype={named})", np.zeros(shape, dtype)
    if is_floating(dtype) or array.size and dtype.kind in "iu":
        counted = f"np.arange({array.size}, dtype={named})" + ("" if len(shape) == 1 else f".reshape({size})")
        with np.errstate(all="ignore"):
            yield counted, np.arange(array.size).astype(dtype).reshape(shape)
    if is_floating(dtype):
        drawn = np.random.default_rng(0).standard_normal(shape)
        yield f"np.random.default_rng(0).standard_normal({size}).astype({named})", drawn.astype(dtype)


def _array(array: np.ndarray) -> str:
    if array.size > 8:
        for source, same in pattern_arrays(array):
            if same.tobytes() == array.tobytes():  # which tells -0.0 from 0.0, and knows NaN again
                return source
    if array.size > FULLY_WRITTEN:
        raise TooLongError(f"an array of {array.size} elements that follows no rule cannot be written in a few lines")
    if array.size == 0:
        return f"np.empty({literal(array.shape)}, dtype={_dtype(array.dtype)})"
    return f"np.array({_nested(array.shape, _numbers(array))}, dtype={_dtype(array.dtype)})"


def _nested(shape: tuple[int, ...], numbers: Iterator[str]) -> str:
    """The numbers, in row-major order, in the brackets of this shape."""
    return f"[{', '.join(_nested(shape[1:], numbers) for _ in range(shape[0]))}]" if shape else next(numbers)


def _numbers(array: np.ndarray) -> Iterator[str]:
    """Each element as the shortest text that its dtype reads back as the same number."""
    if not is_floating(array.dtype):
        return map(repr, array.ravel().tolist())
    signs = {"nan": "np.nan", "inf": "np.inf", "-inf": "-np.inf"}
    return (signs.get(text, text) for text in map(str, array.ravel()))


def _dtype(dtype: np.dtype) -> str:
    if dtype.kind == "b":
        return "bool"
    return f"np.{dtype.name}" if hasattr(np, dtype.name) else f"ml_dtypes.{dtype.name}"
