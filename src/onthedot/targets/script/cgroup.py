"""ScriptLimits for all processes of a script together, by a cgroup of its own: whichever of the two versions there is.

A group is a directory below the group of the node, named for the node and a number. What a node left behind that was
killed is removed by the next one.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from onthedot.targets.script.limits import Hits, ScriptLimits

__all__ = ["CONTROLLERS", "Cgroup", "Cgroups", "members", "own_paths", "remove_left_behind"]

CONTROLLERS = ("memory", "pids", "cpu")
PERIOD = 100_000
"""Microseconds over which the use of CPUs is counted."""
_PREFIX = "onthedot-run-"
_numbers = itertools.count(1)  # of this process, which may have several nodes


class Cgroup(ABC):
    """The group of one script. OSError where something of it can't be written."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = list(folders)

    @abstractmethod
    def limit(self, limits: ScriptLimits) -> None: ...

    @abstractmethod
    def hits(self) -> Hits: ...

    def add(self, pid: int) -> None:
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(pid))

    def remove(self) -> bool:
        """False: there are processes in it still. To be asked again."""
        self.folders = [folder for folder in self.folders if not _removed(folder)]
        return not self.folders


class Cgroups(ABC):
    """Where groups can be made."""

    version: int
    controllers: frozenset[str]

    def __init__(self) -> None:
        self._name = f"{_PREFIX}{os.getpid()}-{_started(os.getpid())}"

    @abstractmethod
    def _make(self, name: str) -> Cgroup: ...

    @abstractmethod
    def parents(self) -> Iterable[Path]:
        """The directories in which groups are made."""

    def make(self, limits: ScriptLimits) -> Cgroup:
        group = self._make(f"{self._name}-{next(_numbers)}")
        try:
            group.limit(limits)
        except BaseException:
            group.remove()
            raise
        return group


def own_paths() -> dict[str, str]:
    """By controller ("" for version 2), the path of the group that this process is in."""
    found = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        found.update(dict.fromkeys(controllers.split(","), path))
    return found


def members(folder: Path) -> list[int]:
    return [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]


def remove_left_behind(groups: Cgroups) -> int:
    """End and remove what nodes started that are no more; how many groups there were."""
    count = 0
    for parent in groups.parents():
        for folder in _of_the_dead(parent):
            with contextlib.suppress(OSError):
                for pid in members(folder):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
            count += _removed(folder)
    return count


def _of_the_dead(parent: Path) -> Iterator[Path]:
    for folder in parent.glob(f"{_PREFIX}*"):
        pid, _, rest = folder.name.removeprefix(_PREFIX).partition("-")
        if pid.isdecimal() and _started(int(pid)) != rest.partition("-")[0]:
            yield folder


def _started(pid: int) -> str:
    """When a process began, in ticks: numbers of processes are used again. Empty: there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
