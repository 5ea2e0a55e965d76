"""The SQLite file itself is what is locked, and it is watched: by real processes, with whatever name they come."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.nodes import post
from tests.cluster.walking import ask
from tests.services.process import NodeProcess
from tests.services.small_disk import MAY_MOUNT
from tests.services.waiting import until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "onthedot.db"


async def refused(cluster: Any, path: Path) -> str:
    second: NodeProcess = cluster.start("--store", f"sqlite:///{path}")
    assert await second.exited() == 1
    assert "Traceback" not in second.output()
    assert "is in use by" in second.output()
    assert "use a PostgreSQL store" in second.output()
    return second.output()


class TestOneProcess:
    @pytest.fixture
    async def first(self, cluster: Any, path: Path) -> NodeProcess:
        node: NodeProcess = cluster.start("--store", f"sqlite:///{path}")
        await node.ready()
        return node

    async def test_by_a_symbolic_link(self, first, cluster, path, tmp_path):
        (tmp_path / "other.db").symlink_to(path)
        assert f"process {first.pid}" in await refused(cluster, tmp_path / "other.db")
        assert sorted(file.name for file in tmp_path.glob("other*")) == ["other.db"]
        assert await first.stop() == 0

    async def test_by_a_hard_link(self, first, cluster, path, tmp_path):
        os.link(path, tmp_path / "other.db")
        await refused(cluster, tmp_path / "other.db")
        assert await first.stop() == 0

    async def test_by_a_linked_folder(self, first, cluster, path, tmp_path):
        (tmp_path / "elsewhere").symlink_to(path.parent)
        await refused(cluster, tmp_path / "elsewhere" / path.name)
        assert await first.stop() == 0

    async def test_without_its_lock_file(self, first, cluster, path):
        path.with_name("onthedot.db-lock").unlink()
        await refused(cluster, path)
        assert await first.stop() == 0

    @pytest.mark.skipif(not MAY_MOUNT, reason="only who may mount can make a bind mount")
    async def test_by_a_bind_mount(self, first, cluster, path, tmp_path):
        there = tmp_path / "bound"
        there.mkdir()
        subprocess.run(["mount", "--bind", path.parent, there], check=True)
        try:
            await refused(cluster, there / path.name)
        finally:
            subprocess.run(["umount", there], check=True)
        assert await first.stop() == 0

    async def test_a_killed_one_leaves_it_free(self, first, cluster, path, tmp_path):
        first.kill()
        (tmp_path / "other.db").symlink_to(path)
        second = cluster.start("--store", f"sqlite:///{tmp_path / 'other.db'}")
        await second.ready()
        assert await second.stop() == 0


class TestTakenAwayBeneath:
    """Each second a job calls the receiver. Within two seconds of the loss that ends, and the process says why."""

    @pytest.fixture
    async def node(self, cluster: Any, path: Path, receiver: Any) -> NodeProcess:
        started: NodeProcess = cluster.start("--store", f"sqlite:///{path}")
        await started.ready()
        spec = {"schedule": {"cron": "* * * * * *"}, "target": {"type": "webhook", "url": receiver.url}}
        await post(started, "/v1/jobs", spec)
        await receiver.wait_for(1, timeout=20)
        return started

    async def ends(self, node: NodeProcess, receiver: Any) -> str:
        loop = asyncio.get_running_loop()
        heard = receiver.count
        began = loop.time()

        async def not_ready() -> bool:
            return (await ask_or_none(node))[0] != 200

        await until(not_ready, "it is not ready", 10)
        assert loop.time() - began < 2.0
        assert await node.exited() == 1
        assert receiver.count - heard <= 2  # it fires each second
        assert node.output().count("store.moved") == 1
        assert "Error: " in node.output()
        assert "stop On the Dot before you move or restore a SQLite store" in node.output()
        assert "Traceback" not in node.output()
        return node.output()

    async def test_deleted(self, node, receiver, path):
        for file in path.parent.glob("onthedot.db*"):
            file.unlink()
        assert "was removed or renamed while it was in use" in await self.ends(node, receiver)

    async def test_replaced(self, node, receiver, path, tmp_path):
        """A backup put in its place is not touched: not even its journal."""
        other = tmp_path / "backup.db"
        shutil.copy(path, other)
        before = other.read_bytes()
        other.replace(path)
        assert "was replaced by another file" in await self.ends(node, receiver)
        assert path.read_bytes() == before

    async def test_only_its_journal(self, node, receiver, path):
        path.with_name("onthedot.db-wal").unlink()
        assert "onthedot.db-wal was removed" in await self.ends(node, receiver)

    async def test_what_can_not_be_kept_is_not_acknowledged(self, node, receiver, path):
        path.rename(path.with_name("away.db"))
        target = {"type": "webhook", "url": receiver.url}
        status, answer = await ask_or_none(node, "POST", "/v1/jobs", {"schedule": {"in": "1h"}, "target": target})
        assert status in (503, 0), answer  # 0: a beat was quicker, and it is gone already
        await self.ends(node, receiver)


async def ask_or_none(
    node: NodeProcess, method: str = "GET", path: str = "/readyz", body: Any = None
) -> tuple[int, Any]:
    try:
        return await ask(node, method, path, body)
    except OSError:
        return 0, None


async def test_while_a_run_is_given_its_time_readyz_says_why(cluster, path, tmp_path):
    """The stop is in order, so that it may take some seconds: nothing is accepted in them, and the reason is told."""
    (tmp_path / "onthedot.toml").write_text('[commands.long]\nargv = ["sleep", "600"]\n')
    node = cluster.start("--store", f"sqlite:///{path}")
    await node.ready()
    job = await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": {"type": "command", "command": "long"}})

    async def runs() -> bool:
        _, page = await ask(node, "GET", f"/v1/runs?job_id={job['id']}")
        return [run["status"] for run in page["items"]] == ["EXECUTING"]

    await until(runs, "it runs")
    path.unlink()

    async def told() -> bool:
        status, ready = await ask_or_none(node)
        return status == 503 and ready["store"] == "the database file was removed or replaced"

    await until(told, "readyz says why", 5)
    assert (await ask_or_none(node, "GET", "/v1/jobs"))[0] in (503, 0)
    assert await node.exited() == 1
