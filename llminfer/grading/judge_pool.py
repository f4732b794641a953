"""Several judges at work on one list of jobs. A judge that dies is replaced, and its job is tried once more."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from llminfer.grading.results import ExerciseResult, Status
from llminfer.grading.spec import Exercise

COMMAND = (sys.executable, "-m", "llminfer.grading.judge_process")
PATIENCE_S = 600  # for one exercise of one student; a judge has its own, much shorter, limits

Job = Mapping[str, Any]


class JudgePool:
    """`with JudgePool(...) as pool: for job, result in pool.results(jobs)`, in the order in which they are done.

    Leaving ends the judges at once, whatever they are doing.
    """

    def __init__(
        self,
        exercises: Iterable[Exercise],
        count: int,
        secret: bytes | None,
        isolation: str,
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        if count < 1:
            raise ValueError(f"at least one judge is needed, got {count}")
        self._exercises = {exercise.id: exercise for exercise in exercises}
        limits = {name: asdict(exercise.limits) for name, exercise in self._exercises.items()}
        order = {"secret": (secret or b"").hex(), "isolation": isolation, "limits": limits}
        self._judges = [_Judge(command, order) for _ in range(count)]

    def __enter__(self) -> "JudgePool":
        return self

    def __exit__(self, *_) -> None:
        for judge in self._judges:
            judge.end()

    def results(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, ExerciseResult]]:
        """Each job, {"exercise", "student", "file"}, with its result."""
        waiting: queue.SimpleQueue = queue.SimpleQueue()
        done: queue.SimpleQueue = queue.SimpleQueue()
        count = 0
        for job in jobs:
            waiting.put(job)
            count += 1
        for judge in self._judges:
            threading.Thread(target=self._work, args=(judge, waiting, done), daemon=True).start()
        for _ in range(count):
            job, answer = done.get()
            if isinstance(answer, BaseException):
                raise answer
            yield job, answer

    def _work(self, judge: "_Judge", waiting: queue.SimpleQueue, done: queue.SimpleQueue) -> None:
        try:
            while True:
                job = waiting.get_nowait()
                done.put((job, self._result(judge, job)))
        except queue.Empty:
            pass
        except BaseException as problem:
            done.put((None, problem))

    def _result(self, judge: "_Judge", job: Job) -> ExerciseResult:
        exercise = self._exercises[job["exercise"]]
        try:
            answer = judge.ask(job) or judge.ask(job)
        except OSError as problem:
            answer = {"problem": str(problem)}
        if answer and "problem" not in answer:
            return ExerciseResult.from_json(answer)
        said = answer["problem"] if answer else f"the judge's process ended twice, with {judge.ending}"
        return failed_judging(exercise, said)


def failed_judging(exercise: Exercise, problem: str) -> ExerciseResult:
    """The result of an exercise that could not be judged: no points yet, and a flag for the teacher."""
    print(f"{exercise.id}: {problem}", file=sys.stderr)
    return ExerciseResult(exercise.id, exercise.title, 0, Status.GRADER_ERROR, 0.0, exercise.points)


class _Judge:
    def __init__(self, command: tuple[str, ...], order: Mapping[str, Any]) -> None:
        self._command = command
        self._order = order
        self._process: subprocess.Popen | None = None
        self._ended = threading.Event()
        self.ending = ""

    def ask(self, job: Job) -> dict[str, Any] | None:
        """The answer to a job; None if the judge's process ended or took too long."""
        if self._ended.is_set():
            return {"problem": "stopped"}
        process = self._process = self._process or self._begin()
        alarm = threading.Timer(PATIENCE_S, process.kill)
        alarm.start()
        try:
            line = self._said(process, job)
        finally:
            alarm.cancel()
        if line.endswith("\n"):
            return json.loads(line)
        process.kill()
        self.ending = f"exit code {process.wait()}"
        self._process = None
        return None

    def _said(self, process: subprocess.Popen, job: Job) -> str:
        try:
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            return process.stdout.readline()
        except BrokenPipeError:
            return ""

    def _begin(self) -> subprocess.Popen:
        """In a session of its own, so that Ctrl-C reaches only us, and we end it in order."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        process = subprocess.Popen(self._command, text=True, encoding="utf-8", start_new_session=True, **pipes)
        process.stdin.write(json.dumps(self._order) + "\n")
        return process

    def end(self) -> None:
        """Ask it to end its worker and itself; a judge that does not is killed."""
        self._ended.set()
        process = self._process
        if process is not None:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
