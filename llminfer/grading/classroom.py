"""Grades a class: take in, judge what is not judged yet, publish."""

from collections.abc import Callable
from pathlib import Path

from llminfer.grading.course import Course, Homework
from llminfer.grading.intake import load_intake, store_intake, take_in
from llminfer.grading.isolation import Isolation, strongest
from llminfer.grading.judge_pool import COMMAND, JudgePool
from llminfer.grading.publishing import Run, publish
from llminfer.grading.results import ExerciseResult, Status
from llminfer.grading.run_folders import RunFolder, result_key
from llminfer.grading.seeds import team
from llminfer.grading.submission_times import with_times

Tell = Callable[[int, int, str], None]
"""(judged, to judge, whose) -> nothing: shows how far it is."""


def grade_class(
    course: Course,
    homework: Homework,
    source: Path,
    out: Path,
    isolation: Isolation,
    jobs: int = 2,
    times: Path | None = None,
    accept_drops: bool = False,
    tell: Tell = lambda *_: None,
    command: tuple[str, ...] = COMMAND,
) -> Run:
    """Grade what is in `source` into the run folder `out`; what is judged there already is not judged again.

    times: a CSV of student and submitted. command: what runs a judge. Raises ValueError for a course, a source or a
    folder that cannot be meant.
    """
    folder = _of_this_homework(RunFolder(out), homework)
    _check_students(course, homework)
    secret = course.secret
    intake = take_in(source, homework, course.roster, folder.submissions)
    if times is not None:
        intake = with_times(intake, times)
    exercises = {exercise.id: exercise for exercise in homework.exercises}
    results: dict[tuple[str, ...], dict[str, ExerciseResult]] = {each.members: {} for each in intake.submissions}
    jobs_left, keys = [], {}
    for submission in intake.submissions:
        for name, file in submission.files.items():
            key = result_key(exercises[name], file, submission.members, secret, isolation.level)
            stored = folder.stored(submission.members, exercises[name], key)
            if stored is not None:
                results[submission.members][name] = stored
            else:
                jobs_left.append({"exercise": name, "file": str(file), "student": team(submission.members)})
                keys[team(submission.members), name] = submission.members, key
    with JudgePool(homework.exercises, jobs, secret, isolation.level, command=command) as pool:
        for done, (job, result) in enumerate(pool.results(jobs_left), start=1):
            name = job["exercise"]
            members, key = keys[job["student"], name]
            results[members][name] = result
            # Where we failed, the result is shown, but kept under no key, so that the next run judges it again.
            kept_under = "" if result.status is Status.GRADER_ERROR else key
            folder.store(members, exercises[name], kept_under, result)
            tell(done, len(jobs_left), " + ".join(members))
    store_intake(out, intake, isolation.level)
    return publish(course, homework, folder, intake, results, isolation.level, accept_drops)


def report_class(course: Course, homework: Homework, out: Path, accept_drops: bool = False) -> Run:
    """Make grades and reports again from what was judged, by the rules of `course.toml` as they are now.

    Raises ValueError if the run did not come to its end, or if the homework has got exercises since.
    """
    folder = _of_this_homework(RunFolder(out), homework)
    _check_students(course, homework)
    intake, level = load_intake(out, folder.submissions, course.roster)
    results = {}
    for submission in intake.submissions:
        judged = [exercise for exercise in homework.exercises if exercise.id in submission.files]
        results[submission.members] = {each.id: folder.last_result(submission.members, each) for each in judged}
    return publish(course, homework, folder, intake, results, level, accept_drops)


def strong_isolation(weak_allowed: bool = False) -> Isolation:
    """The strongest that works here. Raises ValueError if it is too weak for strangers' programs."""
    found = strongest()
    if not found.boundary and not weak_allowed:
        raise ValueError(
            f"{found.sentence}. Install bubblewrap (apt install bubblewrap), grade in a container that you can throw "
            "away, or accept it with --allow-weak-isolation"
        )
    return found


def _of_this_homework(folder: RunFolder, homework: Homework) -> RunFolder:
    last = folder.last_run()
    if last is not None and last.get("homework") != homework.name:
        raise ValueError(
            f"{folder.path} holds the run of {last.get('homework')!r}; give {homework.name!r} its own with --out"
        )
    return folder


def _check_students(course: Course, homework: Homework) -> None:
    """What is decided for somebody who is not in the class is a slip of the pen."""
    for decided in (*homework.extensions, *homework.overrides) if course.roster else ():
        if decided.student not in course.roster.by_id:
            raise ValueError(f"homework {homework.name!r} decides for {decided.student!r}, not in {course.roster_file}")
