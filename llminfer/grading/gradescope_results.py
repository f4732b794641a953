"""`results.json` as Gradescope reads it: what a judged homework becomes, and what would be wrong with one."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llminfer.grading.course import HIDDEN_SHOWN, Homework
from llminfer.grading.explanations import WORDS, cases, headline, parts, plain
from llminfer.grading.results import ExerciseResult, GroupResult, Status
from llminfer.grading.spec import Exercise

FORMATS = ("text", "html", "simple_format", "md", "ansi")
MAX_OUTPUT = 8_000
"""Letters of one test's output: what a student's program printed may be much."""
TEST_FIELDS: dict[str, type | tuple[type, ...]] = {
    **{"score": (int, float), "max_score": (int, float), "status": str, "name": str, "name_format": str, "number": str},
    **{"output": str, "output_format": str, "tags": list, "visibility": str, "extra_data": dict},
}
TOP_FIELDS: dict[str, type | tuple[type, ...]] = {
    **{"score": (int, float), "execution_time": (int, float), "output": str, "output_format": str, "visibility": str},
    **{"test_output_format": str, "test_name_format": str, "stdout_visibility": str, "extra_data": dict, "tests": list},
    "leaderboard": list,
}


def results_json(
    homework: Homework, results: Mapping[str, ExerciseResult], lines: Sequence[str], seconds: float
) -> dict[str, Any]:
    """Every group of every exercise is a test, so that the points always add up to the homework's.

    results: by exercise id; what is not there yet counts nothing. lines: what is said of the submission as a whole.
    """
    tests = []
    for place, exercise in enumerate(scored(homework), start=1):
        tests += _tests(homework, exercise, place, results.get(exercise.id))
    return {
        "tests": tests,
        "output": "\n".join(map(plain, lines)),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "execution_time": round(seconds, 1),
        "extra_data": {name: {"version": each.version, "status": each.status} for name, each in results.items()},
    }


def scored(homework: Homework) -> tuple[Exercise, ...]:
    """Without the short answers: a person reads those, and Gradescope has questions marked by hand for them."""
    return tuple(exercise for exercise in homework.exercises if exercise.kind != "short-answer")


def _tests(
    homework: Homework, exercise: Exercise, place: int, result: ExerciseResult | None
) -> Iterator[dict[str, Any]]:
    found = {group.name: group for group in result.groups} if result else {}
    for number, (group, worth) in enumerate(zip(exercise.groups, shares(homework, exercise), strict=True), start=1):
        judged = found.get(group.name)
        right = judged is not None and judged.max_points > 0 and judged.points == judged.max_points
        yield {
            "name": f"{exercise.id}: {group.name}" + ("" if group.visible else " (hidden)"),
            "number": f"{place}.{number}",
            "score": worth if right else 0.0,
            "max_score": worth,
            "status": "passed" if right else "failed",
            "output": _output(result, judged)[:MAX_OUTPUT],
            "visibility": "visible" if group.visible else homework.gradescope.hidden_groups,
        }


def shares(homework: Homework, exercise: Exercise) -> list[float]:
    """What each group is worth in this homework, in hundredths, so rounded that they add up."""
    worth, total, so_far, sums = homework.worth(exercise), exercise.points, 0.0, [0.0]
    for group in exercise.groups:
        so_far += group.points
        sums.append(round(worth * so_far / total, 2) if total else 0.0)
    return [round(after - before, 2) for before, after in zip(sums, sums[1:], strict=False)]


def _output(result: ExerciseResult | None, group: GroupResult | None) -> str:
    """Of a hidden group only the written hint; of a visible one what the student's own run would say."""
    if result is None:
        return "not judged yet"
    if group is None:
        return WORDS[result.status]
    if not group.visible:
        return group.note
    said = [": ".join(part for part in (WORDS[group.status], cases(group), group.note) if part)]
    failure = result.failure
    if failure and failure.group in (group.name, "") and group.status is not Status.OK:
        said += [headline(failure), failure.message]
        said += [f"{part.title}:\n{part.text}" for part in parts(failure)]
    return "\n\n".join(plain_lines(text) for text in said if text)


def plain_lines(text: str) -> str:
    return "\n".join(plain(line) for line in text.splitlines())


def problems(data: Any) -> list[str]:
    """What Gradescope would stumble over. Empty for results that it takes."""
    if type(data) is not dict:
        return [f"the whole must be an object, got {type(data).__name__}"]
    found = list(_fields(data, TOP_FIELDS, "the top"))
    tests = data.get("tests")
    if not isinstance(tests, list):
        return found + ([] if "score" in data else ["there is neither a score nor a list of tests"])
    for place, test in enumerate(tests):
        found += _fields(test, TEST_FIELDS, f"test {place}") if type(test) is dict else [f"test {place} is no object"]
    if "score" not in data and not all(type(test) is dict and "score" in test for test in tests):
        found.append("without a score at the top every test needs one")
    return found


def _fields(table: Mapping[str, Any], known: Mapping[str, Any], where: str) -> Iterator[str]:
    for name, value in table.items():
        if name not in known:
            yield f"{where}: {name} is unknown"
        elif isinstance(value, bool) or not isinstance(value, known[name]):
            yield f"{where}: {name} has the wrong type, {type(value).__name__}"
        elif name in ("visibility", "stdout_visibility") and value not in HIDDEN_SHOWN:
            yield f"{where}: {name} must be one of {', '.join(HIDDEN_SHOWN)}, got {value!r}"
        elif name.endswith("_format") and value not in FORMATS:
            yield f"{where}: {name} must be one of {', '.join(FORMATS)}, got {value!r}"
        elif name == "status" and value not in ("passed", "failed"):
            yield f"{where}: status must be passed or failed, got {value!r}"
