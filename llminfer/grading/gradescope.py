"""Builds the zip that Gradescope makes an autograder of, from the same course, judge and secret as a class run.

At its root: `setup.sh` and `run_autograder`, the homework, the class secret, and the package with what judges it. The
judge imports neither torch nor Triton; only workers of kernel exercises do.
"""

import importlib.metadata
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from llminfer.grading.archive_writing import zipped
from llminfer.grading.atomic_files import write_atomically
from llminfer.grading.course import FILE_NAME, Course, Homework
from llminfer.grading.exports import csv_text
from llminfer.grading.gradescope_results import scored
from llminfer.grading.gradescope_run import JUDGE_MB, TORCH_MB
from llminfer.grading.handouts import course_for_students
from llminfer.grading.run_folders import PACKAGE
from llminfer.grading.sittings import BAD_ENDINGS
from llminfer.grading.spec import all_exercises

SCRIPTS = Path(__file__).with_name("gradescope_files")
PROGRAM_MB = 400
"""What a student's program must be able to use; a container of 768 MB, which Gradescope gives unasked, has it."""
START_S = 2
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
WHEELS_FOR = ("--python-version", "3.11", "--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64")


@dataclass(frozen=True)
class Built:
    """The zip, and what to know of it. max_points: the sum of its tests' max_score, to be the assignment's total.

    worst_s: how long it takes when every exercise meets its time limit. unscored: short answers, which people read.
    """

    path: Path
    size_mb: float
    max_points: float
    worst_s: float
    memory_mb: int
    unscored: tuple[str, ...]


def build(course: Course, homework: Homework, out: Path, wheels: bool = False) -> Built:
    """Write the zip. wheels: pack what pip would fetch while the image is built, which takes the network now instead.

    Raises ValueError where the container that `course.toml` describes is too small or too slow for the homework.
    """
    worst = worst_s(homework)
    _check_budget(homework, worst)
    files = dict(_files(course, homework))
    if wheels:
        files |= _wheels(files["requirements.txt"])
    whole = zipped(files, executable=("setup.sh", "run_autograder"))
    write_atomically(out, whole, mode=0o600)  # the class secret is in it
    unscored = tuple(each.id for each in homework.exercises if each not in scored(homework))
    points = sum(homework.worth(exercise) for exercise in scored(homework))
    return Built(out, len(whole) / 1e6, points, worst, homework.gradescope.memory_mb, unscored)


def needs_torch(homework: Homework) -> bool:
    return any(exercise.kind == "kernel" for exercise in homework.exercises)


def worst_s(homework: Homework) -> float:
    """When every program runs into its time limit, until the judge gives it up."""
    return sum(BAD_ENDINGS * (exercise.limits.seconds + START_S) for exercise in homework.exercises)


def _check_budget(homework: Homework, worst: float) -> None:
    settings = homework.gradescope
    needed = JUDGE_MB + PROGRAM_MB + (TORCH_MB if needs_torch(homework) else 0)
    if settings.memory_mb < needed:
        why = "kernel exercises need torch" if needs_torch(homework) else "judge and worker"
        raise ValueError(
            f"homework {homework.name!r} needs a container of {needed} MB ({why}), not of {settings.memory_mb}: "
            "choose a larger one in Gradescope, and write its memory_mb under [homework.gradescope]"
        )
    if worst > 60 * settings.minutes:
        raise ValueError(
            f"homework {homework.name!r} may take {worst:.0f} s, Gradescope stops after {60 * settings.minutes:.0f}: "
            "raise minutes (at most 40) there and under [homework.gradescope], or make two homework of it"
        )


def _files(course: Course, homework: Homework) -> Iterator[tuple[str, bytes | str]]:
    for script in ("setup.sh", "run_autograder"):
        yield script, (SCRIPTS / script).read_text(encoding="utf-8").replace("\r\n", "\n")
    yield "requirements.txt", requirements(needs_torch(homework))
    yield "class-secret", course.secret
    yield FILE_NAME, _course_for_gradescope(course, homework)
    if course.roster:
        rows = [(student.id, student.email, student.group) for student in course.roster.students]
        yield "roster.csv", csv_text(("id", "email", "group"), rows)
    for path in sorted(PACKAGE.rglob("*")):
        within = path.relative_to(PACKAGE)
        if path.is_file() and "__pycache__" not in within.parts and "course" not in within.parts:
            yield f"llminfer/{within.as_posix()}", path.read_bytes()
    yield from _judged(homework)


def _judged(homework: Homework) -> Iterator[tuple[str, bytes]]:
    """Every exercise's spec, by which files are told apart; starter and judge's side only of those that are judged."""
    place = "llminfer/grading/course"
    chosen = {exercise.id for exercise in homework.exercises}
    for exercise in all_exercises():
        folder = exercise.folder.name
        spec = exercise.folder / f"{exercise.name}.toml"
        yield f"{place}/exercises/{folder}/{spec.name}", spec.read_bytes()
        if exercise.id in chosen:
            yield f"{place}/exercises/{folder}/{exercise.file_name}", exercise.starter.read_bytes()
            for name in (exercise.file_name, f"{exercise.name}_judge.py"):
                side = exercise.solution.with_name(name)
                if side.is_file():
                    yield f"{place}/solutions/{folder}/{name}", side.read_bytes()


def _course_for_gradescope(course: Course, homework: Homework) -> str:
    """The homework alone, without what was decided for anybody; lateness is Gradescope's to see."""
    settings = [f"{key} = {value!r}".replace("'", '"') for key, value in asdict(homework.gradescope).items()]
    roster = 'roster = "roster.csv"\n' if course.roster else ""
    return roster + course_for_students(course, homework) + "\n".join(["[homework.gradescope]", *settings]) + "\n"


def requirements(torch: bool) -> str:
    """What the container installs: the versions that are installed here, of everything that the library needs."""
    pins = {"llminfer": ""}
    waiting = ["llminfer"]
    while waiting:
        for line in importlib.metadata.requires(waiting.pop()) or ():
            name = re.match(r"[A-Za-z0-9._-]+", line)[0].lower().replace("_", "-")
            if "extra ==" in line or name in pins:
                continue
            try:
                pins[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue  # for another system or version of Python
            waiting.append(name)
    del pins["llminfer"]  # comes as it is
    lines = [f"{name}=={version}" for name, version in sorted(pins.items())]
    if torch:
        lines = [f"--extra-index-url {TORCH_INDEX}", *lines]
        for name in ("torch", "triton"):
            lines.append(f"{name}=={importlib.metadata.version(name).split('+')[0]}")
    return "\n".join(lines) + "\n"


def _wheels(wanted: str) -> dict[str, bytes]:
    """By pip, for Python 3.11 on Linux. Raises ValueError with pip's words if it cannot."""
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "requirements.txt"
        listed.write_text(wanted, encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "-q", "--only-binary", ":all:", *WHEELS_FOR]
        done = subprocess.run([*command, "-r", listed, "-d", Path(folder) / "wheels"], capture_output=True, text=True)
        if done.returncode:
            raise ValueError(
                f"pip could not fetch the wheels: {done.stderr.strip().splitlines()[-1:]}; build without --wheels"
            )
        return {f"wheels/{path.name}": path.read_bytes() for path in (Path(folder) / "wheels").iterdir()}
