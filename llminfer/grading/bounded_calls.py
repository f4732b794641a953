"""Call our own programs with an end: mutants that may loop, and references on inputs nobody wrote by hand.

Students' code never runs here; a worker that can be killed runs that.
"""

import sys
from collections.abc import Callable
from typing import Any

STEPS = 1_000_000
"""Instructions of Python that such a call may run. Counted, not timed: a busy machine answers as a quiet one does."""


class TooManyStepsError(BaseException):
    """The call would not end. No Exception, so that a program's own `except Exception` cannot hold it."""


def bounded(steps: int | None, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
    """`function(...)`, or TooManyStepsError after so many instructions; None: without an end.

    Work inside NumPy is one instruction. Counting makes the others several times slower.
    """
    if steps is None:
        return function(*arguments, **named)
    left = steps

    def count(frame: Any, event: str, argument: Any) -> Callable:
        nonlocal left
        frame.f_trace_opcodes = True  # `while True: pass` on one line never comes to a new line
        left -= event == "opcode"
        if left < 0:
            raise TooManyStepsError(f"more than {steps} instructions")
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        return function(*arguments, **named)
    finally:
        sys.settrace(before)
