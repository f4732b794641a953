"""Call our own programs with an end: mutants that may loop, and references on inputs nobody wrote by hand.

Students' code never runs here; a worker that can be killed runs that.
"""

import sys
from collections.abc import Callable
from typing import Any

LINES = 200_000
"""Lines of Python that a call may run. Counted, not timed: a busy machine gives the same answer as a quiet one."""


class TooManyLinesError(BaseException):
    """The call would not end. No Exception, so that a program's own `except Exception` cannot hold it."""


def bounded(function: Callable[..., Any], *arguments: Any, lines: int = LINES, **named: Any) -> Any:
    """`function(...)`, or TooManyLinesError after so many lines of Python. What NumPy does inside a line is not counted."""
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
