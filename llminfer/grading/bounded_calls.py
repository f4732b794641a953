"""Call our own programs with an end: mutants that may loop, and references on inputs nobody wrote by hand.

Students' code never runs here; a worker that can be killed runs that.
"""

import sys
from collections.abc import Callable
from typing import Any

LINES = 200_000
"""Lines of Python that such a call may run. Counted, not timed: a busy machine answers as a quiet one does."""


class TooManyLinesError(BaseException):
    """The call would not end. No Exception, so that a program's own `except Exception` cannot hold it."""


def bounded(lines: int | None, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
    """`function(...)`, or TooManyLinesError after so many lines of Python; None: without an end.

    Work inside NumPy is one line. Counting makes the others several times slower.
    """
    if lines is None:
        return function(*arguments, **named)
    left = lines

    def count(frame: Any, event: str, argument: Any) -> Callable:
        nonlocal left
        left -= event == "line"
        if left < 0:
            raise TooManyLinesError(f"more than {lines} lines")
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        return function(*arguments, **named)
    finally:
        sys.settrace(before)
