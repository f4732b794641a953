"""Every value of a homework that holds, and where it comes from: for `--explain`."""

from collections.abc import Iterator
from dataclasses import asdict

from llminfer.grading.course import Course, Homework


def explained(course: Course, homework: Homework) -> Iterator[tuple[str, str, str]]:
    """(what, its value, where it comes from)."""
    yield "course", course.name or "(no name)", str(course.folder)
    yield "class secret", "there" if course.secret else "", str(course.secret_file)
    roster = course.roster
    students = f"{len(roster.students)} students, {roster.form} list" if roster else "whoever hands in"
    yield "class list", students, str(course.roster_file or "no roster in course.toml")
    yield "homework", homework.heading, f"name {homework.name}"
    for exercise in homework.exercises:
        given = exercise.id in homework.points
        shown = " + ".join(f"{group.points:g}{'' if group.visible else ' hidden'}" for group in exercise.groups)
        limits = f"{exercise.limits.seconds:g} s a case, {exercise.limits.memory_mib} MiB"
        origin = f"course.toml; the exercise says {exercise.points:g}" if given else f"the exercise: {shown}"
        yield exercise.id, f"{homework.worth(exercise):g} points, {limits}", origin
    yield "maximum", f"{homework.max_points:g} points", "the sum"
    yield "opens", str(homework.opens or "not said"), "course.toml" if homework.opens else "shown to students only"
    yield "due", str(homework.due or "never"), "course.toml" if homework.due else "nothing is late"
    yield "late", str(homework.late), f"days round up; {homework.late.grace_minutes:g} minutes of grace"
    for extension in homework.extensions:
        yield f"due of {extension.student}", str(extension.due), extension.reason
    for override in homework.overrides:
        yield f"{override.exercise or 'total'} of {override.student}", f"{override.points:g} points", override.reason
    for name, value in asdict(homework.gradescope).items():
        yield (
            f"gradescope {name}",
            str(value),
            "what the container is set to" if name != "hidden_groups" else "their points",
        )
    yield "canvas column", homework.canvas or homework.heading, "course.toml" if homework.canvas else "the title"
