"""The process that runs one exercise of one submission: `python -P -s -X utf8 -m llminfer.grading.worker`.

It is told what to run and with which arguments, and answers what came out. It never learns what should have come out,
so that a submission that takes it over has won nothing. Requests come on what was stdin, replies go to what was stdout.
"""

import contextlib
import os
import sys
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import Any

from llminfer.grading.confinement import confine
from llminfer.grading.student_code import Outcome, Submission
from llminfer.grading.supervision import split
from llminfer.grading.wire import decode, encode, read_frame, write_frame


def main() -> None:
    """Answer requests until the judge closes the pipe."""
    requests, replies = take_pipes()
    submission: Submission | None = None
    while request := next_request(requests):
        if request["act"] == "start":
            outcome, submission = start(request, [requests.fileno(), replies.fileno()])
        elif request["act"] == "observe":
            outcome = observed(request)
        elif request["act"] == "load":
            outcome = submission.load()
        else:
            outcome = answer(submission, request)
        with contextlib.suppress(OSError):  # the judge has gone, and the next request will not come
            write_frame(replies, reply_frame(request["id"], outcome))
    os._exit(0)  # a student's exit handlers are not run


def next_request(requests: BufferedReader) -> dict[str, Any] | None:
    """None when the judge is done."""
    try:
        return decode(read_frame(requests))
    except EOFError:
        return None


def take_pipes() -> tuple[BufferedReader, BufferedWriter]:
    """Keep stdin and stdout for the judge; give the student an empty stdin, and stderr for everything printed."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # what was printed before a crash is worth having
    return requests, replies


def start(request: dict[str, Any], pipes: list[int]) -> tuple[Outcome, Submission]:
    """Shut the door behind us, before anything of the student's is read."""
    orders = request["orders"]
    with contextlib.suppress(ValueError):
        sys.path.remove(request["checkout"])
    try:
        if request["kernel"]:
            import llminfer.grading.kernel_calls_torch  # noqa: F401  (before the limits: torch maps gigabytes)
        if orders["supervised"]:
            split(pipes)
        confine(orders)
    except (ImportError, OSError) as problem:
        return Outcome("grader_error", error=str(problem)), None
    return Outcome(), Submission(Path(request["file"]), request["entry"])


def answer(submission: Submission, request: dict[str, Any]) -> Outcome:
    """One case."""
    if request["kind"] == "class":
        return submission.drive(request["arguments"], request["calls"])
    if request["kind"] == "kernel":
        from llminfer.grading.kernel_calls_torch import with_tensors

        return with_tensors(submission, request["arguments"], request["outputs"])
    return submission.call(request["arguments"])


def observed(request: dict[str, Any]) -> Outcome:
    """What this process can still do; asked by the probe, before there is any submission."""
    from llminfer.grading.observation import observe

    return Outcome(value=observe(request))


def reply_frame(request_id: bytes, outcome: Outcome) -> bytes:
    """The reply; an argument that can no longer be written is left out, a value that cannot be is a bad reply."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the student may have closed or replaced it
            stream.flush()
    told = {"id": request_id, "status": outcome.status, "error": outcome.error, "traceback": outcome.traceback}
    if reason := why_not_written(outcome.value):
        return encode({**told, "status": "bad_reply", "error": reason})
    after = {name: value for name, value in outcome.arguments_after.items() if not why_not_written(value)}
    return encode({**told, "value": outcome.value, "arguments_after": after})


def why_not_written(value: Any) -> str:
    """The reason why a value cannot cross, in words; empty when it can."""
    try:
        encode(value)
    except (TypeError, ValueError) as problem:
        return str(problem)
    except MemoryError:
        return "the value leaves no memory to write it"
    return ""


if __name__ == "__main__":
    main()
