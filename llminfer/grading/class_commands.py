"""`llminfer class ...` and `llminfer pack`: each reads its options, calls one function and shows the result.

What does the work is imported when a command runs, so that `llminfer --help` does not wait for it.
"""

import json
import os
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

class_app = typer.Typer(no_args_is_help=True, help="A course: make it, hand it out, grade a class, publish.")
gradescope_app = typer.Typer(no_args_is_help=True, help="The autograder for Gradescope: build it, try it here.")
class_app.add_typer(gradescope_app, name="gradescope")

CourseOption = Annotated[Path, typer.Option("--course", help="course.toml, or its folder.")]
Name = Annotated[str | None, typer.Argument(help="Which homework; not needed where there is one.")]
NameOption = Annotated[str | None, typer.Option("--homework", help="Which homework; not needed where there is one.")]
Drops = Annotated[bool, typer.Option("--accept-drops", help="Publish although points fall.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
HERE = Path(".")


def _asked(course: Path, name: str | None):
    """The course and the homework that are meant."""
    from llminfer.grading.course_file import load_course

    found = load_course(course)
    return found, found.find(name)


@class_app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="A new folder for the course.")],
    demo: Annotated[bool, typer.Option("--demo", help="With nine students who have handed in.")] = False,
    as_json: Json = False,
) -> None:
    """Begin a course: course.toml, the class secret, and with --demo a class to try it on."""
    from llminfer.grading.demo import make_demo
    from llminfer.grading.new_course import make_course
    from llminfer.grading.spec import all_exercises

    if demo:
        path = make_demo(folder)
        say = f"cd {folder}\nllminfer class grade submissions --times times.csv"
    else:
        due = (datetime.now().astimezone() + timedelta(days=14)).replace(hour=23, minute=59, second=0, microsecond=0)
        path = make_course(folder, tuple(sorted({exercise.chapter for exercise in all_exercises()}))[:1], due)
        say = f"cd {folder}\nllminfer class grade --explain\nllminfer class release"
    if as_json:
        return print(json.dumps({"course": str(path)}))
    print(f"{path} is there, and its secret beside it. Next:\n\n{say}")


