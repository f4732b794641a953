"""A class is graded whatever judges, programs and power supplies do; nothing is lost, and nothing judged twice."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from llminfer.grading import judge_pool, run_folders
from llminfer.grading.classroom import grade_class, report_class
from llminfer.grading.course_file import load_course
from llminfer.grading.isolation import Isolation, strongest
from llminfer.grading.spec import all_exercises

FAKE = Path(__file__).with_name("fake_judge.py")
HELD = Isolation("bwrap", True, True, True, True)
SOFTMAX, ROPE = "3.1/stable_softmax", "3.1/rope_both"
COURSE = """
name = "Inference <b>"
roster = "roster.csv"
[[homework]]
name = "hw1"
exercises = ["3.1/stable_softmax", "3.1/rope_both"]
points = { "3.1/stable_softmax" = 10, "3.1/rope_both" = 10 }
"""
ROSTER = "id,name\nada,Ada\nbob,=1+1\ncy,Cy <script>\ndee,Dee\n"


class Class:
    """A course in a folder, with submissions that a test can change between runs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"
        self.write("course.toml", COURSE)
        self.write("roster.csv", ROSTER)
        self.write("class-secret", "s3cret" * 10)
        (folder / "class-secret").chmod(0o600)
        for student, text in {"ada": "right", "bob": "right", "cy": "wrong"}.items():
            self.hand_in(student, text, text)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, encoding="utf-8")

    def hand_in(self, student: str, softmax: str, rope: str) -> None:
        self.write(f"in/{student}/stable_softmax.py", softmax)
        self.write(f"in/{student}/rope_both.py", rope)

    def grade(self, jobs: int = 2, out: str = "run", held: Isolation = HELD, **options):
        self.log.write_text("", encoding="utf-8")
        course = load_course(self.folder)
        command = (sys.executable, str(FAKE), str(self.log), "0")
        options = {"command": command, "jobs": jobs, **options}
        return grade_class(course, course.find("hw1"), self.folder / "in", self.folder / out, held, **options)

    def report(self, **options):
        course = load_course(self.folder)
        return report_class(course, course.find("hw1"), self.folder / "run", **options)

    @property
    def judged(self) -> Counter:
        return Counter(self.log.read_text(encoding="utf-8").splitlines())

    def table(self, name: str = "grades.csv", out: str = "run") -> dict[str, dict[str, str]]:
        with (self.folder / out / name).open(encoding="utf-8") as lines:
            return {row["student"]: row for row in csv.DictReader(lines)}


@pytest.fixture
def school(tmp_path, monkeypatch) -> Class:
    monkeypatch.setattr(run_folders, "package_hash", lambda: "library")  # whoever edits it while the tests run
    return Class(tmp_path)


def test_every_student_has_a_row_and_the_first_says_what_there_is_to_get(school):
    school.grade()
    rows = school.table()
    assert list(rows) == ["maximum", "ada", "bob", "cy", "dee"]
    assert [row["total"] for row in rows.values()] == ["20", "20", "20", "5", "0"]  # 1 of 4 points of two times 10
    assert (rows["dee"]["status"], rows["ada"]["status"]) == ("missing", "graded")


def test_a_judge_that_dies_is_a_row_and_is_asked_again_next_time(school):
    school.hand_in("bob", "die", "right")
    run = school.grade()
    assert run.failed_judging
    assert school.judged[f"bob {SOFTMAX}"] == 2  # once more with a fresh judge, then given up
    assert (school.table()["bob"]["status"], school.table()["ada"]["total"]) == ("check", "20")
    assert school.table("to-mark.csv")["bob"]["exercise"] == SOFTMAX
    school.grade()
    assert set(school.judged) == {f"bob {SOFTMAX}"}


def test_a_judge_that_dies_once_costs_nobody_anything(school):
    school.hand_in("bob", "once", "right")
    assert not school.grade().failed_judging
    assert school.table()["bob"]["total"] == "20"


