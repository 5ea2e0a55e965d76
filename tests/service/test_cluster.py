"""How the whole is, as the service tells it."""

from __future__ import annotations

from onthedot.errors import StoreUnavailable
from onthedot.model.node import NodeInfo
from tests.service.conftest import TENANT, spec


def node(node_id: str, *roles: str) -> NodeInfo:
    return NodeInfo(
        id=node_id,
        name="here",
        host="here",
        pid=1,
        version="0",
        level=1,
        roles=list(roles),
        offers=["webhook"],
        capacity=1,
    )


async def test_health_counts_who_can_run_things(service, store):
    assert (await service.health()).executors == 0
    await store.register(node("n1", "api", "executor"))
    await store.register(node("n2", "api"))
    health = await service.health()
    assert (health.ok, health.store, health.executors) == (True, "sqlite", 1)
    assert {item.id for item in await service.list_nodes()} == {"n1", "n2"}


async def test_a_store_that_is_away_is_not_healthy(service, store, monkeypatch):
    async def away(*_: object) -> None:
        raise StoreUnavailable("no route to host")

    monkeypatch.setattr(store, "list_nodes", away)
    monkeypatch.setattr(store, "now", away)
    health = await service.health()
    assert (health.ok, health.error) == (False, "no route to host")


async def test_ping_is_quiet_when_all_is_well(service):
    assert await service.ping() is None


async def test_stats_and_backlog_have_numbers(service):
    await service.create_job(TENANT, spec())
    assert await service.stats(TENANT)
    backlog = await service.backlog()
    assert (backlog.due, backlog.running, backlog.unoffered) == (0, 0, {})


async def test_close_can_be_called_twice(service):
    await service.close()
    assert await service.close() is None
