"""Submissions that attack the grader, before the real judge, at every level of isolation that this machine offers.

Each row of ATTACKS is a file in submissions/ and what the judge must say of it; E1 to E27 are ways in which other
graders were broken. None may earn a point, outlive its run, change a file, reach a socket, or get a secret into a
report. What an attack needs to be stopped is named in its row; at a level that lacks it the attack would succeed, so it
is not let loose there, and the level's own sentence must say that it is no boundary.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from llminfer.grading import ladder, launches, report, sessions
from llminfer.grading.isolation import Isolation, strongest, tried
from llminfer.grading.judge import grade
from llminfer.grading.overlay import PACKAGE, overlay
from llminfer.grading.results import ExerciseResult
from llminfer.grading.spec import Exercise, load_exercise

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="the ladder is Linux's")]
HERE = Path(__file__).parent
SECRET = "class-secret-5ec2e7"
TOKENS = (SECRET, "judge-side-token-c0ffee", "31337.06")  # the judge's secret, its source, its hidden inputs


@dataclass(frozen=True)
class Attack:
    """statuses: what the judge may say, most likely first. needs: what a level must have to stop it. seconds: limit."""

    name: str
    statuses: tuple[str, ...]
    needs: tuple[str, ...] = ()
    seconds: float = 5.0


def attack(name: str, *statuses: str, needs: str = "", seconds: float = 5.0) -> Attack:
    return Attack(name, statuses, tuple(needs.split()), seconds)


ATTACKS = [
    attack("e01_exits_at_import", "exit"),
    attack("e01_exits_in_the_call", "exit"),
    attack("e01_raises_system_exit", "exit"),
    attack("e01_exits_from_a_thread", "exit"),
    attack("e01_exits_when_the_judge_is_done", "wrong"),
    attack("e01_closes_the_pipes", "exit", "bad_reply"),
    attack("e02_writes_the_results", "wrong", needs="files_hidden"),
    attack("e03_runs_the_reference", "wrong", needs="files_hidden"),
    attack("e03_goes_by_way_of_links", "wrong", needs="files_hidden"),
    attack("e03_opens_by_handle", "wrong", needs="files_hidden"),
    attack("e04_looks_around_in_memory", "wrong", "shape"),
    attack("e04_scans_the_heap", "wrong", needs="files_hidden"),
    attack("e05_patches_the_comparison", "wrong", "bad_reply", "exit"),
    attack("e05_patches_the_worker", "wrong"),
    attack("e06_equals_everything", "bad_reply"),
    attack("e06_is_an_array_that_lies", "bad_reply"),
    attack("e06_holds_numbers_that_lie", "bad_reply"),
    attack("e07_returns_a_trap_for_pickle", "bad_reply"),
    attack("e07_sends_a_pickle", "bad_reply"),
    attack("e08_prints_a_success", "wrong", "bad_reply"),
    attack("e09_leaves_modules_about", "wrong", needs="files_hidden"),
    attack("e10_exports_the_library_again", "forbidden_import"),
    attack("e10_calls_the_library", "forbidden_import"),
    attack("e10_copies_the_source", "forbidden_import"),
    attack("e10_imports_the_judge", "forbidden_import"),
    attack("e10_loads_the_original", "wrong", needs="files_hidden"),
    attack("e10_reads_the_bytecode", "wrong", needs="files_hidden"),
    attack("e11_edits_the_tests", "wrong", needs="files_hidden"),
    attack("e12_swallows_every_exception", "timeout", seconds=0.7),
    attack("e12_hangs_in_native_code", "timeout", seconds=0.7),
    attack("e12_hangs_at_import", "timeout", seconds=0.7),
    attack("e12_sleeps", "timeout", seconds=0.7),
    attack("e13_leaves_a_daemon", "wrong", needs="processes_contained"),
    attack("e13_forks_without_end", "wrong", needs="processes_contained"),
    attack("e13_starts_threads_without_end", "wrong", "memory"),
    attack("e14_asks_for_a_huge_array", "memory"),
    attack("e14_grows_a_list", "memory"),
    attack("e14_shares_memory", "memory"),
    attack("e14_catches_the_refusal", "wrong"),
    attack("e14_starts_processes", "wrong", needs="processes_contained"),
    attack("e15_floods_the_output", "output_limit"),
    attack("e15_returns_too_much", "bad_reply"),
    attack("e15_returns_too_many", "bad_reply"),
    attack("e15_nests_without_end", "bad_reply"),
    attack("e15_raises_a_long_story", "exception"),
    attack("e15_announces_a_huge_frame", "bad_reply"),
    attack("e15_sends_half_a_frame", "timeout", seconds=0.7),
    attack("e16_deletes_and_spoils", "wrong", needs="files_hidden"),
    attack("e16_fills_the_disk", "wrong", "exception"),
    attack("e17_calls_home", "wrong", needs="network_closed"),
    attack("e18_tells_its_inputs", "exception"),
    attack("e18_returns_its_inputs", "wrong"),
    attack("e20_turns_back_the_clock", "wrong"),
    attack("e21_returns_zeros", "wrong"),
    attack("e21_returns_a_scalar", "dtype", "shape"),
    attack("e21_returns_another_shape", "shape"),
    attack("e21_returns_another_dtype", "dtype"),
    attack("e21_returns_nan", "nonfinite"),
    attack("e21_changes_its_input", "mutated_input"),
    attack("e21_remembers", "shape", "wrong"),
    attack("e23_sets_links_as_traps", "wrong"),
    attack("e23_nests_folders_without_end", "wrong"),
    attack("e24_speaks_html", "exception"),
    attack("e25_reads_the_environment", "wrong", needs="files_hidden"),
    attack("e27_lifts_the_limits", "memory", needs="not_root"),
    attack("e27_works_in_a_generator", "bad_reply"),
    attack("e27_works_in_a_destructor", "wrong"),
    attack("combined_takes_the_worker_over", "wrong"),
    attack("combined_answers_ahead", "bad_reply", "wrong"),
    attack("combined_kills_its_keepers", "timeout", "killed", needs="files_hidden", seconds=0.7),
    attack("combined_daemon_flood_and_loop", "timeout", "output_limit", needs="processes_contained", seconds=0.7),
    attack("combined_goes_for_the_kernel", "wrong", needs="not_root files_hidden"),
    attack("combined_becomes_root", "wrong", needs="not_root files_hidden"),
]


class Ground:
    """A small world around one attack: what it may want to read, spoil or reach, and how it was before."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.folder, self.library, self.signals = folder, library, 0
        for name, mode in (("victim", 0o755), ("student", 0o755), ("secrets", 0o700), ("temporary", 0o711)):
            (folder / name).mkdir()
            (folder / name).chmod(mode)
        (folder / "victim" / "results.json").write_text('{"score": 0}')
        (folder / "victim" / "precious.txt").write_text("a year of work")
        (folder / "secrets" / "class.secret").write_text(SECRET)
        shutil.copytree(HERE / "course", folder / "secrets" / "course")
        for name in ("conftest.py", "numpy.py", "sitecustomize.py", "usercustomize.py", "json.py"):  # E9
            (folder / "student" / name).write_text(f"open({str(folder / 'trace')!r}, 'w').write('ran')")
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.unix, self.abstract = (socket.socket(socket.AF_UNIX) for _ in range(2))
        self.unix.bind(str(folder / "victim" / "socket"))
        self.abstract.bind(f"\0{folder.name}")
        (folder / "victim" / "socket").chmod(0o777)
        for listener in (self.unix, self.abstract):
            listener.listen()

    @property
    def exercise(self) -> Exercise:
        return load_exercise(self.folder / "secrets" / "course" / "exercises" / "9.9-hostile" / "rmsnorm.toml")

    def submission(self, name: str) -> Path:
        """The attack, told what it is after."""
        course, solutions = self.folder / "secrets" / "course", "solutions/9.9-hostile"
        targets = {
            "course": course,
            "judge_side": course / solutions / "rmsnorm_judge.py",
            "solution": course / solutions / "rmsnorm.py",
            "spec": course / "exercises" / "9.9-hostile" / "rmsnorm.toml",
            "package": PACKAGE,
            "victim": self.folder / "victim",
            "results": self.folder / "victim" / "results.json",
            "student": self.folder / "student",
            "secret": self.folder / "secrets" / "class.secret",
            "trace": self.folder / "trace",
            "socket": self.folder / "victim" / "socket",
            "abstract_socket": f"\0{self.folder.name}",
        }
        numbers = {"judge": os.getpid(), "tcp_port": self.tcp.getsockname()[1], "udp_port": self.udp.getsockname()[1]}
        source = (HERE / "submissions" / f"{name}.py").read_text(encoding="utf-8")
        told = {key: str(value) for key, value in targets.items()} | numbers
        path = self.folder / "student" / "rmsnorm.py"
        path.write_text(source.replace("TARGETS = {}", f"TARGETS = {told!r}"), encoding="utf-8")
        self.before = self._files()
        return path

    def harm(self) -> list[str]:
        """What the attack did to the world, in words."""
        after = self._files()
        changed = sorted(path for path in self.before | after if self.before.get(path) != after.get(path))
        found = [f"changed {path}" for path in changed]
        found += [f"left {path.name}" for path in (self.folder / "temporary").iterdir()]
        found += [f"left process {process}" for process in self.survivors()]
        for name, listener in (("TCP", self.tcp), ("UDP", self.udp), ("unix", self.unix), ("abstract", self.abstract)):
            listener.setblocking(False)
            try:
                listener.recv(1) if name == "UDP" else listener.accept()
                found.append(f"reached the {name} socket")
            except BlockingIOError:
                pass
        return found + [f"sent {self.signals} signals to the judge"] * bool(self.signals)

    def _files(self) -> dict[str, tuple]:
        """Every file outside the temporary folder, the overlay too: kind, mode, owner, time and content."""
        found = {}
        for path in [*self.folder.rglob("*"), *self.library.rglob("*")]:
            if "temporary" not in path.parts and "__pycache__" not in path.parts:
                about = path.lstat()
                content = path.read_bytes() if path.suffix == ".py" or about.st_size < 1000 and path.is_file() else b""
                found[str(path)] = (about.st_mode, about.st_uid, about.st_mtime_ns * bool(content), content)
        return found

    def survivors(self) -> Iterator[int]:
        """Processes that were started with a folder of this world in their environment."""
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and bytes(self.folder / "temporary") in (entry / "environ").read_bytes():
                    yield int(entry.name)
            except OSError:
                continue

    def close(self) -> None:
        for listener in (self.tcp, self.udp, self.unix, self.abstract):
            listener.close()


