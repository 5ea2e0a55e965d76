"""What a script may use, and the part of it that limits of single processes can enforce."""

from __future__ import annotations

import resource
from collections.abc import Mapping

import msgspec

__all__ = ["SHARED", "Hits", "ScriptLimits", "rlimit_names", "rlimit_words", "rlimits"]

_NAMES = ("as", "core", "data", "fsize", "memlock", "msgqueue", "nice", "nofile", "nproc", "rtprio", "sigpending")
PROCESSES = 64
FILES = 256
SIGNALS = 256
"""Queued signals and timers, which the kernel counts for all programs of a user together."""
SHARED = 16 << 20
"""Bytes of /dev/shm."""


class ScriptLimits(msgspec.Struct, frozen=True, kw_only=True):
    memory: int  # bytes, of all its processes and its files in /tmp
    cpus: float = 1.0
    processes: int = PROCESSES  # threads count, too


class Hits(msgspec.Struct, frozen=True, kw_only=True):
    """Which limits a script ran into."""

    memory: bool = False
    processes: bool = False


def rlimits(limits: ScriptLimits, *, by_cgroup: frozenset[str], processes: bool = True) -> dict[int, int]:
    """ScriptLimits for each of its processes. What a cgroup enforces for all of them together is left to that.
    `processes`: whether they are counted for this script alone, which takes a namespace of users."""
    found = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.memory,
        resource.RLIMIT_MEMLOCK: 64 << 10,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_NOFILE: FILES,
        resource.RLIMIT_RTPRIO: 0,
        resource.RLIMIT_SIGPENDING: SIGNALS,
    }
    if processes and "pids" not in by_cgroup:
        found[resource.RLIMIT_NPROC] = limits.processes
    if "memory" not in by_cgroup:
        found[resource.RLIMIT_DATA] = limits.memory
        found[resource.RLIMIT_AS] = 2 * limits.memory + (64 << 20)  # shared memory is no "data", libraries are mapped
    return {number: _lower(most, resource.getrlimit(number)[1]) for number, most in found.items()}


def _lower(most: int, allowed: int) -> int:
    """Nobody may raise a limit."""
    return most if allowed == resource.RLIM_INFINITY else min(most, allowed)


def rlimit_words(limits: Mapping[int, int]) -> list[str]:
    """The same for the program `prlimit`."""
    return [f"--{name}={most}" for name, most in rlimit_names(limits).items()]


def rlimit_names(limits: Mapping[int, int]) -> dict[str, int]:
    """… by the names that programs have for them."""
    names = {getattr(resource, f"RLIMIT_{name.upper()}"): name for name in _NAMES}
    return {names[number]: most for number, most in limits.items()}
