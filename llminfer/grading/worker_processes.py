"""A worker as a process of the judge's: talk to it against the clock, read what it printed, end all that it started."""

import contextlib
import os
import queue
import select
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from llminfer.grading.supervision import children
from llminfer.grading.wire import read_frame, write_frame

PRINTED_BYTES = 8192
"""Kept of what a case prints, at each end."""
GRACE_S = 5.0
"""For a process to be gone that should be."""


class WorkerProcess:
    """Requests go to its stdin, replies come from its stdout.

    All that it prints goes to a file without a name, which the judge reads: unlike a pipe, a file cannot be held up,
    and RLIMIT_FSIZE bounds it. namespace: the command makes one, with which all processes in it end. supervised: the
    process that is started ends all others when it gets SIGTERM.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path, namespace: bool, supervised: bool
    ) -> None:
        self._namespace, self._supervised = namespace, supervised
        self._first_process: int | None = None  # of the namespace, as a descriptor
        self._printed = tempfile.TemporaryFile()
        self._seen_bytes = 0
        self._ended = False
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )

    def exchange(self, frame: bytes, seconds: float) -> bytes:
        """Send a request and return the frame of the reply.

        Raises TimeoutError, EOFError when the worker is gone, and FrameError when it sends something else.
        """
        answers: queue.SimpleQueue = queue.SimpleQueue()

        def talk() -> None:
            try:
                write_frame(self._process.stdin, frame)
                answers.put(read_frame(self._process.stdout))
            except OSError as problem:  # a broken pipe
                answers.put(EOFError(str(problem)))
            except (EOFError, ValueError) as problem:
                answers.put(problem)

        # Not every system can wait for a pipe with a timeout. The thread ends when the worker does.
        threading.Thread(target=talk, daemon=True).start()
        try:
            answer = answers.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError(f"no reply in {seconds} s") from None
        if isinstance(answer, Exception):
            raise answer
        self._watch_namespace()
        return answer

    @property
    def printed_bytes(self) -> int:
        """How much it has printed."""
        return os.fstat(self._printed.fileno()).st_size

    def printed(self) -> str:
        """What it printed since the last call: the beginning, the end, and how much is left out between them."""
        start, end = self._seen_bytes, self.printed_bytes
        self._seen_bytes = end
        if end - start <= 2 * PRINTED_BYTES:
            return self._text(start, end)
        left_out = f"\n... {end - start - 2 * PRINTED_BYTES} bytes left out ...\n"
        return self._text(start, start + PRINTED_BYTES) + left_out + self._text(end - PRINTED_BYTES, end)

    def exit_code(self) -> int | None:
        """Of a worker that has closed its pipe: negative for a signal, None if it goes on without one."""
        try:
            code = self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            return None
        return 128 - code if code > 128 else code  # shells, bwrap and the supervisor say 128 + signal

    def end(self) -> None:
        """Kill it and everything that it started, and return when that is done; a second time nothing happens."""
        if self._ended:  # the numbers of its processes may be others' by now
            return
        self._ended = True
        self._watch_namespace()
        if self._supervised and not self._namespace:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_S)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS says the second of who is dead already
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait()
        if self._first_process is not None:
            select.select([self._first_process], [], [], GRACE_S)  # readable when the whole namespace is gone
            os.close(self._first_process)
            self._first_process = None

    def close(self) -> None:
        """End it and give its pipes back."""
        self.end()
        self._printed.close()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                stream.close()

    def left_behind(self) -> bool:
        """True if somebody still holds the pipe of the replies after `end`: a process that got away."""
        readable, _, _ = select.select([self._process.stdout], [], [], 1.0)
        return not readable

    def _watch_namespace(self) -> None:
        """The first process of a namespace is the child of what made it; the kernel kills the others before it."""
        if self._namespace and self._first_process is None and self._process.poll() is None:
            for child in children(self._process.pid):
                self._first_process = os.pidfd_open(child)

    def _text(self, start: int, end: int) -> str:
        self._printed.seek(start)
        return self._printed.read(max(0, end - start)).decode("utf-8", "replace")