def test_the_number_of_judges_changes_nothing(school):
    school.grade(jobs=1, out="one")
    school.grade(jobs=4, out="four")
    files = sorted(path.relative_to(school.folder / "one") for path in (school.folder / "one").rglob("*.*"))
    assert len(files) > 20
    for path in files:
        assert (school.folder / "one" / path).read_bytes() == (school.folder / "four" / path).read_bytes(), path


def test_what_is_judged_is_not_judged_again_until_something_changes(school, monkeypatch):
    school.grade()
    assert sum(school.judged.values()) == 6
    school.grade()
    assert not school.judged
    school.hand_in("cy", "wrong", "right")
    school.grade()
    assert set(school.judged) == {f"cy {ROPE}"}
    before = run_folders.tests_hash
    monkeypatch.setattr(run_folders, "tests_hash", lambda each: "new" if each.id == ROPE else before(each))
    school.grade()
    assert set(school.judged) == {f"{student} {ROPE}" for student in ("ada", "bob", "cy")}
    monkeypatch.setattr(run_folders, "package_hash", lambda: "new")
    school.grade()
    assert sum(school.judged.values()) == 6


def test_another_secret_draws_other_inputs_so_that_all_is_judged_again(school):
    school.grade()
    school.write("class-secret", "another secret" * 5)
    (school.folder / "class-secret").chmod(0o600)
    school.grade()
    assert sum(school.judged.values()) == 6


def test_falling_points_are_listed_and_refused_until_they_are_accepted(school):
    school.grade()
    school.hand_in("ada", "right", "wrong")
    run = school.grade()
    assert not run.published
    assert [(change.exercise, change.before, change.after) for change in run.drops] == [
        (ROPE, 10, 2.5),
        ("total", 20, 12.5),
    ]
    assert run.drops[0].why == "another submission"
    assert school.table()["ada"]["total"] == "20"
    assert school.table("changes.csv")["ada"]["after"] == "12.5"
    assert school.grade(accept_drops=True).published
    assert not school.judged  # refusing has lost nothing
    assert school.table()["ada"]["total"] == "12.5"


def test_rising_points_are_published_at_once(school):
    school.grade()
    school.hand_in("cy", "right", "right")
    assert school.grade().published
    assert school.table()["cy"]["total"] == "20"


def test_an_override_is_applied_without_judging_and_its_reason_is_shown(school):
    school.grade()
    override = '[[homework.override]]\nstudent = "cy"\nexercise = "3.1/rope_both"\npoints = 9\nreason = "appeal"\n'
    school.write("course.toml", COURSE + override)
    school.report()
    assert school.table()["cy"]["total"] == "11.5"
    for name in ("grades.csv", "students/cy.md", "students/cy.html", "run.json"):
        assert "appeal" in (school.folder / "run" / name).read_text(encoding="utf-8")


def test_an_override_for_nobody_is_refused(school):
    override = '[[homework.override]]\nstudent = "cyy"\npoints = 9\nreason = "appeal"\n'
    school.write("course.toml", COURSE + override)
    with pytest.raises(ValueError, match="decides for 'cyy'"):
        school.grade()


def test_lateness_counts_by_the_table_of_times(school):
    late = "due = 2027-03-01T12:00:00+00:00\nlate = { percent_per_day = 25 }\n"
    school.write("course.toml", COURSE + late)
    school.write("times.csv", "student,submitted\nada,2027-03-02T13:30:00+01:00\nbob,2027-03-01T11:00:00Z\n")
    school.grade(times=school.folder / "times.csv")
    rows = school.table()
    assert [(rows[name]["days_late"], rows[name]["total"]) for name in ("ada", "bob", "cy")] == [
        ("2", "10"),
        ("0", "20"),
        ("", "5"),
    ]


def test_a_time_without_an_offset_is_refused(school):
    school.write("times.csv", "student,submitted\nada,2027-03-02T13:30:00\n")
    with pytest.raises(ValueError, match="line 2: submitted needs its offset"):
        school.grade(times=school.folder / "times.csv")


