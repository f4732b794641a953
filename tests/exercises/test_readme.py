"""The table of exercises/README.md is that of the specs."""

import re

import pytest

from llminfer.grading.spec import Exercise, all_exercises, course_folder

README = course_folder() / "exercises" / "README.md"
CHAPTERS = sorted({exercise.chapter for exercise in all_exercises()})


def row(exercise: Exercise) -> str:
    """An exercise as the table has it: visible points, then hidden ones where there are any."""
    hidden = sum(group.points for group in exercise.groups if not group.visible)
    points = f"{exercise.points - hidden:g} + {hidden:g}" if hidden else f"{exercise.points:g}"
    file = f"{exercise.folder.name}/{exercise.file_name}"
    what = f"[{exercise.title}]({file})"
    return f"| {what} | {exercise.kind} | {exercise.section} | {exercise.minutes} | {exercise.difficulty} | {points} |"


def written(chapter: str) -> list[str]:
    text = README.read_text(encoding="utf-8")
    return [line for line in text.splitlines() if re.match(rf"\| \[.*\]\({re.escape(chapter)}-", line)]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_table_lists_every_exercise_in_order(chapter):
    expected = [row(exercise) for exercise in all_exercises(chapter)]
    assert written(chapter) == expected, "the rows should be:\n" + "\n".join(expected)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_sums_are_those_of_the_chapter(chapter):
    exercises = all_exercises(chapter)
    minutes, points = sum(e.minutes for e in exercises), sum(e.points for e in exercises)
    line = f"{len(exercises)} exercises, {minutes} minutes, {points:g} points"
    assert line in README.read_text(encoding="utf-8"), f"the sums should be: {line}"


def test_every_link_leads_to_a_file():
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).is_file(), target
