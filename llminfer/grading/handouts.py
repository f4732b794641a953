"""What students get: the starters, a `course.toml` that names the homework, and how to begin."""

from dataclasses import asdict

from llminfer.grading.course import FILE_NAME, Course, Homework

README = """\
# {heading}

{course}

{due}| file | task | book section | minutes | points |
|---|---|---|---|---|
{rows}

The task stands at the top of each file. Work until the visible tests are right; your teacher runs the hidden ones.

```
# with llminfer installed, in this folder
llminfer grade {name}  # as often as you like
llminfer pack {name}   # checks your files and writes {name}.zip: hand that in
```
"""


def handed_out(course: Course, homework: Homework) -> dict[str, bytes | str]:
    """The files of a hand-out by their names in it."""
    files: dict[str, bytes | str] = {
        f"{homework.name}/{FILE_NAME}": course_for_students(course, homework),
        f"{homework.name}/README.md": _readme(course, homework),
    }
    for exercise in homework.exercises:
        for path in exercise.folder.glob(f"{exercise.name}.*"):
            if path.suffix != ".toml":
                files[f"{homework.name}/{path.name}"] = path.read_bytes()
    return files


def course_for_students(course: Course, homework: Homework) -> str:
    """`course.toml` without secret, class list, and what was decided for anybody."""
    ids = ", ".join(_quoted(exercise.id) for exercise in homework.exercises)
    worth = ", ".join(f"{_quoted(name)} = {points:g}" for name, points in homework.points.items())
    late = {"grace_minutes": homework.late.grace_minutes, "percent_per_day": homework.late.percent_per_day}
    late |= {"last_day": homework.late.last_day} if homework.late.last_day is not None else {}
    ceilings = {key: value for key, value in asdict(course.ceilings).items() if value is not None}
    lines = [f"name = {_quoted(course.name)}", "", "[late]", *(f"{key} = {value}" for key, value in late.items()), ""]
    lines += ["[limits]", *(f"{key} = {value}" for key, value in ceilings.items()), ""] if ceilings else []
    lines += ["[[homework]]", f"name = {_quoted(homework.name)}", f"title = {_quoted(homework.title)}"]
    lines += [f"exercises = [{ids}]", f"points = {{ {worth} }}"]
    lines += [f"{key} = {time.isoformat()}" for key in ("opens", "due") if (time := getattr(homework, key))]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A TOML string; TOML's escapes are JSON's for what can be printed."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(letter if letter.isprintable() else f"\\U{ord(letter):08X}" for letter in escaped) + '"'


def _readme(course: Course, homework: Homework) -> str:
    rows = [
        f"| {each.file_name} | {each.title} | {each.section} | {each.minutes} | {homework.worth(each):g} |"
        for each in homework.exercises
    ]
    due = f"Due {homework.due:%Y-%m-%d %H:%M %Z}. Lateness: {homework.late}.\n\n" if homework.due else ""
    return README.format(
        course=course.name, heading=homework.heading, due=due, rows="\n".join(rows), name=homework.name
    )
