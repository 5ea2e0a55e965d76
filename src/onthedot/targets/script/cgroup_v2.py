"""Cgroups of version 2: one tree, in which a group has either processes or groups below it with limits.

So a node whose group is its own (systemd: `Delegate=memory pids cpu`; the root of a container) moves itself into a
group below, and makes those of scripts beside it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from onthedot.targets.script.cgroup import CONTROLLERS, PERIOD, Cgroup, Cgroups, members, own_paths
from onthedot.targets.script.limits import Hits, ScriptLimits

__all__ = ["CgroupsV2", "find_v2"]

NODE = "onthedot-node"


class _GroupV2(Cgroup):
    def __init__(self, folder: Path, controllers: frozenset[str]) -> None:
        super().__init__([folder])
        self._folder, self._controllers = folder, controllers

    def limit(self, limits: ScriptLimits) -> None:
        if "memory" in self._controllers:
            self._write("memory.max", limits.memory)
            self._write("memory.oom.group", 1)
            if (self._folder / "memory.swap.max").exists():
                self._write("memory.swap.max", 0)
        if "pids" in self._controllers:
            self._write("pids.max", limits.processes)
        if "cpu" in self._controllers:
            self._write("cpu.max", f"{max(1000, round(limits.cpus * PERIOD))} {PERIOD}")

    def hits(self) -> Hits:
        return Hits(
            memory=self._count("memory.events", "oom_kill") > 0, processes=self._count("pids.events", "max") > 0
        )

    def _write(self, file: str, value: object) -> None:
        (self._folder / file).write_text(str(value))

    def _count(self, file: str, name: str) -> int:
        try:
            lines = (self._folder / file).read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in lines if line.split()[:1] == [name]), 0)


class CgroupsV2(Cgroups):
    version = 2

    def __init__(self, parent: Path, controllers: frozenset[str]) -> None:
        super().__init__()
        self._parent, self.controllers = parent, controllers

    def parents(self) -> Iterable[Path]:
        return (self._parent,)

    def _make(self, name: str) -> Cgroup:
        folder = self._parent / name
        folder.mkdir()
        return _GroupV2(folder, self.controllers)


def find_v2(mount: Path, own: str | None = None) -> CgroupsV2 | None:
    """`own`: the path of this process's group. None if groups with limits can't be made."""
    path = own if own is not None else own_paths().get("", "/")
    here = mount / path.lstrip("/")
    parent = here.parent if here.name == NODE else here
    try:
        controllers = frozenset(_words(parent / "cgroup.controllers")) & frozenset(CONTROLLERS)
        if "memory" not in controllers:
            return None
        if not controllers <= frozenset(_words(parent / "cgroup.subtree_control")):
            _open(parent, controllers)
        groups = CgroupsV2(parent, controllers)
        return groups if groups.make(ScriptLimits(memory=64 << 20)).remove() else None
    except OSError:
        return None


def _open(parent: Path, controllers: frozenset[str]) -> None:
    """Let the groups below have limits. OSError if somebody else's processes are here: they are not ours to move."""
    inside = members(parent)
    if any(pid != os.getpid() and not _is_ours(pid) for pid in inside):
        raise PermissionError("the cgroup of this node has processes of others")
    if inside:
        node = parent / NODE
        node.mkdir(exist_ok=True)
        for pid in inside:
            (node / "cgroup.procs").write_text(str(pid))
    (parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(controllers)))


def _is_ours(pid: int) -> bool:
    """Whether this process started it, or one that started it."""
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            return False
        if pid == os.getpid():
            return True
    return False


def _words(file: Path) -> list[str]:
    return file.read_text().split()