def test_the_run_of_another_homework_is_not_written_over(school):
    school.grade()
    school.write("course.toml", COURSE.replace('"hw1"', '"hw2"'))
    course = load_course(school.folder)
    with pytest.raises(ValueError, match="holds the run of 'hw1'"):
        grade_class(course, course.find(None), school.folder / "in", school.folder / "run", HELD)


def test_the_secret_is_in_nothing_that_is_written(school):
    school.grade()
    for path in (school.folder / "run").rglob("*.*"):
        assert b"s3cret" not in path.read_bytes(), path
        assert b"s3cret".hex().encode() not in path.read_bytes(), path


def test_what_strangers_wrote_does_nothing_in_pages_and_tables(school):
    school.grade()
    page = (school.folder / "run" / "students" / "cy.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "Content-Security-Policy" in page
    assert school.table()["bob"]["name"] == "'=1+1"


def test_the_run_says_versions_and_hashes(school):
    school.grade()
    record = json.loads((school.folder / "run" / "run.json").read_text(encoding="utf-8"))
    assert record["exercises"][SOFTMAX]["version"] >= 1
    assert record["isolation"] == "bwrap"
    assert record["versions"]["numpy"]
    assert record["students"]["ada"]["scores"][ROPE] == {
        **{"status": "ok", "version": 1, "judged": 10.0, "points": 10.0, "max_points": 10.0, "reason": ""}
    }


def test_which_tests_the_class_failed_is_counted(school):
    school.grade()
    with (school.folder / "run" / "items.csv").open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["exercise"] == SOFTMAX]
    assert {row["handed_in"] for row in rows} == {"3"}


BATCH = """
import sys
sys.path.insert(0, {tests!r})
from test_classroom import Class, run_folders
from pathlib import Path
run_folders.package_hash = lambda: "library"
school = Class.__new__(Class)
school.folder, school.log = Path({folder!r}), Path({folder!r}) / "log"
school.grade(jobs=2, command=(sys.executable, {fake!r}, str(school.log), "0.2"))
"""


def begun(school: Class) -> subprocess.Popen:
    """A run in a process of its own, in which every judging takes 0.2 s."""
    text = BATCH.format(tests=str(FAKE.parent), folder=str(school.folder), fake=str(FAKE))
    return subprocess.Popen([sys.executable, "-c", text], stderr=subprocess.DEVNULL, preexec_fn=hears_ctrl_c)


def hears_ctrl_c() -> None:
    """What runs in the background of a shell, as tests may, has Ctrl-C switched off, and so has what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def stored(school: Class) -> set[str]:
    found = (school.folder / "run" / "results").rglob("*.json")
    return {f"{path.parent.name} {path.stem.replace('-', '/', 1)}" for path in found}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_goes_on_where_it_stopped(school, how):
    for number in range(6):
        school.hand_in(f"s{number}", "right", "wrong")
    school.write("roster.csv", ROSTER + "".join(f"s{number},\n" for number in range(6)))
    process = begun(school)
    waited = time.monotonic() + 60
    while len(stored(school)) < 4 and time.monotonic() < waited:
        time.sleep(0.02)
    process.send_signal(how)
    process.wait()
    kept = stored(school)
    assert 4 <= len(kept) < 18
    deadline = time.monotonic() + 20
    while judges(school) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert judges(school) == []
    assert not (school.folder / "run" / "grades.csv").exists()

    school.grade()
    assert set(school.judged) == {f"{who} {what}" for who in names(school) for what in (SOFTMAX, ROPE)} - kept
    assert max(school.judged.values()) == 1
    interrupted = (school.folder / "run" / "run.json").read_bytes()
    school.grade(out="whole")
    assert (school.folder / "whole" / "run.json").read_bytes() == interrupted


def names(school: Class) -> list[str]:
    return [path.name for path in (school.folder / "in").iterdir()]


def judges(school: Class) -> list[str]:
    """The judges of this class that are still there."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(school.log).encode() in words and str(os.getpid()) != path.parent.name:
            found.append(path.parent.name)
    return found


