"""Private addresses are open by trust: on every node, until the first key is made."""

from __future__ import annotations

from onthedot.errors import Invalid
from onthedot.main import assembled
from onthedot.model.key import ApiKeySpec
from tests.cluster.nodes import alive, post
from tests.cluster.test_assembled import PRIVATE, settings
from tests.cluster.walking import ask
from tests.services.waiting import until


def refused(running) -> bool:
    try:
        running.prepared.targets.check(PRIVATE)
    except Invalid:
        return True
    return False


async def test_a_key_made_at_one_node_closes_all_within_a_beat(postgres_url, tmp_path):
    async with (
        assembled(settings(postgres_url, tmp_path, roles=("api",))) as front,
        assembled(settings(postgres_url, tmp_path, roles=("executor",))) as executor,
        assembled(settings(postgres_url, tmp_path, roles=("api",), port=8001)) as other,
    ):
        nodes = (front, executor, other)
        await until(lambda: all(running.node.ready for running in nodes), "they beat")
        assert not any(refused(running) for running in nodes)
        assert await other.service.is_open()
        key = await front.service.create_key(ApiKeySpec(name="a"))
        assert refused(front), "at once where it was made"
        await until(lambda: refused(executor) and refused(other), "the others heard of it", within=5)
        assert not await other.service.is_open(), "without waiting for what was believed before"
        await front.service.revoke_key(1, key.info.id)
        assert refused(front)
        assert not await front.service.is_open()


async def test_an_executor_calls_nothing_private_once_there_is_a_key(postgres_url, cluster, receiver):
    """It has no API of its own, and serves every tenant."""
    front = cluster.start("--store", postgres_url, "--roles", "api")
    await front.ready()
    await cluster.executors(1, front, "--store", postgres_url)
    job = await post(
        front,
        "/v1/jobs",
        {
            "schedule": {"every": "1s"},
            "target": {"type": "webhook", "url": receiver.url},
            "policy": {"retry": {"attempts": 1}},
        },
    )
    await receiver.wait_for(2, timeout=20)
    made = await post(front, "/v1/keys", {"name": "first", "scope": "admin"})
    by_key = {"authorization": f"Bearer {made['key']}"}
    assert await alive(front) == {}, "nobody is shown anything without the key"

    async def failed() -> list[str]:
        status, page = await ask(front, "GET", f"/v1/jobs/{job['id']}/runs?status=FAILED", headers=by_key)
        assert status == 200, page
        return [run["error"] for run in page["items"]]

    errors = await until(failed, "a run is refused")
    heard = len(receiver.received)
    assert "127.0.0.1 is a loopback or private address" in errors[0]
    assert "EGRESS_ALLOW" in errors[0]
    await until(lambda: failed_more(failed, len(errors) + 1), "the next too")
    assert len(receiver.received) == heard

    status, problem = await ask(
        front,
        "POST",
        "/v1/jobs",
        {"schedule": {"in": "1h"}, "target": {"type": "webhook", "url": "http://10.0.0.1/"}},
        headers=by_key,
    )
    assert status == 422, problem
    assert problem["errors"][0]["path"] == "target.url"
    assert "EGRESS_ALLOW" in problem["errors"][0]["message"] + problem["errors"][0]["accepted"]


async def failed_more(failed, count: int) -> bool:
    return len(await failed()) >= count
