"""The judge: the only part that knows cases, expected values, seeds and points.

A student's code runs elsewhere, in a worker that learns the questions alone. Points exist only where the judge itself
has compared a complete reply to every question of a group; whatever else happens, there are none.
"""

import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from llminfer.grading.failures import failure, not_loaded
from llminfer.grading.fingerprints import fingerprint
from llminfer.grading.isolation import Isolation, strongest
from llminfer.grading.questions import Question, questions
from llminfer.grading.results import ExerciseResult, Failure, GroupResult, Status
from llminfer.grading.sessions import Reply
from llminfer.grading.sittings import Answer, Sitting
from llminfer.grading.spec import Case, Exercise, Group, all_exercises

AT_A_TIME = 2
LATER = "run by your teacher"
WHOLE = (Status.MISSING, Status.NOT_DONE, Status.IMPORT_ERROR, Status.FORBIDDEN_IMPORT, Status.GRADER_ERROR)
"""What concerns a submission as a whole, so that a hidden group may say it too. Else it is right or wrong."""


@dataclass
class _Round:
    """A group, its questions and the answers so far. status: of a group that is not asked."""

    group: Group
    questions: tuple[Question, ...] = ()
    answers: list[Answer] = field(default_factory=list)
    status: Status | None = None

    @property
    def first_wrong(self) -> Answer | None:
        return next((answer for answer in self.answers if answer.mismatch), None)


def grade(
    exercise: Exercise,
    file: Path | None,
    *,
    student: str = "",
    secret: bytes | None = None,
    isolation: Isolation | None = None,
    hidden_only: bool = False,
    seed: int = 0,
) -> ExerciseResult:
    """Judge one submission. Never raises for what a student did, nor for a mistake of ours: that is a grader_error.

    student: whose numbers are drawn, and whose hidden inputs; `seeds.team` for several. Without a secret hidden groups
    are not run. seed: other inputs for the visible groups. isolation: None takes the strongest that works here.
    LLMINFER_TRACEBACK=1 lets our own mistakes through, for whoever mends them.
    """
    began = monotonic()
    isolation = isolation or strongest()
    try:
        result = _graded(exercise, file, student, secret, isolation, hidden_only, seed)
    except Exception as problem:
        if os.environ.get("LLMINFER_TRACEBACK"):
            raise
        result = _grader_error(exercise, problem, secret)
    told = {"isolation": isolation.sentence, "fingerprint": fingerprint(), "seconds": monotonic() - began}
    return replace(result, **told)


def grade_many(
    jobs: Iterable[tuple[Exercise, Path | None]],
    tell: Callable[[ExerciseResult], None] = lambda result: None,
    *,
    isolation: Isolation | None = None,
    **options: object,
) -> Iterator[ExerciseResult]:
    """`grade` for several, two at a time; results in the order of the jobs, and `tell` as each one ends."""
    isolation = isolation or strongest()  # found out once, before two threads ask at the same time

    def judged(job: tuple[Exercise, Path | None]) -> ExerciseResult:
        result = grade(*job, isolation=isolation, **options)
        tell(result)
        return result

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield from pool.map(judged, jobs)


def visible_case(exercise: str, group: str, number: int, seed: int = 0) -> Case:
    """A case that students may see, by its place; what a reproduction names when the case is too large to be written.

    Raises ValueError if there is no such case.
    """
    for found in all_exercises():
        for each in found.groups if found.id == exercise else ():
            if each.name == group and each.visible:
                asked = questions(found, each, seed=seed)
                if 1 <= number <= len(asked):
                    return asked[number - 1].case
    raise ValueError(f"there is no visible case {number} in group {group!r} of {exercise!r}")


def _graded(
    exercise: Exercise,
    file: Path | None,
    student: str,
    secret: bytes | None,
    isolation: Isolation,
    hidden_only: bool,
    seed: int,
) -> ExerciseResult:
    groups = [group for group in exercise.groups if not (hidden_only and group.visible)]
    if file is None or not file.is_file():
        return _unasked(exercise, groups, Reply(Status.MISSING, error=f"there is no {exercise.file_name}"), secret)
    if exercise.kind == "short-answer":
        return _collected(exercise, file, groups)
    rounds = []
    for group in groups:
        if group.visible or secret:
            rounds.append(_Round(group, questions(exercise, group, student, secret, seed)))
        else:
            rounds.append(_Round(group, status=Status.NOT_RUN))
    slowest = max((asked.seconds for each in rounds for asked in each.questions), default=0.0)
    with Sitting(exercise, file, isolation, slowest) as sitting:
        loaded = sitting.load()
        if loaded.status is not Status.OK:
            return _unasked(exercise, groups, loaded, secret)
        return _asked(exercise, rounds, sitting, secret, seed)


