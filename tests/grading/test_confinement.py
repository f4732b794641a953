"""Each limit and each refusal, held against code that wants to get past it; in processes of their own."""

import errno
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from llminfer.grading import system_calls
from llminfer.grading.ladder import is_root

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="limits and filters are Linux's")]
needs_root = pytest.mark.skipif(not is_root(), reason="only root can become somebody else")
NOTHING = {"limits": {}, "user": None, "reads_all": False, "files": None, "calls": None}
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def confined(orders: dict, attack: str) -> subprocess.CompletedProcess:
    """Run `attack` in a process that has followed the orders."""
    program = (
        "import ctypes, errno, mmap, os, resource, signal, socket, subprocess, sys, threading\n"
        "from llminfer.grading.confinement import confine\n"
        f"confine({NOTHING | orders!r})\n"
    )
    command = [sys.executable, "-c", program + attack]
    groups = {"extra_groups": [0, 7]} if is_root() else {}  # which a user that is left must not keep
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **groups)


def limited(attack: str, **limits: int) -> subprocess.CompletedProcess:
    return confined({"limits": limits}, attack)


def test_processor_time_ends_even_who_ignores_the_warning():
    attack = "signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    assert limited(attack, RLIMIT_CPU=1).returncode == -signal.SIGKILL


@pytest.mark.parametrize("take", ["bytearray(1 << 20)", "mmap.mmap(-1, 1 << 20)"])
def test_memory_is_what_was_mapped_and_the_allowance(take):
    attack = f"""
kept = []
try:
    while len(kept) < 2000:
        kept.append({take})
except (MemoryError, OSError):
    pass
print(len(kept))
"""
    taken = int(limited(attack, memory_mib=100).stdout)
    assert 80 <= taken <= 100
    assert int(limited(attack).stdout) == 2000


def test_a_file_ends_at_its_limit():
    attack = """
import tempfile
file = tempfile.TemporaryFile(buffering=0)
try:
    while True:
        file.write(b"x" * 1000)
except OSError as problem:
    print(file.tell(), problem.errno == errno.EFBIG)
"""
    assert limited(attack, RLIMIT_FSIZE=10_000).stdout.split() == ["10000", "True"]


def test_open_files_are_counted():
    attack = """
kept = []
try:
    while True:
        kept.append(os.open("/dev/null", os.O_RDONLY))
except OSError as problem:
    print(kept[-1], problem.errno == errno.EMFILE)
"""
    assert limited(attack, RLIMIT_NOFILE=50).stdout.split() == ["49", "True"]


def test_no_limit_can_be_raised_again_without_rights():
    attack = """
for name in ("RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_AS", "RLIMIT_CORE"):
    kind = getattr(resource, name)
    soft, hard = resource.getrlimit(kind)
    try:
        resource.setrlimit(kind, (hard + 1, hard + 1))
        print("raised", name)
    except (OSError, ValueError):
        pass
"""
    limits = {"RLIMIT_CPU": 9, "RLIMIT_FSIZE": 9999, "RLIMIT_NOFILE": 99, "memory_mib": 99, "RLIMIT_CORE": 0}
    orders = {"limits": limits, **({"user": 65534} if is_root() else {})}
    done = confined(orders, attack)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


@needs_root
def test_a_user_that_was_left_does_not_come_back():
    attack = """
for back in (lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgid(0), lambda: os.setgroups([0])):
    try:
        back()
        print("back")
    except PermissionError:
        pass
print(os.getresuid(), os.getresgid(), os.getgroups())
"""
    assert confined({"user": 65534}, attack).stdout == f"{(65534,) * 3} {(65534,) * 3} []\n"


@needs_root
def test_processes_of_the_user_are_counted():
    attack = """
import time
started = 0
try:
    while started < 100:
        if os.fork() == 0:
            time.sleep(2)
            os._exit(0)
        started += 1
except OSError as problem:
    print(started, problem.errno == errno.EAGAIN)
"""
    started, refused = confined({"user": 64111, "limits": {"RLIMIT_NPROC": 20}}, attack).stdout.split()
    assert (int(started), refused) == (19, "True")


@needs_root
def test_the_right_to_read_all_is_the_only_one_kept(tmp_path):
    attack = f"""
print(os.listdir({str(tmp_path)!r}))
for act in (lambda: open({str(tmp_path)!r} + "/new", "w"), lambda: os.setuid(0), lambda: os.chown("/tmp", 65534, 0)):
    try:
        act()
        print("done")
    except PermissionError:
        pass
"""
    (tmp_path / "file").touch()
    tmp_path.chmod(0o700)
    done = confined({"user": 65534, "reads_all": True}, attack)
    assert (done.stdout, done.returncode) == ("['file']\n", 0), done.stderr
    assert "Permission denied" in confined({"user": 65534}, attack).stderr


REFUSED = {
    "socket": "socket.socket(socket.AF_UNIX)",
    "udp": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "fork": "os.fork()",
    "vfork and exec": "subprocess.run(['true'])",
    "posix_spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "kill": "os.kill(os.getppid(), 0)",
    "kill the group": "os.kill(0, 0)",
    "kill everybody": "os.kill(-1, 0)",
    "chmod": "os.chmod('/tmp', 0o777)",
    "utime": "os.utime('/tmp')",
    "chown": "os.chown('/tmp', 0, 0)",
    "truncate": "os.truncate('/nowhere', 0)",
    "priority": "os.setpriority(os.PRIO_PROCESS, os.getppid(), 5)",
    "limits of others": "resource.prlimit(os.getppid(), resource.RLIMIT_CPU)",
    "memory file": "os.memfd_create('x')",
}


