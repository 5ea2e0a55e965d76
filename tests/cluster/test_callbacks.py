"""Results that come later, with real nodes: the run is nobody's, and any node takes the callback."""

from __future__ import annotations

from typing import Any

import pytest

from onthedot.echo import EchoServer
from tests.cluster.nodes import Cluster, alive, post
from tests.cluster.walking import ask
from tests.services.process import NodeProcess
from tests.services.waiting import until

pytestmark = pytest.mark.timeout(120)


def accepting(receiver: EchoServer) -> None:
    receiver.answer = lambda arrival: (202, {"content-type": "application/json"}, b'{"queued": true}')


def job(receiver: EchoServer, **more: Any) -> dict[str, Any]:
    policy = {"completion": "callback", **more.pop("policy", {})}
    return {"schedule": {"in": "1s"}, "target": {"type": "webhook", "url": receiver.url}, "policy": policy, **more}


async def called(receiver: EchoServer, n: int = 1) -> tuple[str, str]:
    """Where the receiver of the last call is to tell how it ended: the server, and the path with the token."""
    arrivals = await receiver.wait_for(n, timeout=30)
    base, slash, path = arrivals[-1].headers["x-onthedot-callback"].partition("/v1/")
    return base, slash + path


async def waits(node: NodeProcess, path: str) -> None:
    run_id = path.split("/")[3]

    async def is_open() -> bool:
        status, run = await ask(node, "GET", f"/v1/runs/{run_id}")
        return bool(status == 200 and run["waiting"] == "callback" and run["node"] is None)

    await until(is_open, f"{run_id} waits for its callback")


async def test_it_survives_the_death_of_every_node(postgres_url, cluster: Cluster, receiver):
    accepting(receiver)
    first = cluster.start("--store", postgres_url)
    await first.ready()
    await post(first, "/v1/jobs", job(receiver))
    base, path = await called(receiver)
    assert base == first.url
    await waits(first, path)
    first.kill()
    other = cluster.start("--store", postgres_url)
    await other.ready()
    assert await ask(other, "POST", path.replace("complete", "progress"), {"percent": 40}) == (204, "")
    status, run = await ask(other, "POST", path, {"status": "done", "result": {"rows": 3}})
    assert (status, run["status"], run["result"]) == (200, "DONE", {"rows": 3})
    assert run["outcome"]["status_code"] == 202
    again, same = await ask(other, "POST", path, {"status": "failed"})
    assert (again, same) == (200, run)
    assert receiver.count == 1


async def test_an_executor_without_an_api_names_that_of_its_machine(postgres_url, cluster: Cluster, receiver):
    accepting(receiver)
    api = cluster.start("--store", postgres_url, "--roles", "api")
    await api.ready()
    await cluster.executors(1, api, "--store", postgres_url)
    await post(api, "/v1/jobs", job(receiver))
    base, path = await called(receiver)
    assert base == api.url
    status, run = await ask(api, "POST", path, {"status": "done"})
    assert (status, run["status"]) == (200, "DONE")


async def test_the_public_url_is_what_receivers_get(postgres_url, cluster: Cluster, receiver):
    accepting(receiver)
    env = {"ONTHEDOT_PUBLIC_URL": "https://jobs.example.com/otd/"}
    node = cluster.start("--store", postgres_url, env=env)
    await node.ready()
    await post(node, "/v1/jobs", job(receiver))
    base, path = await called(receiver)
    assert base == "https://jobs.example.com/otd"
    assert (await ask(node, "POST", path, {"status": "done"}))[0] == 200, "the proxy takes its own prefix away"


async def test_a_queued_run_waits_for_the_callback_across_the_death_of_its_node(
    postgres_url, cluster: Cluster, receiver
):
    accepting(receiver)
    api = cluster.start("--store", postgres_url, "--roles", "api")
    await api.ready()
    executor = cluster.start("--store", postgres_url, "--roles", "executor")
    wanted = job(receiver, schedule={"every": "2s"}, policy={"overlap": "queue"})
    made = await post(api, "/v1/jobs", wanted)
    _, path = await called(receiver)
    await waits(api, path)
    executor.kill()
    await cluster.executors(1, api, "--store", postgres_url)

    async def parked() -> bool:
        _, page = await ask(api, "GET", f"/v1/jobs/{made['id']}/runs?status=PENDING")
        return any(run["reason"] == "lane" for run in page["items"])

    await until(parked, "the next one waits for its lane")
    assert receiver.count == 1
    status, run = await ask(api, "POST", path, {"status": "done"})
    assert (status, run["status"]) == (200, "DONE")
    _, following = await called(receiver, 2)
    assert following.split("/")[3] != path.split("/")[3]


async def test_nobody_calls_back_in_time(postgres_url, cluster: Cluster, receiver):
    accepting(receiver)
    node = cluster.start("--store", postgres_url)
    await node.ready()
    policy = {"completion_timeout": "2s", "retry": {"attempts": 2, "backoff": "100ms"}}
    made = await post(node, "/v1/jobs", job(receiver, policy=policy))
    first = (await called(receiver))[1]
    second = (await called(receiver, 2))[1]
    assert first != second, "another try has another token"
    assert (await ask(node, "POST", first, {"status": "done"}))[0] == 409
    assert (await ask(node, "POST", second, {"status": "done"}))[0] == 200
    _, page = await ask(node, "GET", f"/v1/jobs/{made['id']}/runs")
    assert [run["status"] for run in page["items"]] == ["DONE"]
    assert len(await alive(node)) == 1


async def test_what_a_webhook_answers_is_the_result_of_its_run(cluster: Cluster, receiver):
    large = b'{"rows": "' + b"x" * 6000 + b'"}'
    receiver.answer = lambda arrival: (200, {"content-type": "application/json; charset=utf-8"}, large)
    node = cluster.start()
    await node.ready()
    target = {"type": "webhook", "url": receiver.url}
    runs = []
    for keep in (True, False):
        job = {"schedule": {"in": "1s"}, "target": target, "keep_result": keep}
        runs.append(f"/v1/jobs/{(await post(node, '/v1/jobs', job))['id']}/runs")
    await receiver.wait_for(2, timeout=30)
    found = []
    for path, keep in zip(runs, (True, False), strict=True):

        async def done(path: str = path) -> bool:
            _, page = await ask(node, "GET", path)
            return [run["status"] for run in page["items"]] == ["DONE"]

        await until(done, "it is recorded")
        _, page = await ask(node, "GET", path)
        assert page["items"][0].get("result", "left out") == ("left out" if keep else None), (
            "a list has small ones only"
        )
        found.append((await ask(node, "GET", f"/v1/runs/{page['items'][0]['id']}"))[1])
    assert found[0]["result"] == {"rows": "x" * 6000}
    assert found[1]["result"] is None
    assert "keep_result" in found[1]["outcome"]["result_note"]
