"""docs/containers.md, typed as it stands, with a real engine: what it shows happens. Only ids are made real."""

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
from tests.services.container_engine import IMAGE, EngineServer, running_engine
from tests.services.debian import ProgramMissing
from tests.services.missing import missing
from tests.services.process import COMMAND, NodeProcess
from tests.services.waiting import until

PAGE = (Path(__file__).parents[2] / "docs" / "containers.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SHOWN = "1-1767225600000-m1"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineServer]:
    try:
        with running_engine() as server:
            server.ask("POST", f"/images/{IMAGE}/tag?repo=alpine&tag=3")
            yield server
    except ProgramMissing as why:
        missing(why)


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


async def settings(tmp_path: Path, engine: EngineServer) -> str:
    """As the page says, with the socket of this engine."""
    block, _, _ = block_with("cat > onthedot.toml").partition("onthedot serve")
    block = block.replace("END\nonthedot", f'socket = "{engine.socket}"\nEND\nonthedot')
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
    job = {"schedule": {"every": "1h"}, "target": {"type": "container", "image": "evil.test/alpine:3"}}
    status, said = await ask(node, "POST", "/v1/jobs", job)
    assert status == 422
    (problem,) = said["errors"]
    assert (problem["path"], problem["accepted"]) == ("target.image", "alpine:*")
    assert "evil.test/alpine:3 is not allowed" in problem["message"]


async def test_the_page(engine: EngineServer, cluster: Cluster, tmp_path: Path) -> None:
    said = await settings(tmp_path, engine)
    assert re.search(r"✓ containers +Docker \S+ at unix://", said), said
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
    await until(lambda: engine.containers().get(f"{long['id']}-1") == "running", "it runs")
    await shell("onthedot runs list" + rest.replace("4-1767225600000", long["id"]), tmp_path, node)
    await status_of(node, long["id"], "CANCELLED")
    assert engine.containers()[f"{long['id']}-1"] == "exited"


WAITS = ["sh", "-c", 'echo one; while ! [ -e /tmp/go ]; do sleep 0.05; done; echo two; echo "[1]"']


async def test_a_node_is_killed_and_the_next_one_goes_on(
    engine: EngineServer, cluster: Cluster, tmp_path: Path
) -> None:
    await settings(tmp_path, engine)
    store = f"sqlite:///{tmp_path}/jobs.db"
    first = cluster.start("--store", store)
    await first.ready()
    target = {"type": "container", "image": "alpine:3", "command": WAITS}
    await post(first, "/v1/jobs", {"key": "outlives", "schedule": {"in": "1ms"}, "target": target})
    run = await only_run(first, "outlives", "EXECUTING")
    name = f"{run['id']}-1"
    await until(lambda: engine.containers().get(name) == "running", "it runs")
    started = engine.inspect(name)["State"]["StartedAt"]
    first.kill()
    await asyncio.to_thread(engine.restart)
    assert engine.containers()[name] == "running"
    second = cluster.start("--store", store)
    await second.ready()
    made = engine.ask("POST", f"/containers/{name}/exec", b'{"Cmd": ["dd", "of=/tmp/go", "count=0"]}')
    engine.ask("POST", f"/exec/{made['Id']}/start", b'{"Detach": true}')
    ended = await status_of(second, run["id"], "DONE", "FAILED")
    assert (ended["status"], ended["result"], ended["attempt"], len(ended["attempts"])) == ("DONE", [1], 2, 1)
    assert engine.inspect(name)["State"]["StartedAt"] == started
    _, log = await ask(second, "GET", f"/v1/runs/{run['id']}/logs")
    assert "one\ntwo\n[1]\n" in str(log["log"] if isinstance(log, dict) else log)
    assert [each for each in engine.containers() if each.startswith(run["id"])] == [name]
