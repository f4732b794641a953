"""One worker from start to end: what came of a call, in the words of the list of statuses, and nothing left behind."""

import os
from pathlib import Path

import numpy as np
import pytest

from llminfer.grading.isolation import Isolation
from llminfer.grading.results import Status
from llminfer.grading.sessions import Reply, Session, Task, checked_reply
from llminfer.grading.spec import Call, Case, Limits
from llminfer.grading.wire import FrameError

pytestmark = pytest.mark.slow
PLAIN = Isolation("rlimits", False, False, False, False)


@pytest.fixture
def ask(tmp_path):
    """Load a source and call its `f`; the replies to the load and to each set of arguments."""

    def asked(source: str, *arguments: dict, kind: str = "function", calls=(), seconds: float = 5.0) -> list[Reply]:
        path = tmp_path / "f.py"
        path.write_text(source, encoding="utf-8")
        with Session(Task("f", kind, path, limits=Limits(seconds=seconds)), PLAIN) as session:
            return [session.load(), *(session.call(Case(given, calls)) for given in arguments)]

    return asked


def test_a_value_and_the_arguments_come_back(ask):
    loaded, reply = ask("def f(x, k):\n    x += k\n    return {'twice': x * 2}\n", {"x": np.arange(3.0), "k": 1})
    assert (loaded.status, reply.status) == (Status.OK, Status.OK)
    np.testing.assert_array_equal(reply.value["twice"], [2, 4, 6])
    np.testing.assert_array_equal(reply.arguments_after["x"], [1, 2, 3])
    assert 0 < reply.seconds < 5


def test_an_object_goes_through_its_calls(ask):
    source = """
class f:
    def __init__(self, n):
        self.n = n
    def add(self, k):
        if k > 3:
            raise KeyError(k)
        self.n += k
        return self.n
"""
    calls = (Call("add", {"k": 2}), Call("add", {"k": 5}), Call("add", {"k": 1}), Call("sub", {}))
    _, reply = ask(source, {"n": 1}, kind="class", calls=calls)
    assert reply.status is Status.OK
    assert reply.value == [("returned", 3), ("raised", "KeyError"), ("returned", 4), ("raised", "AttributeError")]
    assert reply.error == "KeyError: 5"
    assert 'File "f.py", line 7, in add' in reply.traceback


def test_what_a_call_returned_is_kept_as_it_was_then(ask):
    source = """
class f:
    def __init__(self):
        self.all = []
    def add(self, k):
        self.all.append(k)
        return self.all
"""
    _, reply = ask(source, {}, kind="class", calls=(Call("add", {"k": 2}), Call("add", {"k": 5})))
    assert reply.value == [("returned", [2]), ("returned", [2, 5])]


ENDINGS = {
    "raise KeyError('x')": (Status.EXCEPTION, "KeyError: 'x'", True),
    "raise NotImplementedError('your turn')": (Status.NOT_DONE, "NotImplementedError: your turn", True),
    "raise NotImplementedError('this is your exercise')": (Status.FORBIDDEN_IMPORT, "", True),
    "import llminfer.grading.judge": (Status.FORBIDDEN_IMPORT, "", True),
    "import solutions": (Status.FORBIDDEN_IMPORT, "", True),
    "import no_such_module": (Status.EXCEPTION, "ModuleNotFoundError: No module named 'no_such_module'", True),
    "raise KeyboardInterrupt": (Status.EXCEPTION, "KeyboardInterrupt", True),
    "raise SystemExit(0)": (Status.EXIT, "SystemExit: 0", True),
    "return f(x)": (Status.EXCEPTION, "RecursionError: maximum recursion depth exceeded", True),
    "return bytearray(1 << 40)": (Status.MEMORY, "MemoryError", True),
    "return object()": (Status.BAD_REPLY, "the value is of type builtins.object, which cannot be compared", True),
    "import os; os._exit(0)": (Status.EXIT, "the process ended itself with exit code 0", False),
    "import os; os.kill(os.getpid(), 9)": (Status.KILLED, "the process was ended by SIGKILL", False),
    "import os; os.abort()": (Status.KILLED, "the process was ended by SIGABRT", False),
    "while True: pass": (Status.TIMEOUT, "", False),
    "while True: print('x' * 100_000)": (Status.OUTPUT_LIMIT, "", False),
}


@pytest.mark.parametrize(("body", "expected"), ENDINGS.items(), ids=ENDINGS.keys())
def test_each_ending_has_its_word(ask, body, expected):
    status, error, goes_on = expected
    _, reply, again = ask(f"def f(x):\n    if not x: return 5\n    {body}\n", {"x": 1}, {"x": 0}, seconds=1.0)
    assert reply.status is status
    assert reply.error.startswith(error)
    assert (again.status is Status.OK) == goes_on
    assert len(reply.printed) < 20_000


def test_limits_that_were_met_are_told_with_their_use(ask):
    assert ask("def f():\n    while True: pass", {}, seconds=0.5)[1].limit == "used 0.5 s of 0.5 s"
    assert ask("def f(): return bytearray(1 << 40)", {})[1].limit == "needed more than the 1024 MiB that it may use"
    assert ask("def f():\n    while True: print('x' * 9999)", {})[1].limit == "printed 16 MiB of 16 MiB"


