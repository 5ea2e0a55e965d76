"""Cgroups of version 1: a tree of directories for each controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from onthedot.targets.script.cgroup import CONTROLLERS, PERIOD, Cgroup, Cgroups, own_paths
from onthedot.targets.script.limits import Hits, ScriptLimits

__all__ = ["CgroupsV1", "find_v1"]


class _GroupV1(Cgroup):
    def __init__(self, folders: Mapping[str, Path]) -> None:
        super().__init__(list(folders.values()))
        self._of = dict(folders)

    def limit(self, limits: ScriptLimits) -> None:
        if (memory := self._of.get("memory")) is not None:
            (memory / "memory.limit_in_bytes").write_text(str(limits.memory))
            with_swap = memory / "memory.memsw.limit_in_bytes"
            if with_swap.exists():
                with_swap.write_text(str(limits.memory))
        if (pids := self._of.get("pids")) is not None:
            (pids / "pids.max").write_text(str(limits.processes))
        if (cpu := self._of.get("cpu")) is not None:
            (cpu / "cpu.cfs_period_us").write_text(str(PERIOD))
            (cpu / "cpu.cfs_quota_us").write_text(str(max(1000, round(limits.cpus * PERIOD))))

    def hits(self) -> Hits:
        return Hits(
            memory=_count(self._of.get("memory"), "memory.oom_control", "oom_kill") > 0,
            processes=_count(self._of.get("pids"), "pids.events", "max") > 0,
        )


class CgroupsV1(Cgroups):
    version = 1

    def __init__(self, parents: Mapping[str, Path]) -> None:
        super().__init__()
        self._parents = dict(parents)
        self.controllers = frozenset(parents)

    def parents(self) -> Iterable[Path]:
        return self._parents.values()

    def _make(self, name: str) -> Cgroup:
        made: dict[str, Path] = {}
        try:
            for controller, parent in self._parents.items():
                (parent / name).mkdir()
                made[controller] = parent / name
        except BaseException:
            _GroupV1(made).remove()
            raise
        return _GroupV1(made)


def find_v1(mounts: Mapping[str, Path]) -> CgroupsV1 | None:
    """`mounts`: where each controller is. None if groups can't be made there."""
    paths = own_paths()
    parents = {}
    for controller in CONTROLLERS:
        if controller in mounts and controller in paths:
            parent = mounts[controller] / paths[controller].lstrip("/")
            parents[controller] = parent if parent.is_dir() else mounts[controller]
    usable = {controller: parent for controller, parent in parents.items() if _can_make(controller, parent)}
    return CgroupsV1(usable) if usable else None


def _can_make(controller: str, parent: Path) -> bool:
    groups = CgroupsV1({controller: parent})
    try:
        return groups.make(ScriptLimits(memory=64 << 20)).remove()
    except OSError:
        return False


def _count(folder: Path | None, file: str, name: str) -> int:
    if folder is None:
        return 0
    try:
        lines = (folder / file).read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.split()[:1] == [name]), 0)
