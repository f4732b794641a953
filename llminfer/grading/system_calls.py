"""System calls that a submission has no use for, refused by the kernel: a seccomp filter through ctypes.

It closes what Landlock leaves open (sockets of every kind, changes of modes and owners, other processes), and keeps a
worker to one process, so that there is nothing to sweep up. Source: the kernel's userspace-api/seccomp_filter.rst.
"""

import ctypes
import errno
import os
import platform
import struct

_PR_SET_SECCOMP, _FILTER = 22, 2
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_X32 = 0x40000000  # x86-64 has a second set of numbers from here on
_CLONE_THREAD = 0x00010000

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NUMBERS = {  # x86_64, aarch64; None where there is no such call
    # the network, and memory that is counted nowhere
    "socket": (41, 198),
    "io_uring_setup": (425, 425),
    "memfd_create": (319, 279),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "setpriority": (141, 140),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    # files by other ways than opening them
    "truncate": (76, 45),
    "chmod": (90, None),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "open_by_handle_at": (304, 265),
    # the kernel itself
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
}
_PROCESSES = {"fork": (57, None), "vfork": (58, None)}
_CLONE, _CLONE3 = (56, 220), (435, 435)
_ONLY_ON_ITSELF = {"kill": (62, 129), "tgkill": (234, 131), "prlimit64": (302, 261), "sched_setaffinity": (203, 122)}
_NEEDED_BY_CUDA = ("memfd_create",)


def refuse_calls(processes: bool) -> None:
    """Refuse the calls above from now on, to this process and all that it starts; with `processes` it may start some.

    The caller has set no_new_privs. Raises OSError where the kernel or the architecture has no such filter.
    """
    program = b"".join(_program(platform.machine(), os.getpid(), processes))
    buffer = ctypes.create_string_buffer(program, len(program))
    rules = struct.pack("HL", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _FILTER, rules, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"seccomp: {os.strerror(code)}")


def _program(machine: str, own_id: int, processes: bool) -> list[bytes]:
    """Instructions of the kernel's packet filter, which sees the number of a call and its arguments, not memory."""
    if machine not in ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"the numbers of system calls are not known for {machine}")
    column = list(ARCHITECTURES).index(machine)
    refused = {**_NUMBERS, **({} if processes else _PROCESSES)}
    if processes:
        refused = {name: numbers for name, numbers in refused.items() if name not in _NEEDED_BY_CUDA}
    refuse = _instruction(_RETURN, _REFUSE | errno.EPERM)
    program = [
        _instruction(_LOAD, _ARCHITECTURE_AT),
        _instruction(_EQUAL, ARCHITECTURES[machine], if_true=1),
        refuse,
        _instruction(_LOAD, _NUMBER_AT),
        _instruction(_AT_LEAST, _X32, if_false=1),
        refuse,
    ]
    for numbers in refused.values():
        if numbers[column] is not None:
            program += [_instruction(_EQUAL, numbers[column], if_false=1), refuse]
    for name, numbers in _ONLY_ON_ITSELF.items():
        also = own_id if name == "kill" else 0  # 0 is oneself to all of them, but the whole group to kill
        program += [
            _instruction(_EQUAL, numbers[column], if_false=5),
            _instruction(_LOAD, _FIRST_ARGUMENT_AT),
            _instruction(_EQUAL, own_id, if_true=2),
            _instruction(_EQUAL, also, if_true=1),
            refuse,
            _instruction(_RETURN, _ALLOW),
        ]
    if not processes:
        program += [
            # The flags of clone3 lie in memory, where a filter cannot look; without it libraries fall back to clone.
            _instruction(_EQUAL, _CLONE3[column], if_false=1),
            _instruction(_RETURN, _REFUSE | errno.ENOSYS),
            _instruction(_EQUAL, _CLONE[column], if_false=3),
            _instruction(_LOAD, _FIRST_ARGUMENT_AT),
            _instruction(_ANY_BIT, _CLONE_THREAD, if_true=1),
            refuse,
        ]
    return [*program, _instruction(_RETURN, _ALLOW)]


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
