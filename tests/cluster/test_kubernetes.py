"""docs/kubernetes.md, typed as it stands, with a stand-in for an API server: what it shows happens. Only ids are made
real."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.nodes import Cluster, post
from tests.cluster.typed import html_of
from tests.cluster.walking import ask
from tests.services.kubernetes_api import KubernetesServer, running_kubernetes
from tests.services.process import COMMAND, NodeProcess
from tests.services.waiting import until

PAGE = (Path(__file__).parents[2] / "docs" / "kubernetes.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SHOWN = "1-1767225600000-m1"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[KubernetesServer]:
    (tmp_path / "kubernetes").mkdir()
    with running_kubernetes(tmp_path / "kubernetes") as server:
        yield server


def block_with(words: str) -> str:
    (found,) = [block for block in BLOCKS if words in block]
    return str(found)


async def shell(script: str, directory: Path, node: NodeProcess | None = None) -> str:
    env = {"PATH": f"{COMMAND.parent}:{os.environ['PATH']}", "COLUMNS": "200"}
    if node is not None:
        env["ONTHEDOT_URL"] = node.url
    done = await asyncio.to_thread(
        subprocess.run, ["/bin/sh", "-ec", script], capture_output=True, text=True, cwd=directory, env=env
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


async def settings(tmp_path: Path, server: KubernetesServer) -> str:
    """As the page says, with the way to this server."""
    block, _, _ = block_with("cat > onthedot.toml").partition("onthedot serve")
    block = block.replace("END\nonthedot", f'kubeconfig = "{server.kubeconfig()}"\nEND\nonthedot')
    return await shell(block, tmp_path)


async def status_of(node: NodeProcess, run_id: str, *wanted: str) -> dict[str, Any]:
    async def look() -> Any:
        _, run = await ask(node, "GET", f"/v1/runs/{run_id}")
        return run if run["status"] in wanted else None

    found: dict[str, Any] = await until(look, f"{run_id} is {wanted}", 60)
    return found


async def only_run(node: NodeProcess, key: str, *wanted: str) -> dict[str, Any]:
    async def look() -> Any:
        _, job = await ask(node, "GET", f"/v1/jobs/by-key/{key}")
        _, page = await ask(node, "GET", f"/v1/jobs/{job['id']}/runs")
        return [run for run in page["items"] if run["status"] in wanted]

    found: list[dict[str, Any]] = await until(look, f"a run of {key} is {wanted}", 60)
    return found[0]


async def refuses_others(node: NodeProcess) -> None:
    job = {"schedule": {"every": "1h"}, "target": {"type": "kubernetes", "image": "evil.test/alpine:3"}}
    status, said = await ask(node, "POST", "/v1/jobs", job)
    assert status == 422
    (problem,) = said["errors"]
    assert (problem["path"], problem["accepted"]) == ("target.image", "alpine:*")


async def test_the_page(server: KubernetesServer, cluster: Cluster, tmp_path: Path) -> None:
    said = await settings(tmp_path, server)
    assert re.search(r"✓ kubernetes +v1.33.1 at http://127.0.0.1", said), said
    node = cluster.start("--store", f"sqlite:///{tmp_path}/jobs.db")
    await node.ready()
    await refuses_others(node)
    before, run, after = block_with("--key count").partition("onthedot jobs run count")
    (run_id,) = re.findall(r'"id": ?"([^"]+)"', await shell(f"{before}{run} --json", tmp_path, node))
    out = await shell(after.partition("\n")[2].replace(SHOWN, run_id), tmp_path, node)
    assert "counting red" in out
    assert re.search(r'result +\{"rows": ?3\}', out), out
    shown = await html_of(node, run_id)
    assert "counting red" in shown
    assert "rows" in shown
    await shell(block_with("curl -X POST").replace("http://127.0.0.1:8000", node.url), tmp_path, node)
    assert (await only_run(node, "hello", "DONE"))["status"] == "DONE"
    commands, _, rest = block_with("--key fails").partition("onthedot runs list")
    await shell(commands, tmp_path, node)
    long = await only_run(node, "long", "EXECUTING")
    assert (await only_run(node, "fails", "FAILED"))["error"] == "exit code 3"
    assert (await only_run(node, "slow", "FAILED"))["error"] == "timed out after 2 s"
    await shell("onthedot runs list" + rest.replace("4-1767225600000", long["id"]), tmp_path, node)
    await status_of(node, long["id"], "CANCELLED")
    assert f"{long['id']}-1" not in server.jobs()


WAITS = ["sh", "-c", 'echo one; while ! [ -e "$HERE/go" ]; do sleep 0.05; done; echo two; echo "[1]"']


async def test_a_node_is_killed_the_api_server_restarted_and_the_next_node_goes_on(
    server: KubernetesServer, cluster: Cluster, tmp_path: Path
) -> None:
    await settings(tmp_path, server)
    store = f"sqlite:///{tmp_path}/jobs.db"
    first = cluster.start("--store", store)
    await first.ready()
    target = {"type": "kubernetes", "image": "alpine:3", "args": WAITS}
    await post(first, "/v1/jobs", {"key": "outlives", "schedule": {"in": "1ms"}, "target": target})
    run = await only_run(first, "outlives", "EXECUTING")
    name = f"{run['id']}-1"
    await until(lambda: server.cluster.started[name], "it runs")
    first.kill()
    await asyncio.to_thread(server.restart)
    second = cluster.start("--store", store)
    await second.ready()
    (server.home / "go").touch()
    ended = await status_of(second, run["id"], "DONE", "FAILED")
    assert (ended["status"], ended["result"], ended["attempt"], len(ended["attempts"])) == ("DONE", [1], 2, 1)
    _, log = await ask(second, "GET", f"/v1/runs/{run['id']}/logs")
    assert "one\ntwo\n[1]\n" in str(log["log"] if isinstance(log, dict) else log)
    assert (server.cluster.started[name], server.jobs()) == (1, [name])
