"""Whose jobs are whose: jobs files of one name on one database, and files that were renamed. Real nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.walking import ask
from tests.services.process import NodeProcess
from tests.services.waiting import until


def file(directory: Path, *keys: str, name: str = "jobs.json", source: str | None = None) -> Path:
    directory.mkdir(exist_ok=True)
    jobs = [
        {"key": key, "schedule": {"every": "1h"}, "target": {"type": "webhook", "url": "http://127.0.0.1:9/"}}
        for key in keys
    ]
    document = {"jobs": jobs} if source is None else {"source": source, "jobs": jobs}
    (directory / name).write_text(json.dumps(document))
    return directory / name


async def keys(node: NodeProcess) -> list[str]:
    _, page = await ask(node, "GET", "/v1/jobs")
    return sorted(job["key"] for job in page["items"])


async def served(cluster: Any, store: str, jobs: Path, *more: str) -> NodeProcess:
    node: NodeProcess = cluster.start("--store", store, "--jobs", str(jobs), *more)
    await node.ready()
    return node


async def test_two_files_of_one_name_never_remove_each_others_jobs(postgres_url, cluster, tmp_path):
    first = await served(cluster, postgres_url, file(tmp_path / "one", "a", "b"))
    second = await served(cluster, postgres_url, file(tmp_path / "two", "c"))
    assert await keys(first) == ["a", "b", "c"]
    jobs = file(tmp_path / "one", "a")  # read again while it runs
    await until(lambda: "no longer in jobs.json but not deleted" in first.output(), "it is told", 30)
    assert f"onthedot jobs apply {jobs} --prune --url {first.url}" in first.output()
    assert await keys(first) == ["a", "b", "c"]
    assert await second.stop() == 0
    again = await served(cluster, postgres_url, tmp_path / "two" / "jobs.json")
    assert await keys(again) == ["a", "b", "c"]
    assert "2 not in the file, kept" in again.output()


@pytest.mark.parametrize("by", ["file", "flag"])
async def test_with_a_source_what_is_gone_is_removed(postgres_url, cluster, tmp_path, by):
    given = "shop" if by == "file" else None
    flags = ("--source", "shop") if by == "flag" else ()
    other = await served(cluster, postgres_url, file(tmp_path / "two", "c", source="other"))
    node = await served(cluster, postgres_url, file(tmp_path / "one", "a", "b", source=given), *flags)
    assert await keys(node) == ["a", "b", "c"]
    file(tmp_path / "one", "a", source=given)

    async def gone() -> bool:
        return await keys(other) == ["a", "c"]

    await until(gone, "it is removed", 30)
    assert "not deleted" not in node.output()


async def test_on_sqlite_what_is_gone_is_removed(sqlite_url, cluster, tmp_path):
    node = await served(cluster, sqlite_url, file(tmp_path / "one", "a", "b"))
    assert await node.stop() == 0
    node = await served(cluster, sqlite_url, file(tmp_path / "one", "b"))
    assert await keys(node) == ["b"]


async def test_a_renamed_file_starts_and_takes_over_when_told(store_url, cluster, tmp_path, free_port):
    node = await served(cluster, store_url, file(tmp_path, "a", "b"))
    before = {job["key"]: job["id"] for job in (await ask(node, "GET", "/v1/jobs"))[1]["items"]}
    assert await node.stop() == 0
    (tmp_path / "jobs.json").unlink()
    renamed = file(tmp_path, "a", "c", name="tasks.json")
    node = await served(cluster, store_url, renamed)
    assert await keys(node) == ["a", "b", "c"]
    command = f"jobs apply {renamed} --adopt"
    assert f"onthedot {command} --url {node.url}" in node.output()
    adopting = NodeProcess(*command.split(), "--url", node.url, directory=tmp_path, port=free_port())
    assert await adopting.exited() == 0, adopting.output()
    assert "adopted: a" in adopting.output()
    assert await node.stop() == 0
    node = await served(cluster, store_url, renamed)
    assert "onthedot jobs apply" not in node.output().rpartition("On the Dot")[2]
    assert {job["key"]: job["id"] for job in (await ask(node, "GET", "/v1/jobs"))[1]["items"]}["a"] == before["a"]


async def test_a_source_outlives_the_renaming(postgres_url, cluster, tmp_path):
    node = await served(cluster, postgres_url, file(tmp_path, "a", "b", source="shop"))
    assert await node.stop() == 0
    node = await served(cluster, postgres_url, file(tmp_path, "a", name="tasks.json", source="shop"))
    assert await keys(node) == ["a"]
    assert await node.stop() == 0


async def test_the_command_line_removes_what_came_from_this_file(postgres_url, cluster, tmp_path, free_port):
    node = cluster.start("--store", postgres_url)
    await node.ready()

    async def apply(*arguments: str) -> str:
        asked = NodeProcess("jobs", "apply", *arguments, "--url", node.url, directory=tmp_path, port=free_port())
        assert await asked.exited() == 0, asked.output()
        return asked.output()

    await apply(str(file(tmp_path / "one", "a", "b")))
    await apply(str(file(tmp_path / "two", "c")))
    told = await apply(str(file(tmp_path / "one", "a")), "--prune")
    assert "removed: b" in told
    assert "not deleted, since others may share this database: 1 job (c) of source jobs.json" in told
    assert await keys(node) == ["a", "c"]
    assert "--prune" not in told, "it would delete the other file's"
    assert f"onthedot jobs delete KEY --url {node.url}" in told
    assert "Set a `source` of its own in each file" in told