@pytest.fixture(scope="module")
def library() -> Iterator[Path]:
    """An overlay for these tests alone: an attack that gets through must not spoil those of the user."""
    folder = Path(tempfile.mkdtemp(prefix="hostile-cache-", dir="/tmp"))
    folder.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMINFER_CACHE", str(folder))
        yield overlay(["llminfer.basics.norms.rmsnorm"])
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def ground(monkeypatch, library) -> Iterator[Ground]:
    folder = Path(tempfile.mkdtemp(prefix="hostile-", dir="/tmp")).resolve()
    folder.chmod(0o755)
    world = Ground(folder, library)
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "temporary"))
    monkeypatch.setenv("LLMINFER_SECRET", SECRET)
    monkeypatch.setattr(launches, "overlay", lambda stubs: library)
    monkeypatch.setattr(sessions, "LOAD_S", 2.0)

    def count(*_: object) -> None:
        world.signals += 1

    before = signal.signal(signal.SIGUSR1, count)
    yield world
    signal.signal(signal.SIGUSR1, before)
    world.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def isolation(request) -> Isolation:
    found = tried(request.param)
    if found is None:
        pytest.skip(f"{request.param} does not work on this machine")
    return found


@pytest.fixture
def strongest_level() -> Isolation:
    return strongest()


