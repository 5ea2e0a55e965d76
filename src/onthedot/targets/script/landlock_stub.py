"""Runs as a program of its own: puts itself under Landlock, seccomp and limits, and becomes the interpreter.

The order matters: what takes privileges comes first, then they are given up, then come the rules that can't be undone.
It reads what to do from a descriptor, as JSON. Only the standard library, and little of that: a script waits for it.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from typing import Any

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 22, 38
FILTER = 2
EXECUTE, READ_FILE, READ_DIR, WRITE_FILE = 1, 4, 8, 2
FILE_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF}  # by ABI; 0xFFFF from 5 on
TCP, SCOPES = 3, 3
OWN_PID = (0x7FFFFFF1).to_bytes(4, "little")


class RulesetAttributes(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


libc = ctypes.CDLL(None, use_errno=True)


def must(done: int) -> int:
    if done < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return done


def prctl(*numbers: int) -> None:
    must(libc.prctl(*(ctypes.c_ulong(number) for number in (*numbers, 0, 0, 0, 0)[:5])))


def abi() -> int:
    """Which version of Landlock the kernel has; 0: none."""
    return max(0, int(libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))))


def restrict(version: int, readable: list[str], writable: list[str], *, network: bool) -> None:
    handled = FILE_RIGHTS.get(version, 0xFFFF)
    asked = RulesetAttributes(handled, 0 if network or version < 4 else TCP, SCOPES if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = must(libc.syscall(CREATE_RULESET, ctypes.byref(asked), ctypes.c_size_t(size), ctypes.c_uint32(0)))
    for paths, rights in ((readable, EXECUTE | READ_FILE | READ_DIR), (writable, READ_FILE | WRITE_FILE)):
        for path in paths:
            allow(ruleset, path, rights)
    must(libc.syscall(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)))
    os.close(ruleset)


def allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - pathlib takes milliseconds to load
            rights &= ~READ_DIR
        rule = PathRule(rights, place)
        must(libc.syscall(ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), ctypes.byref(rule), ctypes.c_uint32(0)))
    finally:
        os.close(place)


def filter_calls(program: bytes) -> None:
    code = ctypes.create_string_buffer(program, len(program))
    loaded = FilterProgram(len(program) // 8, ctypes.cast(code, ctypes.c_void_p))
    must(libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(FILTER), ctypes.byref(loaded), ctypes.c_ulong(0), ctypes.c_ulong(0)))


def become(plan: dict[str, Any], parent: int) -> None:
    """Does not return."""
    for number, most in plan["rlimits"]:
        resource.setrlimit(number, (most, most))
    if plan["user"] is not None:
        os.setgroups([])
        os.setgid(plan["user"])
        os.setuid(plan["user"])
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked to be told
        os._exit(1)
    restrict(plan["abi"], plan["readable"], plan["writable"], network=plan["network"])
    own = os.getpid().to_bytes(4, "little")
    filter_calls(bytes.fromhex(plan["filter"]).replace(OWN_PID, own))
    os.execve(plan["argv"][0], plan["argv"], plan["env"])  # noqa: S606 - no shell is meant


def main() -> None:
    descriptor, told, parent = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with open(descriptor, "rb") as file:
        plan = json.load(file)
    os.set_inheritable(told, False)  # closed by the step into the interpreter, which says that there was one
    try:
        become(plan, parent)
    except BaseException as error:
        os.write(told, f"{type(error).__name__}: {error}".encode()[:1000])
        os._exit(1)


if __name__ == "__main__":
    main()
