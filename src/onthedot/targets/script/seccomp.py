"""The filter of system calls as a BPF program.

What a script has no business with is refused: other namespaces, mounts, keys, tracing, kernel interfaces with a history
of bugs (io_uring, bpf, perf, userfaultfd), old ways to share memory that no limit counts, and whatever a kernel that is
newer than our list adds. clone3 answers "not known", so that the C library falls back to clone, whose flags a filter
can read. The namespaces, mounts and limits of the sandbox hold without this; the filter makes the kernel behind them
smaller.

`StrictRules` are for where there are no namespaces: the filter itself then keeps a script from sockets, other processes
and their files.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable, Sequence

import msgspec

from onthedot.targets.script.ordinary_calls import ORDINARY
from onthedot.targets.script.syscalls import ARCHITECTURES, NEWEST, Architecture

__all__ = ["OWN_PID", "StrictRules", "engine_profile", "filter_program", "is_supported"]

OWN_PID = 0x7FFF_FFF1
"""Stands for the process's own number where that is not known yet."""

_KILL, _ALLOW, _ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
_LOAD, _JEQ, _JGE, _JGT, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x25, 0x45, 0x06
_NUMBER, _ARCHITECTURE = 0, 4
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWUSER, …NET, …PID, …IPC, …UTS, …CGROUP, …NS
_THREAD = 0x00010000
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_UNIX = 1
_FAMILIES = (_UNIX, 2, 10, 16)  # IPv4, IPv6, netlink (which names of interfaces take); vsock is in no namespace
_SIGNAL_OWNERS = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX: who is signalled when a file can be read, and how
_SIGNAL_OWNERS_OF_SOCKETS = (0x8901, 0x8902)  # FIOSETOWN, SIOCSPGRP