def graded(ground: Ground, isolation: Isolation, name: str, seconds: float = 5.0) -> ExerciseResult:
    exercise = ground.exercise
    exercise = replace(exercise, limits=replace(exercise.limits, seconds=seconds))
    return grade(exercise, ground.submission(name), student="eve", secret=SECRET.encode(), isolation=isolation)


def leaks(result: ExerciseResult) -> list[str]:
    """Secrets in what anybody gets to see."""
    shown = [json.dumps(result.to_json()), report.markdown([result]), report.html([result])]
    return [token for token in TOKENS for text in shown if token in text]


@pytest.mark.parametrize("isolation", ladder.LEVELS, indirect=True)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_earns_nothing_and_harms_nobody(ground, isolation, attack):
    if not all(getattr(isolation, name) for name in attack.needs):
        assert "no security boundary" in isolation.sentence
        pytest.skip(f"{isolation.level} cannot stop it, and says so")
    result = graded(ground, isolation, attack.name, attack.seconds)
    told = result.failure.message if result.failure else ""
    assert (result.points, str(result.status)) in [(0, status) for status in attack.statuses], told
    assert ground.harm() == []
    assert leaks(result) == []


@pytest.mark.parametrize("isolation", ladder.LEVELS, indirect=True)
@pytest.mark.parametrize(
    "name", ["e13_leaves_a_daemon", "e13_forks_without_end", "e14_starts_processes", "combined_daemon_flood_and_loop"]
)
def test_processes_end_with_the_worker_where_they_may_be_started(ground, isolation, name, monkeypatch):
    """As kernels for a GPU may, which else are refused every process before there is anything to contain."""
    orders = ladder.orders
    monkeypatch.setattr(ladder, "orders", lambda level, view, processes: orders(level, view, True))
    result = graded(ground, isolation, name, 1.0)
    assert (result.points, ground.harm()) == (0, [])
    if name == "e13_leaves_a_daemon":
        assert "Operation not permitted" not in result.failure.printed  # or else nothing was tried


