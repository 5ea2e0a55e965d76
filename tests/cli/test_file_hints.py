"""The commands that a jobs file's remarks name can be typed as they stand, and take nothing from another file."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from onthedot.jobsfile import read_jobs_file
from onthedot.launcher.remarks import remarks_on
from onthedot.store import SyncReport

SERVER = "http://127.0.0.1:8123"


def file(directory: Path, *keys: str, name: str = "jobs.json", **more: object) -> Path:
    directory.mkdir(exist_ok=True)
    jobs = [{"key": key, "schedule": {"every": "1h"}, "target": {"type": "command", "command": "say"}} for key in keys]
    (directory / name).write_text(json.dumps({**more, "jobs": jobs}))
    return directory / name


def remarks(path: Path, server: str | None, *, pruned: bool = False, **parts: object) -> str:
    empty: dict[str, object] = {name: [] for name in ("created", "updated", "unchanged", "removed")}
    report = SyncReport(**{**empty, **parts})  # type: ignore[arg-type]
    return "\n".join(remarks_on(read_jobs_file(path), report, path, server, pruned=pruned))


@pytest.mark.parametrize(("server", "at"), [(SERVER, f" --url {SERVER}"), ("http://127.0.0.1:8000", ""), (None, "")])
def test_hints_name_a_server_elsewhere(tmp_path, server, at):
    path = file(tmp_path, "a")
    assert f"`onthedot jobs apply {path} --adopt{at}`" in remarks(path, server, held={"b": "the file 'x' (job 1)"})
    assert f"`onthedot jobs apply {path} --prune{at}`" in remarks(path, server, kept=["b"])
    assert f"`onthedot jobs delete KEY{at}`" in remarks(path, server, kept=["b"], pruned=True)


def test_another_conflict_is_not_told_to_adopt(online, key, tmp_path):
    """Such as a chain that would break: `--adopt` would change nothing about it."""
    first = file(tmp_path, f"{key}-a", f"{key}-b", name=f"{key}.json")
    assert online("jobs", "apply", first).code == 0
    follower = ["--url", "http://127.0.0.1:9/", "--on-success", f"{key}-b", "--key", f"{key}-c"]
    assert online("jobs", "add", "--at", "2099-01-01T00:00:00Z", *follower).code == 0
    refused = online("jobs", "apply", file(tmp_path, f"{key}-a", name=f"{key}.json"), "--prune")
    assert refused.code == 1
    assert "Remove the name there first" in refused.err
    assert "--adopt" not in refused.err


def test_what_another_file_may_have_is_not_pruned(tmp_path):
    """Only with an explicit source does --prune take the jobs of another file of this name."""
    path = file(tmp_path, "a")
    assert "--source" not in remarks(path, SERVER, kept=["b"])
    left = remarks(path, SERVER, kept=["b"], pruned=True)
    assert "--prune" not in left
    assert "Set a `source` of its own in each file" in left


def test_two_files_of_one_name_are_told_of_source_first(online, key, tmp_path):
    first, second = f"{key}-a", f"{key}-b"
    name = f"{key}.json"
    assert online("jobs", "apply", file(tmp_path / "one", first, name=name)).code == 0
    told = online("jobs", "apply", file(tmp_path / "two", second, name=name))
    assert f"Of the source {name}, but not in this file: {first}. " in told.out
    assert "set a `source` of its own in each file" in told.out
    assert told.out.index("`source`") < told.out.index("--prune")


def test_the_command_that_adopts_can_be_typed(online, node, key, tmp_path, monkeypatch):
    assert online("jobs", "apply", file(tmp_path, key, name=f"{key}-old.json")).code == 0
    renamed = file(tmp_path, key, name=f"{key}-new.json")
    refused = online("jobs", "apply", renamed)
    assert refused.code == 1
    assert refused.err.startswith(f"Error: nothing was applied: '{key}' belongs to the file '{key}-old.json'")
    command = refused.err.partition("take it over with `onthedot ")[2].partition("`")[0]
    monkeypatch.delenv("ONTHEDOT_URL")
    assert f"--url {node.url}" in command
    adopted = online(*shlex.split(command))
    assert adopted.code == 0, adopted.err
    assert f"adopted: {key}" in adopted.out
