"""Two nodes that find the same at the same moment: one incident, and one message to each channel.

On PostgreSQL statement by statement, in every order with at most two switches. A file of SQLite is open in one process,
which has one writer: there it is two calls at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import pytest

from onthedot.model.alerts import AlertWay
from onthedot.model.incident import Trouble, job_subject
from onthedot.store import DueAlert, Store
from onthedot.store.alerts.incidents import ClosedIncident, close_incidents, open_incidents
from tests.store.conftest import START
from tests.store.hands import Hands, node_info
from tests.store.stepping import Action, Stage, stage_of

Play = tuple[Stage, Store, asyncpg.Connection]
TABLES = "incidents, alert_deliveries"


def trouble(at: int = START, **more: Any) -> Trouble:
    facts = {"tenant": 1, "subject": job_subject(7), "condition": "late", "reason": "not started", "cause": "late"}
    ways = [AlertWay(channel=channel, recovered=True) for channel in ("ops", "pager")]
    return Trouble(**{**facts, "at": at, "job_id": 7, "ways": ways, "occurrence": "7-1", **more})


def find(*troubles: Trouble) -> Action:
    return lambda store: store.driver.transact_slow(lambda tx: open_incidents(tx, troubles))


def close(incident: int, at: int) -> Action:
    over = [ClosedIncident(id=incident, at=at)]
    return lambda store: store.driver.transact_slow(lambda tx: close_incidents(tx, over))


@pytest.fixture
async def play(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Play]:
    async with stage_of(postgres_url, monkeypatch) as (stage, store, watcher):
        for node in ("n1", "n2"):
            await store.register(node_info(node))
        yield stage, store, watcher


async def explore(
    play: Play, one: Callable[[], Action], other: Callable[[], Action], given: Action, expected: list[str]
) -> None:
    """Whatever the order: this is what was told, and one incident is open at most."""
    stage, store, watcher = play

    async def before() -> None:
        await watcher.execute(f"TRUNCATE {TABLES} RESTART IDENTITY")
        await given(store)

    async def after() -> None:
        for actor in stage.actors:
            assert not isinstance(actor.result, Exception), actor.result
        told = await watcher.fetch("SELECT event, channel FROM alert_deliveries ORDER BY event, channel, id")
        assert [f"{row['event']} {row['channel']}" for row in told] == expected
        assert await watcher.fetchval("SELECT count(*) FROM incidents") == 1

    assert await stage.explore(lambda: (one(), other()), before=before, after=after) > 4


async def nothing(store: Store) -> None:
    """Nothing was there before."""


OPENED = ["opened ops", "opened pager"]
CLOSED = [*OPENED, "recovered ops", "recovered pager"]


@pytest.mark.parametrize("occurrence", ["7-1", "7-2"])
async def test_two_nodes_find_the_same(play: Play, occurrence: str):
    """At the same run, or at one run each."""
    one, other = find(trouble()), find(trouble(START + 1, occurrence=occurrence))
    await explore(play, lambda: one, lambda: other, nothing, OPENED)


async def test_two_nodes_find_two_troubles_in_different_order(play: Play):
    """Neither waits for what the other one has while that waits for it."""
    first, second = trouble(), trouble(condition="failed")
    stage, _, watcher = play

    async def before() -> None:
        await watcher.execute(f"TRUNCATE {TABLES} RESTART IDENTITY")

    async def after() -> None:
        for actor in stage.actors:
            assert not isinstance(actor.result, Exception), actor.result
        assert await watcher.fetchval("SELECT count(*) FROM incidents") == 2
        assert await watcher.fetchval("SELECT count(*) FROM alert_deliveries") == 4

    actions = find(first, second), find(second, first)
    assert await stage.explore(lambda: actions, before=before, after=after) > 4


async def test_two_nodes_see_that_it_is_over(play: Play):
    await explore(play, lambda: close(1, START + 5), lambda: close(1, START + 6), find(trouble()), CLOSED)


async def test_one_node_finds_what_another_one_sees_is_over(play: Play):
    """It came about before that: whoever is first, it is over, and not told anew."""
    again = find(trouble(START + 3, occurrence="7-2"))
    await explore(play, lambda: close(1, START + 5), lambda: again, find(trouble()), CLOSED)


async def test_two_nodes_take_the_messages(play: Play):
    stage, store, watcher = play

    def take(node: str) -> Action:
        return lambda store: store.take_alerts(node, "ops")

    async def before() -> None:
        await watcher.execute(f"TRUNCATE {TABLES} RESTART IDENTITY")
        for number in range(3):
            await find(trouble(subject=job_subject(number), job_id=number))(store)

    async def after() -> None:
        taken: list[DueAlert] = [each for actor in stage.actors for each in actor.result[0]]
        assert sorted(each.job_id or 0 for each in taken) == [0, 1, 2]

    assert await stage.explore(lambda: (take("n1"), take("n2")), before=before, after=after) > 2


async def test_two_at_once_in_one_process(store: Store):
    """All that there can be on SQLite."""
    for node in ("n1", "n2"):
        await store.register(node_info(node))
    for number in range(20):
        found = find(trouble(await store.now(), subject=job_subject(number), job_id=number))
        results = await asyncio.gather(found(store), found(store))
        assert sorted(len(opened) for opened in results) == [0, 1]
    taken = await asyncio.gather(*(store.take_alerts(node, "ops") for node in ("n1", "n2")))
    assert sorted(each.job_id or 0 for alerts, _ in taken for each in alerts) == list(range(20))
    (row,) = await Hands(store).sql("SELECT count(*) AS n FROM alert_deliveries")
    assert row["n"] == 40
