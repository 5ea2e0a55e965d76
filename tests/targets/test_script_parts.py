"""The parts of the kind `script` that need no sandbox."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from onthedot.model.size import format_size, read_size
from onthedot.targets.process.last_line import LastLine
from onthedot.targets.script.cgroup import Cgroups, members, remove_left_behind
from onthedot.targets.script.cgroup_v2 import NODE, CgroupsV2, find_v2
from onthedot.targets.script.interpreters import interpreters
from onthedot.targets.script.limits import Hits, ScriptLimits
from onthedot.targets.script.verdict import outcome_of
from tests.targets.sandboxes import sandbox_named

LIMITS = ScriptLimits(memory=256 << 20)


def heard(*portions: str) -> LastLine:
    line = LastLine(lambda _: None)
    for portion in portions:
        line.write(portion)
    return line


def test_words_of_the_end():
    def told(code: int, hits: Hits | None = None, complained: str = "") -> tuple[str, str | None]:
        outcome = outcome_of(code, hits or Hits(), LIMITS, heard(), heard(complained))
        return outcome.kind, outcome.error

    assert told(0) == ("ok", None)
    assert told(0, Hits(memory=True)) == ("ok", None), "a child that was killed is the script's own affair"
    assert told(4) == ("error", "exit code 4")
    assert told(-15) == ("error", "killed by SIGTERM")
    assert told(-77) == ("error", "killed by signal 77")
    assert told(-9, Hits(memory=True)) == ("error", "out of memory (limit 256 MB)")
    assert told(1, complained="Traceback\nMemoryError\n") == ("error", "out of memory (limit 256 MB)")
    assert told(1, Hits(processes=True)) == ("error", "too many processes (limit 64); exit code 1")


@pytest.mark.parametrize(("text", "size"), [("1K", 1024), ("256M", 256 << 20), ("2G", 2 << 30)])
def test_sizes(text: str, size: int):
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["", "256", "M", "0M", "1.5G", "256MB", "-1M", "1T", "²M", " 1M", "9" * 10 + "G"])
def test_no_sizes(text: str):
    with pytest.raises(ValueError, match="such as 256M"):
        read_size(text)


def test_sizes_in_words():
    assert [format_size(size) for size in (100, 64 << 10, 256 << 20, 3 << 29)] == [
        "100 bytes",
        "64 KB",
        "256 MB",
        "1.5 GB",
    ]


def test_an_interpreter_needs_where_it_is_installed(tmp_path: Path):
    base, venv = tmp_path / "base", tmp_path / "venv"
    for folder in (base, venv):
        (folder / "bin").mkdir(parents=True)
    (base / "bin" / "python3").touch(0o755)
    (venv / "bin" / "python").symlink_to(base / "bin" / "python3")
    (venv / "pyvenv.cfg").write_text(f"home = {base}/bin\nversion = 3\n")
    alone = tmp_path / "tool"
    alone.touch(0o755)
    found = interpreters({"venv": (f"{venv}/bin/python",), "tool": (str(alone), "-x"), "sh": ("/usr/bin/sh",)})
    assert set(found["venv"].roots) == {str(base), str(venv)}
    assert found["venv"].argv == (f"{venv}/bin/python", "-u")
    assert (found["tool"].roots, found["tool"].argv) == ((str(alone),), (str(alone), "-x"))
    assert found["sh"].roots == ()
    assert found["sh"].is_installed
    assert not interpreters({"x": ("/no/such",)})["x"].is_installed


def test_without_a_list_there_is_python():
    (name,) = found = interpreters({})
    assert name == "python"
    assert found["python"].is_installed


class FakeTree:
    """The files of a cgroup tree of version 2, as the kernel shows them to a service with delegation."""

    def __init__(self, folder: Path, *, controllers: str = "cpu memory pids", inside: list[int] | None = None) -> None:
        self.mount, self.own = folder, folder / "system.slice" / "onthedot.service"
        self.own.mkdir(parents=True)
        (self.own / "cgroup.controllers").write_text(controllers)
        (self.own / "cgroup.subtree_control").write_text("")
        (self.own / "cgroup.procs").write_text("\n".join(map(str, inside or [])))

    def find(self, own: str = "/system.slice/onthedot.service") -> CgroupsV2 | None:
        return find_v2(self.mount, own)


@pytest.fixture
def removable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel removes a group although it has files; an ordinary directory must be emptied first."""

    def remove(folder: Path) -> None:
        for file in list(folder.iterdir()) if folder.is_dir() else []:
            file.unlink()
        os.rmdir(folder)  # noqa: PTH106 - it takes the place of that

    monkeypatch.setattr(Path, "rmdir", remove)


@pytest.mark.usefixtures("removable")
def test_version_2_moves_the_node_aside_and_sets_limits(tmp_path: Path):
    tree = FakeTree(tmp_path, inside=[os.getpid()])
    found = tree.find()
    assert found is not None
    assert members(tree.own / NODE) == [os.getpid()]
    assert (tree.own / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    group = found.make(ScriptLimits(memory=64 << 20, cpus=0.5, processes=7))
    (folder,) = group.folders
    written = {file.name: file.read_text() for file in folder.iterdir()}
    assert written == {
        "memory.max": str(64 << 20),
        "memory.oom.group": "1",
        "pids.max": "7",
        "cpu.max": "50000 100000",
    }
    assert group.hits() == Hits()
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 3\n")
    (folder / "pids.events").write_text("max 2\n")
    assert group.hits() == Hits(memory=True, processes=True)
    group.add(77)
    assert members(folder) == [77]
    assert group.remove()
    assert not folder.exists()


@pytest.mark.usefixtures("removable")
def test_version_2_leaves_processes_of_others_alone(tmp_path: Path):
    assert FakeTree(tmp_path / "a", inside=[os.getpid(), 1]).find() is None
    assert FakeTree(tmp_path / "b", controllers="cpu pids").find() is None, "memory is what matters"
    assert not (tmp_path / "a" / "system.slice" / "onthedot.service" / NODE).exists()


@pytest.mark.usefixtures("removable")
def test_version_2_after_a_restart_in_the_group_below(tmp_path: Path):
    tree = FakeTree(tmp_path)
    (tree.own / "cgroup.subtree_control").write_text("cpu memory pids")
    found = tree.find(f"/system.slice/onthedot.service/{NODE}")
    assert found is not None
    assert list(found.parents()) == [tree.own]


def real_cgroups() -> Cgroups:
    cgroups = getattr(sandbox_named("cgroup"), "cgroups", None)
    assert isinstance(cgroups, Cgroups)
    return cgroups


def test_groups_of_nodes_that_are_no_more_are_removed():
    cgroups = real_cgroups()
    theirs = type(cgroups).__new__(type(cgroups))
    theirs.__dict__.update(cgroups.__dict__)
    theirs._name = "onthedot-run-4194303-1"
    left, mine = theirs.make(LIMITS), cgroups.make(LIMITS)
    assert remove_left_behind(cgroups) == len(left.folders)
    assert not any(folder.exists() for folder in left.folders)
    assert all(folder.exists() for folder in mine.folders)
    assert mine.remove()


def test_a_spec_reads_back_as_it_was_written():
    from onthedot.model.targets import ScriptTarget

    target = ScriptTarget(code="print(1)")
    assert msgspec.json.encode(target) == b'{"type":"script","code":"print(1)"}'
    assert msgspec.json.decode(msgspec.json.encode(target), type=ScriptTarget) == target
