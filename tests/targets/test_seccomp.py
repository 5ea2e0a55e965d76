"""The filter, run by a small machine of our own: what it answers for every architecture, not only for this one."""

from __future__ import annotations

import errno
import struct

import pytest

from onthedot.targets.script.landlock_stub import OWN_PID as STUB_OWN_PID
from onthedot.targets.script.seccomp import _NOT_THERE, _OF_OTHERS, _REFUSED, OWN_PID, StrictRules, filter_program
from onthedot.targets.script.syscalls import ARCHITECTURES, NEWEST

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS, EAFNOSUPPORT = ERRNO | errno.EPERM, ERRNO | errno.ENOSYS, ERRNO | errno.EAFNOSUPPORT
everywhere = pytest.mark.parametrize("machine", sorted(ARCHITECTURES))


def answer(program: bytes, audit: int, number: int, *args: int) -> int:
    """What the kernel would do."""
    data = struct.pack("=iIQ6Q", number, audit, 0, *(arg & (2**64 - 1) for arg in (*args, 0, 0, 0, 0, 0, 0)[:6]))
    code = list(struct.iter_unpack("=HBBI", program))
    assert len(code) < 4096
    at = held = 0
    while True:
        operation, true, false, value = code[at]
        at += 1
        if operation == 0x20:
            (held,) = struct.unpack_from("=I", data, value)
        elif operation == 0x06:
            return int(value)
        else:
            holds = {0x15: held == value, 0x35: held >= value, 0x25: held > value, 0x45: bool(held & value)}[operation]
            at += true if holds else false


def ask(machine: str, name: str, *args: int, strict: StrictRules | None = None, memfd: bool = True) -> int | None:
    found = ARCHITECTURES[machine]
    if name not in found.numbers:
        return None
    return answer(filter_program(strict, memfd=memfd, machine=machine), found.audit, found.numbers[name], *args)


@everywhere
def test_what_is_refused(machine: str):
    assert {ask(machine, name) for name in _REFUSED} <= {EPERM, None}
    assert {ask(machine, name) for name in _NOT_THERE} == {ENOSYS}
    assert ask(machine, "ptrace") == ask(machine, "mount") == ask(machine, "bpf") == EPERM


@everywhere
def test_ordinary_calls_pass(machine: str):
    found = ARCHITECTURES[machine]
    program = filter_program(machine=machine)
    refused = {*found.numbers.values()}
    passed = [number for number in range(NEWEST + 1) if number not in refused]
    assert {answer(program, found.audit, number) for number in passed} == {ALLOW}
    assert ask(machine, "memfd_create") == ALLOW
    assert ask(machine, "memfd_create", memfd=False) == EPERM


@everywhere
def test_newer_calls_and_other_architectures(machine: str):
    found = ARCHITECTURES[machine]
    program = filter_program(machine=machine)
    assert answer(program, found.audit, NEWEST + 1) == ENOSYS
    assert answer(program, 0x40000003, 20) == KILL
    if found.other_abi is not None:
        assert answer(program, found.audit, found.other_abi | 1) == ENOSYS


@everywhere
def test_clone_makes_threads_and_processes_but_no_namespaces(machine: str):
    assert ask(machine, "clone", 17) == ALLOW
    assert ask(machine, "clone", 0x003D0F00) == ALLOW, "what a thread is made with"
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert ask(machine, "clone", flag | 17) == EPERM


@everywhere
def test_terminals_and_sockets(machine: str):
    assert ask(machine, "ioctl", 0, 0x5401) == ALLOW
    assert ask(machine, "ioctl", 0, 0x5412) == EPERM
    assert ask(machine, "ioctl", 0, 0xFFFFFFFF00005412) == EPERM, "the kernel reads only the lower half"
    for family in range(50):
        assert ask(machine, "socket", family) == (ALLOW if family in (1, 2, 10, 16) else EAFNOSUPPORT)
        assert ask(machine, "socketpair", family) == (ALLOW if family == 1 else EAFNOSUPPORT)


@everywhere
def test_strict(machine: str):
    strict = StrictRules(network=False)
    assert {ask(machine, name, strict=strict) for name in _OF_OTHERS} <= {EPERM, None}
    assert ask(machine, "socket", 1, strict=strict) == EPERM
    assert ask(machine, "socket", 2, strict=StrictRules(network=True)) == ALLOW
    assert ask(machine, "socket", 1, strict=StrictRules(network=True)) == EAFNOSUPPORT, "sockets that are files"
    assert ask(machine, "clone", 17, strict=strict) == EPERM
    assert ask(machine, "clone", 0x003D0F00, strict=strict) == ALLOW
    for name in ("kill", "tgkill", "prlimit64"):
        assert ask(machine, name, OWN_PID, strict=strict) == ask(machine, name, 0, strict=strict) == ALLOW
        assert ask(machine, name, 1, strict=strict) == ask(machine, name, -1, strict=strict) == EPERM
    for command in (8, 10, 15):  # F_SETOWN, F_SETSIG, F_SETOWN_EX
        assert (ask(machine, "fcntl", 3, command), ask(machine, "fcntl", 3, command, strict=strict)) == (ALLOW, EPERM)
    for request in (0x8901, 0x8902):  # FIOSETOWN, SIOCSPGRP
        assert (ask(machine, "ioctl", 3, request), ask(machine, "ioctl", 3, request, strict=strict)) == (ALLOW, EPERM)
    assert ask(machine, "fcntl", 3, 4, strict=strict) == ask(machine, "ioctl", 3, 0x5401, strict=strict) == ALLOW
    assert ask(machine, "ioctl", 3, 0x5412, strict=strict) == EPERM


def test_the_stub_knows_what_stands_for_its_own_number():
    assert int.from_bytes(STUB_OWN_PID, "little") == OWN_PID
    program = filter_program(StrictRules(network=False))
    assert program.count(STUB_OWN_PID) == 3, "nothing else looks like it"
