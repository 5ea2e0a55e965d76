"""`onthedot migrate-store` as users run it: real processes, one of them killed in the middle."""

from __future__ import annotations

import sqlite3
import subprocess
from pathlib import Path

import asyncpg

from onthedot.store import open_store
from tests.services.process import COMMAND, NodeProcess
from tests.services.waiting import until
from tests.store.given import spec

HISTORY = 100_000
NOBODY = {"type": "webhook", "url": "http://127.0.0.1:9/"}


async def served(url: str, directory: Path, port: int) -> str:
    """What a node says that must not serve this store."""
    node = NodeProcess("serve", "--port", str(port), "--store", url, directory=directory, port=port)
    try:
        assert await node.exited() == 1
        return node.output()
    finally:
        node.kill()


def with_history(path: Path) -> None:
    with sqlite3.connect(path) as file:
        file.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
            " INSERT INTO history (id, tenant, job_id, slot, kind, due_at, status, finished_at, error)"
            " SELECT '1-' || i, 1, 1, 1700000000000 + i, 'scheduled', i, 'done', i, hex(randomblob(100)) FROM n",
            (HISTORY,),
        )
    file.close()


async def copied(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM history"))
    finally:
        await connection.close()


async def test_killed_in_the_middle_it_goes_on_and_nothing_is_twice(tmp_path, postgres_url, free_port):
    path, source = tmp_path / "onthedot.db", f"sqlite:///{tmp_path}/onthedot.db"
    await (await open_store(source)).close()
    with_history(path)
    process = subprocess.Popen([COMMAND, "migrate-store", source, postgres_url], stderr=subprocess.PIPE)

    async def some_copied() -> bool:
        return await copied(postgres_url) > 0

    await until(some_copied, "some of the history is copied", 30)
    process.kill()
    process.communicate()
    there = await copied(postgres_url)
    assert 0 < there < HISTORY, "it was killed too late, or not at all"
    assert "unfinished copy of sqlite:///" in await served(postgres_url, tmp_path, free_port())
    assert "is being moved to postgresql://" in await served(source, tmp_path, free_port())
    again = subprocess.run([COMMAND, "migrate-store", source, postgres_url, "--json"], capture_output=True, check=True)
    assert b'"resumed": true' in again.stdout
    assert again.stderr == b""
    assert await copied(postgres_url) == HISTORY
    assert "was moved to postgresql://" in await served(source, tmp_path, free_port())


async def test_a_job_fires_in_the_new_store_and_keeps_its_id(tmp_path, postgres_url, launch):
    """Served, stopped, moved, served: the same job, the same history, and the next slot fires."""
    from onthedot.client import AsyncClient

    source = f"sqlite:///{tmp_path}/onthedot.db"
    node = await launch("--store", source)
    async with AsyncClient(node.url) as client:
        job = await client.create_job(spec(key="tick", schedule={"every": "1s"}, target=NOBODY))
        await _ran(client, 1)
    refused = subprocess.run([COMMAND, "migrate-store", source, postgres_url], capture_output=True, check=False)
    assert refused.returncode == 1
    assert b"is in use by process" in refused.stderr
    assert await node.stop() == 0
    moved = subprocess.run([COMMAND, "migrate-store", source, postgres_url], capture_output=True, check=False)
    assert (moved.returncode, moved.stderr) == (0, b""), moved.stderr
    assert b"1 jobs" in moved.stdout
    node = await launch("--store", postgres_url)
    async with AsyncClient(node.url) as client:
        assert (await client.get_job_by_key("tick")).id == job.id
        runs = await _ran(client, 3)
        slots = [run.scheduled_for for run in runs]
        assert len(slots) == len(set(slots))


async def _ran(client, count):
    async def enough():
        return len((await client.list_runs()).items) >= count

    await until(enough, f"{count} runs", 20)
    return (await client.list_runs()).items


def test_what_can_not_be_moved_is_told(cli, tmp_path):
    missing = cli("migrate-store", f"sqlite:///{tmp_path}/none.db", "postgresql://127.0.0.1:1/x")
    assert (missing.code, "does not exist" in missing.err) == (1, True)
    assert not (tmp_path / "none.db").exists()
    nonsense = cli("migrate-store", "foo", "bar")
    assert (nonsense.code, nonsense.err.startswith("Error: 'foo' is not a valid store URL. Accepted: ")) == (2, True)
    memory = cli("migrate-store", "sqlite:///:memory:", "postgresql://127.0.0.1:1/x")
    assert (memory.code, "memory" in memory.err) == (1, True)
