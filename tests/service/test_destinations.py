"""Destinations as the service tells them: what all nodes say, what waits, and nothing of another tenant."""

from __future__ import annotations

import random

import pytest

from onthedot.errors import NotFound
from onthedot.model.destination import DestinationLoad
from onthedot.model.node import NodeLoad
from onthedot.model.run import Outcome
from onthedot.model.targets import WebhookTarget
from onthedot.plan import on_outcome
from onthedot.service.destinations import destination_views
from onthedot.store import DestinationCount, Finished, TurnedAway
from tests.service.conftest import TENANT, spec
from tests.service.test_cluster import node

A, B, OTHERS = "webhook@https://a.example", "webhook@https://b.example", "webhook@#2/https://c.example"


def test_nodes_are_joined_and_the_worst_breaker_counts():
    told = {
        "n1": [DestinationLoad(requires=A, in_flight=2, failures=1), DestinationLoad(requires=B, in_flight=9)],
        "n2": [
            DestinationLoad(
                requires=A, breaker="open", failures=11, since=1_700_000_000_000, next_probe=1_700_000_010_000
            )
        ],
        "n3": [DestinationLoad(requires=A, breaker="half_open", in_flight=1, failures=10, since=1_700_000_005_000)],
    }
    counts = [DestinationCount(requires=A, waiting=4, since=1_700_000_001_000)]
    first, second = destination_views(told.items(), counts)
    assert (first.destination, first.kind, first.breaker) == ("https://a.example", "webhook", "open")
    assert (first.in_flight, first.failures, first.waiting) == (3, 11, 4)
    assert (first.since, first.waiting_since) == ("2023-11-14T22:13:20.000Z", "2023-11-14T22:13:21.000Z")
    assert [(each.node, each.breaker) for each in first.nodes] == [
        ("n1", "closed"),
        ("n2", "open"),
        ("n3", "half_open"),
    ]
    assert first.next_probe == "2023-11-14T22:13:30.000Z", "by the first node that may send one"
    assert [each.next_probe for each in first.nodes] == [None, first.next_probe, None]
    assert second.next_probe is None
    assert (second.destination, second.breaker, second.since) == ("https://b.example", "closed", None)


def test_what_only_waits_is_there_too():
    (view,) = destination_views([], [DestinationCount(requires="queue:orders@orders", waiting=1, since=None)])
    assert (view.destination, view.kind, view.breaker, view.waiting) == ("orders", "queue", "closed", 1)
    assert destination_views([], [DestinationCount(requires=A, waiting=0, since=None)]) == []


async def test_a_tenant_sees_its_own(service, store):
    await store.register(node("n1", "executor"))
    told = [DestinationLoad(requires=A, in_flight=1), DestinationLoad(requires=OTHERS, breaker="open", failures=10)]
    await store.beat("n1", NodeLoad(destinations=told))
    assert [view.destination for view in await service.list_destinations(TENANT)] == ["https://a.example"]
    assert [view.destination for view in await service.list_destinations(2)] == ["https://c.example"]
    assert await service.open_breakers() == {"open": 1}


async def test_one_of_them_over_all_labels_with_its_jobs_and_their_failures(service, store, monkeypatch):
    monkeypatch.setattr(service.targets, "destination", lambda target: target.url.rpartition("/")[0], raising=False)
    near = await service.create_job(TENANT, spec(key="near", target=WebhookTarget(url="https://a.example/x")))
    far = await service.create_job(TENANT, spec(key="far", target=WebhookTarget(url="https://a.example.org/x")))
    failed, other = [await service.run_job(TENANT, job.id) for job in (near, far)]
    await store.register(node("n1", "executor"))
    runs = (await store.claim("n1", offers=["webhook"], level=9, limit=9, lookahead_ms=0)).runs
    gone = Outcome(kind="error", error="HTTP 500")
    now = await store.now()
    ended = [
        Finished(
            run=run,
            outcome=gone,
            decision=on_outcome(run, gone, now, random.Random(1)),
            started_at=now,
            finished_at=now,
        )
        for run in runs
    ]
    assert (await store.finish("n1", ended)).recorded == 2
    idle = await service.get_destination(TENANT, "https://a.example")
    assert (idle.breaker, idle.nodes, idle.per_second, idle.kind) == ("closed", [], None, "webhook")
    assert [(job.id, job.key, job.last_status) for job in idle.jobs] == [(near.id, "near", "FAILED")]
    assert [run.id for run in idle.failed_runs] == [failed.id], f"and not {other.id}"
    told = [
        DestinationLoad(requires=A, in_flight=2, per_second=1.5, p99=10, calls=3, p50=4),
        DestinationLoad(requires="webhook+eu@https://a.example", breaker="open", failures=12, per_second=0.2, p99=30),
    ]
    await store.beat("n1", NodeLoad(destinations=told))
    found = await service.get_destination(TENANT, "https://a.example")
    assert (found.breaker, found.failures, found.in_flight, found.per_second, found.p99_ms) == ("open", 12, 2, 1.7, 30)
    assert [(each.breaker, each.per_second, each.p99_ms) for each in found.nodes] == [
        ("open", 0.2, 30),
        ("closed", 1.5, 10),
    ]
    for tenant, name in ((2, "https://a.example"), (TENANT, "https://nobody.example"), (TENANT, "x" * 5000)):
        with pytest.raises(NotFound):
            await service.get_destination(tenant, name)


async def test_what_waits_in_the_store_is_counted(service, store):
    view = await service.create_job(TENANT, spec())
    run = await service.run_job(TENANT, view.id)
    (claimed,) = [
        run
        for run in (await store.claim("n1", offers=["webhook"], level=9, limit=9, lookahead_ms=2000)).runs
        if run.kind == "manual"
    ]
    away = TurnedAway(run_id=claimed.id, token=claimed.token, version=claimed.version, requires=A)
    await store.wait_for_destinations("n1", [away])
    (found,) = await service.list_destinations(TENANT)
    assert (found.destination, found.waiting, found.nodes) == ("https://a.example", 1, [])
    shown = await service.get_run(TENANT, run.id)
    assert (shown.waiting, shown.waiting_for) == ("destination", "https://a.example")
    assert await service.list_destinations(2) == []
