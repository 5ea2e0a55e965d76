"""The arguments for bubblewrap: what a script sees of this machine, and what it does not.

A fresh root without anything but the programs and libraries of the system and of the interpreter, all read-only; /tmp
and /dev/shm in memory with a limit; processes, users, host name, shared memory and, unless it is allowed, the network
of its own. No mount below a directory that the script can write to (CVE-2026-87766).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from onthedot.targets.script.limits import SHARED
from onthedot.targets.script.sandbox import NOBODY, Launch

__all__ = ["CODE", "encoded", "sandbox_args"]

CODE = "/script"
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime")
_NETWORK_SETTINGS = (
    *("/etc/ca-certificates", "/etc/gai.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/pki", "/etc/protocols"),
    *("/etc/resolv.conf", "/etc/services", "/etc/ssl"),
)


def sandbox_args(launch: Launch, *, code_fd: int, has_proc: bool = True) -> list[str]:
    return [
        *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if launch.network else ("--unshare-net",)),
        *("--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", "sandbox"),
        *("--die-with-parent", "--new-session", "--clearenv"),
        *_system(launch),
        *(("--proc", "/proc") if has_proc else ("--dir", "/proc")),
        *("--dev", "/dev", "--size", str(SHARED), "--tmpfs", "/dev/shm"),  # noqa: S108 - in the sandbox
        *("--size", str(launch.limits.memory), "--tmpfs", "/tmp"),  # noqa: S108 - in the sandbox
        *("--perms", "0444", "--ro-bind-data", str(code_fd), f"{CODE}/{launch.file_name}"),
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *("--chdir", "/tmp"),  # noqa: S108 - in the sandbox
        *(word for name, value in launch.env.items() for word in ("--setenv", name, value)),
    ]


def _system(launch: Launch) -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    if not any(Path(root).is_relative_to("/usr/local") for root in launch.roots):
        yield from ("--tmpfs", "/usr/local", "--remount-ro", "/usr/local")
    for place in _SYSTEM:
        if os.path.islink(place):  # noqa: PTH114 - and not what it leads to
            yield from ("--symlink", os.readlink(place), place)  # noqa: PTH115
        elif Path(place).is_dir():
            yield from ("--ro-bind", place, place)
    for place in (*_SETTINGS, *(_NETWORK_SETTINGS if launch.network else ())):
        yield from ("--ro-bind-try", place, place)
    for root in launch.roots:
        if not Path(root).is_relative_to("/usr"):
            yield from ("--ro-bind", root, root)


def encoded(args: list[str]) -> bytes:
    """For `--args`: so that nothing of them is seen in the list of processes."""
    return b"".join(arg.encode("utf-8", "surrogateescape") + b"\0" for arg in args)
