"""One submission before the judge: a worker that is asked, and a fresh one when it ended badly, but no third."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from llminfer.grading.behaviours import Behaviour, behaviour_in, guarded
from llminfer.grading.comparison import Mismatch
from llminfer.grading.isolation import Isolation
from llminfer.grading.questions import Question
from llminfer.grading.results import Status
from llminfer.grading.sessions import Reply, Session, Task
from llminfer.grading.spec import Case, Exercise
from llminfer.grading.verdicts import verdict
from llminfer.grading.worker_views import graphics_devices

BAD_ENDINGS = 2
"""After so many, what was not asked yet is taken to end as the last one did."""
PATIENCE = 20.0
"""A submission may take this many times as long as the reference, where that is more than its limit allows."""
COMPILING_S = 60.0
"""More for a kernel where there is a GPU to compile it for; in the interpreter nothing is compiled."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What came of a question. mismatch: None if it is right."""

    question: Question
    reply: Reply
    behaviour: Behaviour
    mismatch: Mismatch | None


class Sitting:
    """Asks one submission; a context, which ends its worker."""

    def __init__(self, exercise: Exercise, file: Path, isolation: Isolation, slowest_s: float = 0.0) -> None:
        """slowest_s: what the reference took on the slowest case here, which makes room on a slow machine."""
        compiling_s = COMPILING_S if exercise.kind == "kernel" and graphics_devices() else 0.0
        seconds = max(exercise.limits.seconds, PATIENCE * slowest_s) + compiling_s
        limits = replace(exercise.limits, seconds=seconds)
        outputs = exercise.judge_side.outputs
        self._exercise, self._isolation = exercise, isolation
        self._task = Task(exercise.entry, exercise.kind, file, exercise.stubs, limits, outputs)
        self._open = ExitStack()
        self._bad_endings: list[Status] = []
        self._borders = np.random.default_rng()  # unseeded: nobody shall know them

    def __enter__(self) -> "Sitting":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def load(self) -> Reply:
        """Start a worker and import the submission there."""
        self._open.close()
        self._session = self._open.enter_context(Session(self._task, self._isolation))
        return self._noted(self._session.load())

    def ask(self, asked: Question) -> Answer:
        """One question; the worker is replaced first if the last question ended it."""
        if len(self._bad_endings) >= BAD_ENDINGS:
            return self._answer(asked, asked.case, Reply(self._bad_endings[-1]))
        if not self._session.alive and (loaded := self.load()).status is not Status.OK:
            return self._answer(asked, asked.case, loaded)
        sent = asked.case
        if self._exercise.kind == "number":
            sent = Case({})  # what was drawn stands in the student's file
        elif self._exercise.kind == "kernel":
            sent = guarded(asked.case, self._task.outputs, self._borders)
        return self._answer(asked, sent, self._noted(self._session.call(sent)))

    @property
    def alive(self) -> bool:
        """Whether the worker can be asked more."""
        return self._session.alive

    def _noted(self, reply: Reply) -> Reply:
        # A worker survives a refusal of memory, but each costs seconds, and what is left of it is not to be trusted.
        if not self._session.alive or reply.status is Status.MEMORY:
            self._bad_endings.append(reply.status)
        return reply

    def _answer(self, asked: Question, sent: Case, reply: Reply) -> Answer:
        behaviour = behaviour_in(self._exercise, asked.group.name, sent, reply)
        return Answer(asked, reply, behaviour, verdict(self._exercise, asked, behaviour))