REAL = """
import sys
from pathlib import Path
from llminfer.grading.classroom import grade_class, strong_isolation
from llminfer.grading.course_file import load_course

folder = Path(sys.argv[1])
course = load_course(folder)
grade_class(course, course.find(None), folder / "in", folder / "run", strong_isolation(True), jobs=2)
"""


def descendants(top: int) -> set[int]:
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    found = {top}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {top}


def begun_workers(top: int) -> set[int]:
    """Below the judges; the run itself has tried workers before, to see what holds them."""
    return {
        pid for judge in running(descendants(top), "judge_process") for pid in running(descendants(judge), "worker")
    }


def running(pids: set[int], module: str) -> set[int]:
    found = set()
    for pid in pids:
        try:
            if f"llminfer.grading.{module}".encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                found.add(pid)
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
def test_no_program_of_a_student_outlives_a_run_that_was_killed(school):
    loop = "def stable_softmax(x):\n    while True:\n        pass\n"
    for student in ("ada", "bob"):
        school.hand_in(student, loop, "")
    process = subprocess.Popen([sys.executable, "-c", REAL, str(school.folder)], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(begun_workers(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    left = descendants(process.pid)
    assert len(begun_workers(process.pid)) >= 2  # still looping, one for each judge
    process.kill()
    process.wait()
    deadline = time.monotonic() + 120  # the judges end what they have begun, which the time limit bounds
    while any(Path(f"/proc/{pid}").exists() for pid in left) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert [pid for pid in left if Path(f"/proc/{pid}").exists()] == []


@pytest.mark.slow
def test_the_real_judge_says_the_same_for_any_number_of_judges(school):
    solved = next(each for each in all_exercises("3.1") if each.id == SOFTMAX).solution.read_text(encoding="utf-8")
    wrong = "import numpy as np\n\n\ndef stable_softmax(x):\n    return np.exp(x)\n"
    for student, text in {"ada": solved, "bob": "def broken(:\n", "cy": wrong}.items():
        school.hand_in(student, text, "def rope_both(*_, **__):\n    return {}['x']\n")
    for jobs, out in ((1, "one"), (3, "three")):
        school.grade(jobs=jobs, out=out, held=strongest(), command=judge_pool.COMMAND)
    files = [path.relative_to(school.folder / "one") for path in (school.folder / "one").rglob("*.*")]
    compared = [path for path in files if path.parts[0] != "results"]  # these hold seconds
    assert len(compared) > 12
    for path in compared:
        assert (school.folder / "one" / path).read_bytes() == (school.folder / "three" / path).read_bytes(), path
    assert [school.table(out="one")[name]["total"] for name in ("ada", "bob")] == ["10", "0"]


def test_another_ceiling_is_another_question(school):
    school.grade()
    school.write("course.toml", COURSE + "[limits]\nseconds = 0.5\n")
    school.grade()
    assert sum(school.judged.values()) == 6
    school.grade()
    assert sum(school.judged.values()) == 0


@pytest.mark.slow
def test_a_ceiling_of_the_course_holds_in_the_real_judge(school):
    school.write("course.toml", COURSE + "[limits]\nseconds = 0.5\n")
    school.hand_in("ada", "import time\n\n\ndef stable_softmax(x):\n    time.sleep(60)\n", "")
    school.grade(held=strongest(), command=judge_pool.COMMAND)
    found = json.loads((school.folder / "run" / "results" / "ada" / "3.1-stable_softmax.json").read_text())["result"]
    assert found["status"] == "timeout"
    allowed = float(found["failure"]["limit"].split()[-2])  # "used 0.5 s of 0.5 s", or what the reference needed
    assert allowed < next(each for each in all_exercises("3.1") if each.id == SOFTMAX).limits.seconds