def _asked(
    exercise: Exercise, rounds: Sequence[_Round], sitting: Sitting, secret: bytes | None, seed: int
) -> ExerciseResult:
    for each in rounds:
        for asked in each.questions:
            each.answers.append(sitting.ask(asked))
            if not sitting.alive:
                break  # the rest of the group is lost; the next one begins with a fresh worker
        if each.answers and each.answers[0].behaviour.status is Status.NOT_DONE and each is rounds[0]:
            return _unasked(exercise, [one.group for one in rounds], each.answers[0].reply, secret)
    _ask_again(rounds, sitting)
    groups = tuple(map(_group_result, rounds))
    visible = [each for each in rounds if each.group.visible]
    shown = next((each.first_wrong for each in visible if each.first_wrong), None)
    told = None
    if shown:
        answers = [answer for each in visible for answer in each.answers]
        told = failure(exercise, answers, shown, sitting, seed)
    return _result(exercise, groups, told)


def _ask_again(rounds: Sequence[_Round], sitting: Sitting) -> None:
    """The first question once more, with fresh arrays: who keeps something between calls answers otherwise now."""
    each = next((each for each in rounds if each.answers), None)
    if each is None or each.answers[0].mismatch or not sitting.alive:
        return
    again = sitting.ask(each.answers[0].question)
    if again.mismatch and sitting.alive:
        words = "asked a second time, the first case is answered in another way"
        each.answers.append(replace(again, mismatch=replace(again.mismatch, status=Status.WRONG, message=words)))


def _group_result(each: _Round) -> GroupResult:
    group = each.group
    if each.status:
        return GroupResult(group.name, group.visible, 0.0, group.points, 0, 0, each.status, LATER)
    wrong = each.first_wrong
    status = wrong.mismatch.status if wrong else Status.OK
    points = group.points if status is Status.OK and len(each.answers) == len(each.questions) else 0.0
    if not group.visible:
        coarse = status if status in (Status.OK, *WHOLE) else Status.WRONG
        return GroupResult(group.name, False, points, group.points, 0, 0, coarse, "" if points else group.hint)
    passed = min(sum(answer.mismatch is None for answer in each.answers), len(each.questions) - bool(wrong))
    return GroupResult(group.name, True, points, group.points, passed, len(each.questions), status, group.about)


def _result(exercise: Exercise, groups: tuple[GroupResult, ...], told: Failure | None) -> ExerciseResult:
    bad = [group.status for group in groups if group.status not in (Status.OK, Status.NOT_RUN)]
    return ExerciseResult(
        exercise=exercise.id,
        title=exercise.title,
        version=0 if exercise.kind == "short-answer" else exercise.judge_side.version,
        status=bad[0] if bad else Status.OK,
        points=sum(group.points for group in groups),
        max_points=sum(group.max_points for group in groups),
        groups=groups,
        failure=told,
    )


def _unasked(exercise: Exercise, groups: Sequence[Group], reply: Reply, secret: bytes | None) -> ExerciseResult:
    """No group gives anything, for one reason."""
    found = tuple(_group_unasked(group, reply.status, secret) for group in groups)
    return replace(_result(exercise, found, not_loaded(exercise, reply)), status=reply.status)


def _collected(exercise: Exercise, file: Path, groups: Sequence[Group]) -> ExerciseResult:
    """A short answer is for people to read; the judge sees only whether somebody wrote something."""
    written = file.read_bytes().split() != exercise.starter.read_bytes().split()
    status = Status.COLLECTED if written else Status.NOT_DONE
    found = tuple(GroupResult(g.name, g.visible, 0.0, g.points, 0, 0, status, "read by your teacher") for g in groups)
    told = None if written else not_loaded(exercise, Reply(status))
    return replace(_result(exercise, found, told), status=status)


def _grader_error(exercise: Exercise, problem: Exception, secret: bytes | None) -> ExerciseResult:
    """Ours. What is told is where it happened, not the values it happened with: they may be hidden ones."""
    place = traceback.extract_tb(problem.__traceback__)[-1]
    words = f"the grader failed: {type(problem).__name__} in {Path(place.filename).name}, line {place.lineno}"
    groups = tuple(_group_unasked(group, Status.GRADER_ERROR, secret) for group in exercise.groups)
    told = Failure("", Status.GRADER_ERROR, words, section=exercise.section)
    return ExerciseResult(exercise.id, exercise.title, 0, Status.GRADER_ERROR, 0.0, exercise.points, groups, told)


def _group_unasked(group: Group, status: Status, secret: bytes | None) -> GroupResult:
    if group.visible or secret:
        return GroupResult(group.name, group.visible, 0.0, group.points, 0, 0, status)
    return GroupResult(group.name, False, 0.0, group.points, 0, 0, Status.NOT_RUN, LATER)
