"""METRICS_PORT: probes and metrics of nodes that serve no API; NODE_NAME and LOG_FORMAT as real processes take them."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.error
import urllib.request
from pathlib import Path

from tests.cluster.nodes import alive, post
from tests.cluster.walking import ask
from tests.services.process import NodeProcess
from tests.services.waiting import until

OF_NODES, _, _ = (Path(__file__).parents[2] / "docs/metrics.md").read_text().partition("\n## Of the witness\n")
DOCUMENTED = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", OF_NODES, re.MULTILINE))


def look(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


async def test_an_executor_tells_how_it_is_without_a_key(postgres_url, cluster, receiver, free_port):
    front = cluster.start("--store", postgres_url, "--roles", "api", env={"ONTHEDOT_AUTH": "auto"})
    port = free_port()
    env = {
        "ONTHEDOT_METRICS_PORT": str(port),
        "ONTHEDOT_NODE_NAME": "executor eu-1",
        "ONTHEDOT_LOG_FORMAT": "console",
        "ONTHEDOT_CONCURRENCY": "4",
    }
    executor = cluster.start("--store", postgres_url, "--roles", "executor", env=env)
    await front.ready()

    async def ready() -> bool:
        return (await asyncio.to_thread(look, port, "/readyz"))[0] == 200

    await until(ready, "the executor says that it is ready")
    names = {node["name"] for node in (await alive(front)).values() if node["roles"] == ["executor"]}
    assert names == {"executor eu-1"}
    await post(front, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": {"type": "webhook", "url": receiver.url}})
    await receiver.wait_for(1, timeout=20)

    async def counted() -> bool:
        return "onthedot_runs_fired_total 1.0" in (await asyncio.to_thread(look, port, "/metrics"))[1]

    await until(counted, "the run is in the metrics of the node that sent it")

    # of this node, from now on with a key that nobody asks for here
    await post(front, "/v1/keys", {"name": "admin", "scope": "admin"})
    assert (await ask(front, "GET", "/metrics"))[0] == 401
    status, text = await asyncio.to_thread(look, port, "/metrics")
    assert status == 200
    lines = text.splitlines()
    assert 'onthedot_slots{kind="webhook"} 4.0' in lines
    assert "onthedot_load 0.0" in lines
    assert "onthedot_node_ready 1.0" in lines
    assert "onthedot_store_up 1.0" in lines
    real = dict(re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE))
    assert real == DOCUMENTED

    status, alive_text = await asyncio.to_thread(look, port, "/healthz")
    assert (status, json.loads(alive_text)["status"]) == (200, "ok")
    for path in ("/", "/v1/jobs", "/docs", "/v1/nodes", "/metrics/"):
        assert (await asyncio.to_thread(look, port, path))[0] == 404
    assert (await asyncio.to_thread(look, port, "/metrics", "POST"))[0] == 405
    assert await asyncio.to_thread(look, port, "/healthz", "HEAD") == (200, "")
    said = executor.output()
    assert f"http://127.0.0.1:{port}/metrics, without a key" in said
    assert "node.registered" in said
    assert '"event"' not in said, "a log for people"

    assert await executor.stop() == 0


async def test_it_answers_while_it_waits_for_its_database(cluster, free_port):
    port = free_port()
    env = {"ONTHEDOT_METRICS_PORT": str(port)}
    node = cluster.start("--store", f"postgresql://u@127.0.0.1:{free_port()}/d", "--roles", "executor", env=env)

    async def waits() -> bool:
        return (await asyncio.to_thread(look, port, "/healthz"))[0] == 200

    await until(waits, "the node is alive")
    status, text = await asyncio.to_thread(look, port, "/readyz")
    assert (status, json.loads(text)["store"]) == (503, "can't be reached")
    status, text = await asyncio.to_thread(look, port, "/metrics")
    assert status == 200, "whoever scrapes it can tell it from a node that is gone"
    assert {"onthedot_store_up 0.0", "onthedot_node_ready 0.0"} <= set(text.splitlines())
    assert (await asyncio.to_thread(look, port, "/v1/jobs"))[0] == 404
    assert await node.stop() == 0
    events = [json.loads(line)["event"] for line in node.output().splitlines() if line.startswith("{")]
    assert "store unavailable; waiting for it" in events, "JSON where there is no terminal"


async def test_each_worker_has_a_port(postgres_url, cluster, free_port):
    first = free_port()
    env = {"ONTHEDOT_METRICS_PORT": str(first)}
    cluster.start("--store", postgres_url, "--roles", "executor", "--workers", "2", env=env)

    async def both() -> bool:
        return [(await asyncio.to_thread(look, first + number, "/readyz"))[0] for number in (0, 1)] == [200, 200]

    await until(both, "both workers are ready")


async def test_a_port_that_is_taken_is_an_error_that_names_the_setting(cluster, free_port, tmp_path):
    port = free_port()
    node = NodeProcess(
        "serve", "--port", str(port), directory=tmp_path, port=port, env={"ONTHEDOT_METRICS_PORT": str(port)}
    )
    assert await node.exited() == 2
    assert "choose another port with METRICS_PORT" in node.output()