def test_every_submission_has_a_row_and_every_row_of_the_table_a_submission():
    names = {path.stem for path in (HERE / "submissions").glob("*.py")}
    assert names == {attack.name for attack in ATTACKS}
    rows = {name[:3] for name in names}
    elsewhere = {"e19", "e22", "e26"}  # tested below, and in tests/grading/test_intake.py
    assert {f"e{number:02}" for number in range(1, 28)} == {row for row in rows if row[0] == "e"} | elsewhere


def test_what_a_hidden_group_says_does_not_depend_on_what_was_wrong(ground, strongest_level):
    """E19: whoever hands in again and again learns nothing from one answer to the next."""
    said = [graded(ground, strongest_level, name).groups[1] for name in ("e21_returns_zeros", "e18_tells_its_inputs")]
    assert said[0] == said[1]
    assert (said[0].visible, said[0].note, said[0].total) == (False, "Try other widths.", 0)


def test_time_is_the_judges(ground, strongest_level):
    """E20: three cases of 0.3 s in each group, whatever the worker's clock says."""
    assert graded(ground, strongest_level, "e20_turns_back_the_clock").seconds > 0.9


def test_markup_of_a_students_is_text_in_every_report(ground, strongest_level):
    """E24"""
    result = graded(ground, strongest_level, "e24_speaks_html")
    page, markdown = report.html([result]), report.markdown([result])
    assert "&lt;script&gt;" in page
    for text in (page, markdown):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<script" not in page
    assert "<img" not in page
    assert "default-src 'none'" in page


@pytest.mark.parametrize("kind", ["link to the solution", "pipe", "folder", "device"])
def test_what_is_no_file_is_not_opened(ground, strongest_level, kind):
    """E22, where the archives end; the archives themselves are in tests/grading/test_archives.py."""
    path = ground.folder / "student" / "rmsnorm.py"
    if kind == "link to the solution":
        path.symlink_to(ground.exercise.solution)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    result = grade(ground.exercise, path, secret=SECRET.encode(), isolation=strongest_level)
    assert (result.points, str(result.status)) in [(0, "import_error"), (0, "missing")]


@pytest.mark.parametrize("isolation", ladder.LEVELS, indirect=True)
def test_a_report_says_what_held_the_code_and_what_did_not(ground, isolation):
    """E26: docs/threat-model.md in one line, under every report."""
    result = graded(ground, isolation, "e21_returns_zeros")
    lacks = {
        "files_hidden": "files readable",
        "network_closed": "network open",
        "processes_contained": "processes may outlive the run",
        "not_root": "with the rights of root",
    }
    for text in (report.html([result]), report.markdown([result])):
        for name, words in lacks.items():
            assert (words in text) == (not getattr(isolation, name))
        assert ("no security boundary" in text) == (not isolation.boundary)


@pytest.mark.parametrize("isolation", ladder.LEVELS, indirect=True)
def test_the_solution_earns_everything(ground, isolation):
    """Else the attacks would prove nothing."""
    ground.submission("e21_returns_zeros")
    result = grade(ground.exercise, ground.exercise.solution, secret=SECRET.encode(), isolation=isolation)
    assert (result.points, result.max_points) == (5, 5), result.failure
    assert ground.harm() == []


@pytest.mark.parametrize("isolation", ladder.LEVELS, indirect=True)
def test_a_worker_does_not_outlive_a_judge_that_is_killed(ground, isolation):
    program = f"""
import tempfile
import time
from llminfer.grading.isolation import Isolation
from llminfer.grading.sessions import Session, Task
from llminfer.grading.spec import Case, Limits
from pathlib import Path
tempfile.tempdir = {str(ground.folder / "temporary")!r}
with Session(Task("rmsnorm", "function", Path({str(ground.submission("e12_sleeps"))!r})), {isolation!r}) as session:
    print(session.load().status, flush=True)
    session.call(Case({{"x": 1, "gain": 1}}))
"""
    judge = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert judge.stdout.readline() == "ok\n"
    time.sleep(0.2)
    assert list(ground.survivors())
    judge.kill()
    judge.wait()
    deadline = time.monotonic() + 4  # the call itself would end after five seconds
    while list(ground.survivors()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(ground.survivors()) == []
