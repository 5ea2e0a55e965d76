"""Worker pools: real nodes, one of them with labels. What none of them can take waits, is told, and fires once when a
node joins that has the labels."""

from __future__ import annotations

import asyncio
import json
import urllib.request

from tests.cluster.nodes import alive, post
from tests.cluster.walking import ask
from tests.services.process import NodeProcess
from tests.services.waiting import until


def read_page(url: str) -> str:
    text: str = urllib.request.urlopen(url, timeout=10).read().decode()
    return text


async def test_it_waits_is_told_and_fires_once_when_a_node_joins(postgres_url, cluster, receiver, tmp_path, free_port):
    front = cluster.start("--store", postgres_url, "--labels", "eu")
    await front.ready()
    target = {"type": "webhook", "url": receiver.url}
    status, problem = await ask(
        front, "POST", "/v1/jobs", {"schedule": {"in": "1s"}, "target": target, "requires": ["eu", "No"]}
    )
    assert (status, [error["path"] for error in problem["errors"]]) == (422, ["requires[1]"])

    gpu = {"key": "train", "schedule": {"in": "1ms"}, "target": target, "requires": ["gpu", "eu"]}
    made = await post(front, "/v1/jobs", gpu)
    assert made["requires"] == ["gpu", "eu"]
    await post(front, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": target, "requires": ["eu"]})
    await post(front, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": target})
    await receiver.wait_for(2, timeout=20)
    assert str(made["id"]) not in {arrival.headers["x-onthedot-job"] for arrival in receiver.received}

    # told: by the run, the metrics, the page, the doctor
    (run,) = (await ask(front, "GET", f"/v1/runs?job_id={made['id']}"))[1]["items"]
    assert (run["status"], run["waiting"], run["waiting_for"], run["node"]) == ("PENDING", "label", "gpu", None)
    assert run["waiting_since"] == run["due_at"]
    _, metrics = await ask(front, "GET", "/metrics")
    for sample in (
        "onthedot_label_runs_waiting 1.0",
        "onthedot_runs_unoffered 1.0",
        'onthedot_backlog{kind="webhook"} 1.0',
        'onthedot_mailbox_depth{mailbox="recorder"} 0.0',
    ):
        assert f"\n{sample}\n" in metrics
    assert "no live node has the label gpu" in await asyncio.to_thread(read_page, f"{front.url}/jobs")
    assert "labels eu" in await asyncio.to_thread(read_page, f"{front.url}/nodes")
    doctor = NodeProcess("doctor", "--json", "--store", postgres_url, directory=tmp_path, port=free_port())
    assert await doctor.exited() == 1
    (found,) = [each for each in json.loads(doctor.output()) if each["subject"] == "labels"]
    assert found["found"] == "1 due runs need webhook+eu,gpu, but no live node has the label gpu"
    assert "onthedot serve --labels eu,gpu" in found["advice"]

    # a node joins that would poll in an hour
    env = {"ONTHEDOT_POLL_INTERVAL": "1h", "ONTHEDOT_LABELS": "gpu, eu"}
    joined = cluster.start("--store", postgres_url, "--roles", "executor", env=env)
    await receiver.wait_for(3, timeout=20)
    (late,) = [each for each in receiver.received if each.headers["x-onthedot-job"] == str(made["id"])]
    assert late.headers["webhook-id"] == run["id"]

    async def recorded() -> bool:
        done = (await ask(front, "GET", f"/v1/runs/{run['id']}"))[1]
        return bool(done["status"] == "DONE" and done["waiting"] is None and done["attempt"] == 1)

    await until(recorded, "it is recorded")
    nodes = await alive(front)
    assert sorted(node["labels"] for node in nodes.values()) == [["eu"], ["gpu", "eu"]]
    shown = NodeProcess("nodes", "--url", front.url, directory=tmp_path, port=free_port())
    assert await shown.exited() == 0
    assert "gpu,eu" in shown.output()
    assert await joined.stop() == 0
    assert len(receiver.received) == 3


async def test_on_sqlite_the_doctor_asks_the_server_and_an_edit_sets_it_free(sqlite_url, cluster, receiver, tmp_path):
    node = cluster.start("--store", sqlite_url)
    await node.ready()
    target = {"type": "webhook", "url": receiver.url}
    job = await post(
        node, "/v1/jobs", {"key": "train", "schedule": {"in": "1ms"}, "target": target, "requires": ["gpu"]}
    )
    doctor = NodeProcess("doctor", "--store", sqlite_url, "--url", node.url, directory=tmp_path, port=node.port)
    assert await doctor.exited() == 1
    assert "✗ labels    1 due runs wait, but no live node has the label gpu\n" in doctor.output()
    listed = NodeProcess("runs", "list", "train", "--url", node.url, directory=tmp_path, port=node.port)
    assert await listed.exited() == 0
    assert "waiting for label gpu since" in " ".join(listed.output().split())
    status, changed = await ask(node, "PATCH", f"/v1/jobs/{job['id']}", {"requires": []})
    assert (status, changed["requires"]) == (200, [])
    await receiver.wait_for(1, timeout=20)
    assert await node.stop() == 0
    assert len(receiver.received) == 1