@class_app.command()
def grade(
    folder: Annotated[
        Path | None, typer.Argument(help="The submissions: a folder, or the archive as downloaded.")
    ] = None,
    homework: NameOption = None,
    course: CourseOption = HERE,
    out: Annotated[Path | None, typer.Option(help="The run's folder; runs/NAME beside course.toml.")] = None,
    jobs: Annotated[int, typer.Option("-j", "--jobs", help="So many at a time.")] = os.cpu_count() or 1,
    times: Annotated[Path | None, typer.Option(help="A CSV of student and submitted.")] = None,
    accept_drops: Drops = False,
    weak: Annotated[bool, typer.Option("--allow-weak-isolation", help="Run strangers' code unprotected.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print every value that holds, and grade nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Grade a class. Run it again after a stop, a mended test or a late submission: only what is new is judged."""
    from llminfer.grading.class_terminal import run_ending, show_explained, show_progress, show_run
    from llminfer.grading.classroom import grade_class, strong_isolation

    found, asked = _asked(course, homework)
    if explain:
        return show_explained(found, asked, as_json)
    if folder is None:
        raise ValueError("which submissions? llminfer class grade FOLDER, or an archive as the platform gives it")
    isolation = strong_isolation(weak)
    with show_progress() as tell:
        run = grade_class(
            found, asked, folder, out or _run_folder(found, asked), isolation, jobs, times, accept_drops, tell
        )
    if not as_json:
        print(isolation.sentence)
    show_run(run, as_json)
    raise typer.Exit(run_ending(run))


@class_app.command()
def report(
    homework: Name = None,
    course: CourseOption = HERE,
    out: Annotated[Path | None, typer.Option(help="The run's folder.")] = None,
    accept_drops: Drops = False,
    as_json: Json = False,
) -> None:
    """Write grades and reports again by the rules as they are now: after an override, an extension, marks by hand."""
    from llminfer.grading.class_terminal import run_ending, show_run
    from llminfer.grading.classroom import report_class

    found, asked = _asked(course, homework)
    run = report_class(found, asked, out or _run_folder(found, asked), accept_drops)
    show_run(run, as_json)
    raise typer.Exit(run_ending(run))


@class_app.command()
def release(
    homework: Name = None,
    course: CourseOption = HERE,
    out: Annotated[Path | None, typer.Option(help="Where the zip goes; handouts/ beside course.toml.")] = None,
    check: Annotated[Path | None, typer.Option(help="Prove this hand-out, and write none.")] = None,
    as_json: Json = False,
) -> None:
    """Write what students get, and prove that it holds no solution and no secret."""
    from llminfer.grading import release as releasing
    from llminfer.grading.class_terminal import show_checks

    found, asked = _asked(course, homework)
    if check is None:
        path, checks = releasing.release(found, asked, out or found.folder / "handouts")
    else:
        path, checks = check, releasing.check(found, asked, check)
    show_checks(checks, path, as_json)
    if not all(each.holds for each in checks):
        raise typer.Exit(1)


@class_app.command()
def diff(
    before: Annotated[Path, typer.Argument(help="A run's folder.")],
    after: Annotated[Path, typer.Argument(help="Another.")],
    as_json: Json = False,
) -> None:
    """Whose points differ between two runs, and why. Ends with 1 if any fall."""
    from llminfer.grading.class_terminal import show_changes
    from llminfer.grading.diff import differences
    from llminfer.grading.run_folders import RunFolder

    runs = [RunFolder(path).last_run() for path in (before, after)]
    for path, run in zip((before, after), runs, strict=True):
        if run is None:
            raise ValueError(f"{path} holds no run.json; name the folder that `llminfer class grade` wrote")
    changes = differences(*runs)
    show_changes(changes, as_json)
    if any(change.falls for change in changes):
        raise typer.Exit(1)


@gradescope_app.command()
def build(
    homework: Name = None,
    course: CourseOption = HERE,
    out: Annotated[Path | None, typer.Option(help="The zip; NAME-gradescope.zip beside course.toml.")] = None,
    wheels: Annotated[
        bool, typer.Option("--wheels", help="Pack the libraries too, for an image built offline.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the zip that Gradescope makes an autograder of. The class secret is in it: upload it, and nothing else."""
    from llminfer.grading import gradescope

    found, asked = _asked(course, homework)
    made = gradescope.build(found, asked, out or _autograder(found, asked), wheels)
    settings = asked.gradescope
    if as_json:
        return print(json.dumps(asdict(made), indent=2, default=str))
    print(f"{made.path}: {made.size_mb:.1f} MB; the class secret is in it")
    print(f"the assignment's total must be {made.max_points:g} points, the sum of max_score")
    print(f"the container: {settings.memory_mb} MB, {settings.cpus:g} CPU, {settings.minutes:g} minutes")
    print(f"at worst it takes {made.worst_s:.0f} s of {60 * settings.minutes:.0f}")
    if made.unscored:
        print(f"people read {', '.join(made.unscored)}: add a question for each by hand")
    print(f"next: llminfer class gradescope test SUBMISSION --homework {asked.name}")


@gradescope_app.command()
def test(
    submission: Annotated[Path, typer.Argument(help="What a student would upload: a folder, a zip or a file.")],
    homework: NameOption = None,
    course: CourseOption = HERE,
    archive: Annotated[Path | None, typer.Option("--zip", help="What `build` wrote.")] = None,
    email: Annotated[str, typer.Option(help="Of a student in the class list.")] = "",
    as_json: Json = False,
) -> None:
    """Run the zip here as Gradescope does, with its limits, and show what a student would see."""
    from llminfer.grading.class_terminal import show_trial
    from llminfer.grading.gradescope_trial import try_out

    found, asked = _asked(course, homework)
    archive = archive or _autograder(found, asked)
    if not archive.is_file():
        raise ValueError(f"there is no {archive}; `llminfer class gradescope build` writes it")
    trial = try_out(archive, submission, asked.gradescope, email)
    show_trial(trial, asked.gradescope, as_json)
    raise typer.Exit(1 if trial.problems else 0)


def pack(
    homework: Annotated[str | None, typer.Argument(help="Which homework; not needed where there is one.")] = None,
    folder: Annotated[Path, typer.Option(help="Where your files are, and course.toml.")] = HERE,
    out: Annotated[Path | None, typer.Option(help="The zip; NAME.zip beside your files.")] = None,
    student: Annotated[str, typer.Option(help="Your id, so that a mix-up is seen.")] = "",
    as_json: Json = False,
) -> None:
    """Check your files as the teacher's program will, and write the zip to hand in."""
    from llminfer.grading.class_terminal import packed_ending, show_packed
    from llminfer.grading.judge import grade_many
    from llminfer.grading.pack import pack as pack_files
    from llminfer.grading.workplace import submission

    _, asked = _asked(folder, homework)
    with TemporaryDirectory() as scratch:
        own = {exercise: submission(exercise, folder, Path(scratch)) for exercise in asked.exercises}
        packed = pack_files(asked, own, out or folder / f"{asked.name}.zip", student)
        results = list(grade_many(own.items(), student=student))
    show_packed(packed, results, as_json)
    raise typer.Exit(packed_ending(results))


def _run_folder(course, homework) -> Path:
    return course.folder / "runs" / homework.name


def _autograder(course, homework) -> Path:
    return course.folder / f"{homework.name}-gradescope.zip"
