"""A chain whose node is killed between the end of one run and the start of the next: started once, by another node."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.cluster.nodes import Cluster, post, runs_heard
from tests.cluster.walking import ask, shell
from tests.services.waiting import until

pytestmark = pytest.mark.timeout(120)

PAGE = (Path(__file__).parents[2] / "docs" / "chains.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


async def test_killed_between_the_end_and_the_start(postgres_url, cluster: Cluster, receiver):
    """The test holds the row of the job that follows, so that the first node has recorded the end and can't go on."""
    first = cluster.start("--store", postgres_url)
    await first.ready()
    target = {"type": "webhook", "url": receiver.url, "body": {"after": {"$": "params.trigger.run_id"}}}
    far: dict[str, Any] = {"schedule": {"at": "2099-01-01T00:00:00Z"}, "target": target}
    follower = await post(first, "/v1/jobs", {"key": "report", **far})
    await post(first, "/v1/jobs", {"key": "load", **far, "on_success": ["report"], "on_failure": ["report"]})
    connection = await asyncpg.connect(postgres_url)
    try:
        held = connection.transaction()
        await held.start()
        await connection.execute("SELECT 1 FROM jobs WHERE id = $1 FOR UPDATE", follower["id"])
        run = await post(first, "/v1/jobs/by-key/load/run")

        async def recorded() -> bool:
            return bool(await connection.fetchval("SELECT 1 FROM history WHERE id = $1", run["id"]))

        await until(recorded, "the end of the first run is recorded")
        first.kill()
        assert await connection.fetchval("SELECT count(*) FROM runs WHERE kind = 'chain'") == 0
        await held.rollback()
    finally:
        await connection.close()
    second = cluster.start("--store", postgres_url)
    await second.ready()
    await receiver.wait_for(2, timeout=30)
    status, ended = await ask(second, "GET", f"/v1/runs/{run['id']}")
    (started,) = ended["followers"]
    assert (status, ended["status"]) == (200, "DONE")

    async def done() -> bool:
        return bool((await ask(second, "GET", f"/v1/runs/{started}"))[1]["status"] == "DONE")

    await until(done, "the run that follows is done")
    assert runs_heard(receiver) == {run["id"]: 1, started: 1}
    assert [json.loads(arrival.body) for arrival in receiver.received] == [{"after": None}, {"after": run["id"]}]
    _, listed = await ask(second, "GET", "/v1/jobs/by-key/report/runs")
    assert [item["id"] for item in listed["items"]] == [started]


async def test_the_page_typed_as_it_stands(cluster: Cluster, receiver, tmp_path):
    node = cluster.start("--store", f"sqlite:///{tmp_path}/jobs.db")
    await node.ready()
    (making,) = [block for block in BLOCKS if "cat > chain.yaml" in block]
    out, code = await shell(
        node, "set -e\n" + making.replace("http://127.0.0.1:5003", receiver.url.rstrip("/")), tmp_path
    )
    assert code == 0, out
    load, report = await receiver.wait_for(2, timeout=30)
    assert (load.path, report.path) == ("/load", "/report")
    assert json.loads(report.body) == {"loaded_by": load.run_id, "answer": None}
    (listing,) = [block for block in BLOCKS if "runs list load" in block]
    out, code = await shell(node, f"set -e\n{listing}", tmp_path)
    assert code == 0, out
    assert f"{load.run_id} " in out
    assert f"{report.run_id} " in out
    (adding,) = [block for block in BLOCKS if "--on-success tidy" in block]
    out, code = await shell(node, f"set -e\n{adding}\nonthedot jobs explain report", tmp_path)
    assert code == 0, out
    assert "on success  tidy" in out
    shown, _ = await shell(node, f"onthedot runs show {report.run_id}", tmp_path)
    assert f"chain (run {load.run_id})" in shown
