"""Which cgroups this machine has, and whether this node may make some."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from onthedot.targets.script.cgroup import CONTROLLERS, Cgroups
from onthedot.targets.script.cgroup_v1 import find_v1
from onthedot.targets.script.cgroup_v2 import find_v2

__all__ = ["find_cgroups"]


def find_cgroups() -> Cgroups | None:
    """Version 2 if it has the controllers, else version 1; None where no limits can be set."""
    trees: dict[str, Path] = {}
    unified: Path | None = None
    for kind, place, controllers in _mounts():
        if kind == "cgroup2":
            unified = unified or place
        else:
            trees |= {name: place for name in controllers if name in CONTROLLERS and name not in trees}
    found: Cgroups | None = find_v2(unified) if unified is not None else None
    return found or (find_v1(trees) if trees else None)


def _mounts() -> Iterator[tuple[str, Path, list[str]]]:
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            yield kind, Path(before.split()[4].replace("\\040", " ")), options.split(",")
