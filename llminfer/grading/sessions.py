"""The judge's conversation with one worker: ask, wait no longer than allowed, and leave nothing of it behind."""

import os
import secrets
import signal
import stat
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from llminfer.grading.isolation import Isolation
from llminfer.grading.launches import FILE_LIMIT_BYTES, Launch
from llminfer.grading.results import Status
from llminfer.grading.spec import Case, Limits
from llminfer.grading.wire import FrameError, decode, encode

START_S = 60.0
LOAD_S = 10.0
SOURCE_LIMIT_BYTES = 1 << 20
ANSWERED = (
    *(Status.OK, Status.EXCEPTION, Status.MEMORY, Status.EXIT, Status.IMPORT_ERROR, Status.MISSING, Status.NOT_DONE),
    *(Status.FORBIDDEN_IMPORT, Status.BAD_REPLY),
)
"""What a worker may say of itself."""
_PARTS = {"id": b"", "status": "", "error": "", "traceback": "", "arguments_after": {}}


@dataclass(frozen=True)
class Task:
    """What one worker is to run: the `entry` of a student's `file`. outputs: buffers that a kernel writes."""

    entry: str
    kind: str
    file: Path
    stubs: tuple[str, ...] = ()
    limits: Limits = Limits()
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reply:
    """What came of a request. Only with status OK did the call return `value`, or so the worker says.

    arguments_after: without those that no longer hold what can be compared. seconds: by the judge's clock. error: one
    line; traceback: the student's frames; limit: which limit was met, in words. A student can forge every text.
    """

    status: Status
    value: Any = None
    arguments_after: dict[str, Any] | None = None
    seconds: float = 0.0
    printed: str = ""
    error: str = ""
    traceback: str = ""
    limit: str = ""


class Session:
    """A worker, from `with` to its end. Once it is no longer `alive`, every request ends as the one that ended it."""

    def __init__(self, task: Task, isolation: Isolation) -> None:
        self._task, self._isolation = task, isolation
        self._launch: Launch | None = None
        self._last: Reply | None = None

    def __enter__(self) -> "Session":
        task = self._task
        try:
            source = read_source(task.file)
        except ValueError as problem:
            self._last = Reply(Status.IMPORT_ERROR, error=str(problem))
            return self
        kernel = task.kind == "kernel"
        self._launch = Launch(self._isolation.level, source, task.file.name, task.stubs, task.limits, kernel)
        try:
            ready = self._ask({**self._launch.start, "entry": task.entry}, START_S)
        except BaseException:
            self.__exit__()
            raise
        if ready.status is not Status.OK:
            error = f"the worker did not start: {ready.status}. {ready.error} {ready.printed}".strip()
            self._last = Reply(Status.GRADER_ERROR, error=error)
        return self

    def __exit__(self, *_: object) -> None:
        if self._launch:
            self._launch.close()

    @property
    def alive(self) -> bool:
        return self._last is None

    def load(self) -> Reply:
        """Import the submission."""
        return self._ask({"act": "load"}, max(self._task.limits.seconds, LOAD_S))

    def call(self, case: Case) -> Reply:
        """Run one case. For kind "class" the value holds ("returned", value) or ("raised", name) for each call."""
        calls = [(call.method, dict(call.arguments)) for call in case.calls]
        how = {"kind": self._task.kind, "outputs": list(self._task.outputs)}
        request = {"act": "call", **how, "arguments": dict(case.arguments), "calls": calls}
        return self._ask(request, self._task.limits.seconds)

    def _ask(self, request: dict[str, Any], seconds: float) -> Reply:
        if self._last:
            return self._last
        request_id = secrets.token_bytes(16)  # a reply that was written before its request cannot bear it
        frame = encode({**request, "id": request_id})
        process, began = self._launch.process, time.perf_counter()
        try:
            reply, goes_on = checked_reply(decode(process.exchange(frame, seconds)), request_id), True
        except TimeoutError:
            reply, goes_on = Reply(Status.TIMEOUT, limit=f"used {seconds:g} s of {seconds:g} s"), False
        except EOFError:
            reply, goes_on = ending(process.exit_code()), False
        except FrameError as problem:
            reply, goes_on = Reply(Status.BAD_REPLY, error=str(problem)), False
        took = time.perf_counter() - began
        if process.printed_bytes >= FILE_LIMIT_BYTES:
            limit = f"printed {FILE_LIMIT_BYTES >> 20} MiB of {FILE_LIMIT_BYTES >> 20} MiB"
            reply, goes_on = Reply(Status.OUTPUT_LIMIT, limit=limit), False
        if reply.status is Status.MEMORY:
            reply = replace(reply, limit=f"needed more than the {self._task.limits.memory_mib} MiB that it may use")
        if not goes_on:
            process.end()
        reply = replace(reply, seconds=took, printed=process.printed())
        self._last = None if goes_on else reply
        return reply


def checked_reply(answer: Any, request_id: bytes) -> Reply:
    """The reply to this very request. Raises FrameError when it is anything else."""
    given = answer if type(answer) is dict else {}
    told = {name: given.get(name, default) for name, default in _PARTS.items()}
    # Types first: an array among them would make every comparison an array too.
    if any(type(told[name]) is not type(default) for name, default in _PARTS.items()) or told.pop("id") != request_id:
        raise FrameError("the worker answered something that was not asked")
    if told["status"] not in ANSWERED or any(type(name) is not str for name in told["arguments_after"]):
        raise FrameError("the worker's answer is none")
    return Reply(Status(told.pop("status")), given.get("value"), **told)


def ending(exit_code: int | None) -> Reply:
    """How a worker ended that closed the pipe instead of answering."""
    if exit_code is None:
        return Reply(Status.BAD_REPLY, error="the worker closed its pipe and went on")
    if exit_code >= 0:
        return Reply(Status.EXIT, error=f"the process ended itself with exit code {exit_code}")
    name = signal.Signals(-exit_code).name if -exit_code in set(signal.Signals) else f"signal {-exit_code}"
    if name == "SIGXCPU":
        return Reply(Status.TIMEOUT, limit="used all of its processor time")
    return Reply(Status.KILLED, error=f"the process was ended by {name}")


def read_source(path: Path) -> bytes:
    """The submission. Raises ValueError with what is wrong with it.

    Not through a link, which may lead to a file that the student could not read; not from a pipe, which may hang.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as problem:
        raise ValueError(f"{path.name} cannot be opened: {problem.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError(f"{path.name} is not a file")
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(SOURCE_LIMIT_BYTES + 1)
    if len(content) > SOURCE_LIMIT_BYTES:
        raise ValueError(f"{path.name} has more than {SOURCE_LIMIT_BYTES} bytes")
    return content