LOADS = {
    "def f(: pass": (Status.IMPORT_ERROR, "SyntaxError"),
    "import no_such_module\ndef f(): pass": (Status.IMPORT_ERROR, "ModuleNotFoundError"),
    "def g(): pass": (Status.MISSING, "f.py defines no f"),
    "f = 3": (Status.MISSING, "f.py defines no f"),
    "from llminfer.basics import softmax as f": (Status.FORBIDDEN_IMPORT, "f is the library's own"),
    "import llminfer.grading.spec": (Status.FORBIDDEN_IMPORT, ""),
    "raise SystemExit": (Status.EXIT, "SystemExit"),
    "import os; os._exit(0)": (Status.EXIT, "the process ended itself"),
}


@pytest.mark.parametrize(("source", "expected"), LOADS.items(), ids=LOADS.keys())
def test_a_file_that_cannot_be_used_says_why(ask, source, expected):
    [loaded] = ask(source)
    assert loaded.status is expected[0]
    assert loaded.error.startswith(expected[1])


def test_prints_are_kept_for_their_case_and_cut(ask):
    source = """
import os
print('loading')
def f(n):
    print('a' * n, end='', flush=True)
    os.system('printf child')
"""
    loaded, short, long = ask(source, {"n": 3}, {"n": 100_000})
    assert loaded.printed == "loading\n"
    assert short.printed == "aaachild"
    assert long.printed.startswith("a" * 8192 + "\n... ")
    assert long.printed.endswith(" bytes left out ...\n" + "a" * 8187 + "child")


def test_what_a_case_printed_before_it_hung_is_kept(ask):
    [_, reply] = ask("def f():\n    print('here')\n    while True: pass\n", {}, seconds=0.5)
    assert reply.printed == "here\n"


def test_a_reply_written_ahead_of_its_request_is_refused(ask):
    source = """
import gc, io
from llminfer.grading.wire import encode
def f(x):
    [pipe] = [o for o in gc.get_objects() if isinstance(o, io.BufferedWriter) and o.fileno() > 2]
    forged = {"id": b"?" * 16, "status": "ok", "value": 42, "error": "", "traceback": "", "arguments_after": {}}
    pipe.write(encode(forged))
    return 42
"""
    _, reply, _ = ask(source, {"x": 1}, {"x": 1})
    assert reply.status is Status.BAD_REPLY
    assert reply.value is None


def test_a_link_is_not_followed(tmp_path):
    secret = tmp_path / "secret.py"
    secret.write_text("def f(): return 1")
    (tmp_path / "f.py").symlink_to(secret)
    with Session(Task("f", "function", tmp_path / "f.py"), PLAIN) as session:
        assert session.load().status is Status.IMPORT_ERROR
        assert session.call(Case({})).status is Status.IMPORT_ERROR


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.mkdir(), lambda path: path.write_bytes(b"#" * 2**21)])
def test_what_is_no_small_file_is_refused(tmp_path, make):
    make(tmp_path / "f.py")
    with Session(Task("f", "function", tmp_path / "f.py"), PLAIN) as session:
        assert session.load().status is Status.IMPORT_ERROR


def test_the_folder_is_gone_afterwards_and_held_a_copy(ask):
    _, reply = ask("import os\ndef f(): return [os.getcwd(), __file__, os.listdir('.')]", {})
    work, file, listed = reply.value
    assert listed == []
    assert Path(file).parent != Path(work)
    assert not Path(file).exists()
    assert not Path(work).exists()


def test_nothing_of_the_judges_environment_is_inherited(ask, monkeypatch):
    monkeypatch.setenv("LLMINFER_SECRET", "token")
    _, reply = ask(
        "import os, sys\ndef f(): return [dict(os.environ), sys.flags.hash_randomization, sys.stdin.read()]", {}
    )
    environment, randomized, stdin = reply.value
    assert "token" not in environment.values()
    assert environment["OPENBLAS_NUM_THREADS"] == "1"
    assert (randomized, stdin) == (0, "")


GOOD = {"id": b"1", "status": "ok", "value": 3, "error": "", "traceback": "", "arguments_after": {}}


@pytest.mark.parametrize(
    "answer",
    [
        *(None, [], b"1", {}, {"id": b"1"}, np.zeros(3)),
        *(GOOD | {"id": other} for other in (b"2", "1", None, np.zeros(2), np.frombuffer(b"1", np.uint8))),
        *(GOOD | {"status": other} for other in ("grader_error", "wrong", "fine", "", 0, ["ok"], np.zeros(2))),
        *(GOOD | {"error": 3}, GOOD | {"traceback": np.zeros(2)}, GOOD | {"arguments_after": [("x", 1)]}),
        GOOD | {"arguments_after": {1: 2}},
    ],
    ids=repr,
)
def test_only_a_whole_reply_to_the_request_counts(answer):
    with pytest.raises(FrameError):
        checked_reply(answer, b"1")


def test_a_whole_reply_counts():
    assert checked_reply(GOOD, b"1") == Reply(Status.OK, 3, {})