@pytest.mark.parametrize("act", REFUSED.values(), ids=REFUSED.keys())
def test_a_refused_call_fails_and_the_process_goes_on(act):
    attack = f"""
try:
    {act}
    print("done")
except OSError as problem:
    print(problem.errno == errno.EPERM)
"""
    assert confined({"calls": "threads"}, attack).stdout == "True\n"


def test_what_programs_need_still_works():
    attack = """
import numpy as np, tempfile
thread = threading.Thread(target=lambda: print(np.ones((50, 50)).dot(np.ones((50, 50)))[0, 0]))
thread.start()
thread.join()
left, right = socket.socketpair()
left.send(b"x")
with tempfile.TemporaryDirectory() as folder:
    open(folder + "/file", "w").close()
resource.getrlimit(resource.RLIMIT_CPU)
signal.raise_signal(signal.SIGWINCH)
os.kill(os.getpid(), 0)
print("fine")
"""
    done = confined({"calls": "threads"}, attack)
    assert done.stdout.split() == ["50.0", "fine"], done.stderr


def test_with_processes_they_may_be_started_and_are_filtered_too():
    attack = """
print(subprocess.run([sys.executable, "-c", "import socket; socket.socket()"], capture_output=True).returncode)
"""
    assert confined({"calls": "processes"}, attack).stdout == "1\n"


def test_calls_of_another_architecture_are_refused():
    """By its old door, int 0x80, a 64-bit process reaches the 32-bit calls, whose numbers differ."""
    import platform

    if platform.machine() != "x86_64":
        pytest.skip("there is no such door")
    attack = """
code = bytes([0x53, 0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0x5B, 0xC3])  # push rbx; eax = 20 (getpid); int 0x80; pop rbx; ret
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
print(call() == -errno.EPERM)
"""
    assert confined({"calls": "threads"}, attack).stdout == "True\n"


@pytest.mark.parametrize("machine", HEADERS)
def test_the_numbers_are_those_of_the_kernels_headers(machine):
    if not HEADERS[machine].is_file():
        pytest.skip("the kernel's headers are not installed")
    text = HEADERS[machine].read_text().replace("__NR3264_", "__NR_")
    known = dict(re.findall(r"#define\s+__NR_(\w+)\s+(\d+)", text))
    column = list(system_calls.ARCHITECTURES).index(machine)
    calls = {
        **system_calls._NUMBERS,
        **system_calls._PROCESSES,
        **system_calls._ONLY_ON_ITSELF,
        "clone": system_calls._CLONE,
        "clone3": system_calls._CLONE3,
    }
    for name, numbers in calls.items():
        if name in known or numbers[column] is None:  # headers may be older than the call
            assert numbers[column] == (int(known[name]) if name in known else None), name


def test_an_unknown_machine_is_refused_and_not_left_open():
    with pytest.raises(OSError, match="riscv64") as refused:
        system_calls._program("riscv64", 1, False)
    assert refused.value.errno == errno.ENOSYS


def test_a_second_thread_is_not_left_unconfined():
    program = """
import threading, time
from llminfer.grading.confinement import confine
threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
confine({})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "second thread" in done.stderr


class TestLandlock:
    """Files by the list, and nothing else."""

    @pytest.fixture(autouse=True)
    def available(self):
        done = confined({"files": [["/", 13]]}, "print('confined')")
        if "Landlock" in done.stderr:
            pytest.skip(done.stderr.splitlines()[-1])

    @pytest.fixture
    def rules(self, tmp_path):
        from llminfer.grading.landlock import LIST, READ, WRITE

        for name in ("read", "write", "listed", "hidden"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "file").write_text(name)
        allowed = {"read": READ, "write": WRITE, "listed": LIST}
        return [[str(tmp_path / name), access] for name, access in allowed.items()]

    def seen(self, rules, tmp_path, act: str) -> list[str]:
        attack = f"""
for name in ("read", "write", "listed", "hidden"):
    path = {str(tmp_path)!r} + "/" + name
    try:
        {act}
        print(name)
    except PermissionError:
        pass
"""
        done = confined({"files": rules}, attack)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    def test_reading(self, rules, tmp_path):
        assert self.seen(rules, tmp_path, "open(path + '/file').read()") == ["read", "write"]

    def test_listing(self, rules, tmp_path):
        assert self.seen(rules, tmp_path, "os.listdir(path)") == ["read", "write", "listed"]

    @pytest.mark.parametrize(
        "act",
        [
            "open(path + '/file', 'a')",
            "open(path + '/new', 'w')",
            "os.remove(path + '/file')",
            "os.mkdir(path + '/folder')",
            "os.rename(path + '/file', path + '/moved')",
            "os.symlink('/', path + '/link')",
            "os.truncate(path + '/file', 0)",
        ],
    )
    def test_writing(self, rules, tmp_path, act):
        assert self.seen(rules, tmp_path, act) == ["write"]

    def test_a_link_opens_nothing_that_is_not_on_the_list(self, rules, tmp_path):
        (tmp_path / "read" / "link").symlink_to(tmp_path / "hidden" / "file")
        (tmp_path / "write" / "link").symlink_to(tmp_path / "hidden" / "file")
        (tmp_path / "listed" / "link").symlink_to(tmp_path / "read" / "file")
        (tmp_path / "hidden" / "link").symlink_to(tmp_path / "read" / "file")
        assert self.seen(rules, tmp_path, "open(path + '/link').read()") == ["listed", "hidden"]

    def test_tcp(self, rules):
        attack = """
try:
    socket.create_server(("127.0.0.1", 0))
except PermissionError:
    print("refused")
"""
        assert confined({"files": rules}, attack).stdout == "refused\n"