_NOT_THERE = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_secret")
_REFUSED = (
    *("acct", "add_key", "keyctl", "request_key", "bpf", "perf_event_open", "ptrace", "process_vm_readv"),
    *("process_vm_writev", "process_madvise", "process_mrelease", "kcmp", "mount", "umount2", "pivot_root", "chroot"),
    *("move_mount", "open_tree", "open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"),
    *("statmount", "listmount", "setns", "unshare", "swapon", "swapoff", "reboot", "sethostname", "setdomainname"),
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "iopl", "ioperm", "quotactl"),
    *("quotactl_fd", "syslog", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "nfsservctl"),
    *("lookup_dcookie", "userfaultfd", "name_to_handle_at", "open_by_handle_at", "move_pages", "migrate_pages"),
    *("mbind", "set_mempolicy", "get_mempolicy", "set_mempolicy_home_node", "vhangup", "uselib", "ustat", "sysfs"),
    *("_sysctl", "personality", "modify_ldt", "fanotify_init", "fanotify_mark", "pidfd_getfd", "remap_file_pages"),
    *("shmget", "shmat", "shmctl", "shmdt", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semctl"),
    *("semtimedop", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr"),
    *("sched_setaffinity", "sched_setattr", "sched_setscheduler", "sched_setparam", "lsm_set_self_attr"),
)
_OF_OTHERS = (  # what reaches the files and processes of the same user where no namespace hides them
    *("fork", "vfork", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal", "setpriority"),
    *("ioprio_set", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "setxattr"),
    *("lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
    *("utime", "utimes", "futimesat", "utimensat", "inotify_init", "inotify_init1", "memfd_create"),
)

Instruction = tuple[int, int, int, int]


class StrictRules(msgspec.Struct, frozen=True, kw_only=True):
    """No processes, no files of others to be changed, no signals but to itself; sockets only with `network`, and none
    that are files even then: no namespace hides those of other programs, and Landlock does not judge them."""

    network: bool


def is_supported() -> bool:
    return platform.machine() in ARCHITECTURES


def filter_program(strict: StrictRules | None = None, *, memfd: bool = True, machine: str | None = None) -> bytes:
    """For `PR_SET_SECCOMP` and bwrap. `memfd`: whether memory may be shared as files, which only a cgroup counts."""
    architecture = ARCHITECTURES[machine or platform.machine()]
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JEQ, 1, 0, architecture.audit),
        _returns(_KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if architecture.other_abi is not None:
        program += [(_JGE, 0, 1, architecture.other_abi), _fails(errno.ENOSYS)]
    program += [(_JGT, 0, 1, NEWEST), _fails(errno.ENOSYS)]
    refused = [*_REFUSED, *(() if memfd else ("memfd_create",)), *(_OF_OTHERS if strict else ())]
    if strict and not strict.network:
        refused.append("socket")
    program += _each(architecture, dict.fromkeys(refused), errno.EPERM)
    program += _each(architecture, _NOT_THERE, errno.ENOSYS)
    for name, rules in _by_argument(strict).items():
        if name in architecture.numbers:
            program += [(_JEQ, 0, len(rules), architecture.numbers[name]), *rules]
    program.append(_returns(_ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def engine_profile() -> str:
    """The same for a container engine, in its own notation. There is no terminal in the container, so that nothing need
    be said of terminals."""
    allow, refuse = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"
    families = [{"index": 0, "value": family, "op": "SCMP_CMP_EQ"} for family in _FAMILIES]
    no_namespace = {"index": 0, "value": _NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    profile = {
        "defaultAction": refuse,
        "defaultErrnoRet": errno.ENOSYS,
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
        "syscalls": [
            {"names": ORDINARY, "action": allow},
            {"names": ["clone"], "action": allow, "args": [no_namespace]},
            *({"names": ["socket"], "action": allow, "args": [family]} for family in families),
            {"names": ["socketpair"], "action": allow, "args": [{"index": 0, "value": _UNIX, "op": "SCMP_CMP_EQ"}]},
            {"names": _REFUSED, "action": refuse, "errnoRet": errno.EPERM},
            {"names": _NOT_THERE, "action": refuse, "errnoRet": errno.ENOSYS},
        ],
    }
    return msgspec.json.encode(profile).decode()


def _by_argument(strict: StrictRules | None) -> dict[str, Sequence[Instruction]]:
    """Rules for calls that are refused by what is asked of them."""
    rules: dict[str, Sequence[Instruction]] = {
        "ioctl": [_argument(1), *_refuse_any(_TERMINAL_INPUT), _returns(_ALLOW)],
        "clone": [_argument(0), (_JSET, 0, 1, _NEW_NAMESPACES), _fails(errno.EPERM), _returns(_ALLOW)],
        "socket": [_argument(0), *_allow_any(_FAMILIES), _fails(errno.EAFNOSUPPORT)],
        "socketpair": [
            _argument(0),
            *_allow_any((_UNIX,)),
            _fails(errno.EAFNOSUPPORT),
        ],  # makes one of any family first
    }
    if strict is not None:
        refused = (*_TERMINAL_INPUT, *_SIGNAL_OWNERS_OF_SOCKETS)
        rules["ioctl"] = [_argument(1), *_refuse_any(refused), _returns(_ALLOW)]
        rules["fcntl"] = [_argument(1), *_refuse_any(_SIGNAL_OWNERS), _returns(_ALLOW)]
        others = [family for family in _FAMILIES if family != _UNIX]
        rules["socket"] = [_argument(0), *_allow_any(others), _fails(errno.EAFNOSUPPORT)]
        rules["clone"] = [_argument(0), (_JSET, 0, 1, _THREAD), _returns(_ALLOW), _fails(errno.EPERM)]
        own = [_argument(0), *_allow_any((0, OWN_PID)), _fails(errno.EPERM)]
        rules |= {"kill": own, "tgkill": own, "prlimit64": own}
    return rules


def _each(architecture: Architecture, names: Iterable[str], error: int) -> list[Instruction]:
    numbers = [architecture.numbers[name] for name in names if name in architecture.numbers]
    return [instruction for number in numbers for instruction in ((_JEQ, 0, 1, number), _fails(error))]


def _argument(place: int) -> Instruction:
    """Its lower half: that is all that the kernel reads of these."""
    return (_LOAD, 0, 0, 16 + 8 * place)


def _refuse_any(values: Iterable[int]) -> list[Instruction]:
    return [instruction for value in values for instruction in ((_JEQ, 0, 1, value), _fails(errno.EPERM))]


def _allow_any(values: Iterable[int]) -> list[Instruction]:
    return [instruction for value in values for instruction in ((_JEQ, 0, 1, value), _returns(_ALLOW))]


def _returns(action: int) -> Instruction:
    return (_RETURN, 0, 0, action)


def _fails(error: int) -> Instruction:
    return _returns(_ERRNO | error)
