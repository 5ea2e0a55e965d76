"""A node that freezes inside a transaction must not hold its locks for as long as it is frozen."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from onthedot import telemetry
from onthedot.errors import StoreUnavailable
from onthedot.model.node import NodeInfo
from onthedot.store import open_store
from onthedot.store.driver import Transaction
from onthedot.store.postgres.driver import IDLE
from onthedot.store.postgres.limits import HUNG_UP
from tests.services.waiting import until
from tests.store.given import create


@pytest.mark.parametrize("option", ["", "?pooler=transaction"])
async def test_the_locks_of_a_frozen_node_are_let_go(postgres_url: str, option: str) -> None:
    """Found by chaos: with a node stopped inside a finish, the others recorded nothing for 20 seconds."""
    frozen = await open_store(postgres_url + option)
    other = await open_store(postgres_url)
    job = await create(other)
    locked, thawed = asyncio.Event(), asyncio.Event()

    async def freezes(tx: Transaction) -> None:
        await tx.sql("SELECT 1 FROM jobs WHERE id = $1 FOR UPDATE", job.id)
        locked.set()
        await thawed.wait()
        await tx.now()

    freezing = asyncio.create_task(frozen.driver.transact_slow(freezes))
    await locked.wait()
    began = time.monotonic()
    paused = await other.pause_job(1, job.id)
    assert paused.state == "paused"
    assert time.monotonic() - began < IDLE / 1000 + 3
    thawed.set()
    with pytest.raises(StoreUnavailable):
        await freezing
    assert await frozen.now() > 0
    await frozen.close()
    await other.close()


LOCK = "UPDATE meta SET name = name"


async def _inside_copy(connection: Any, locked: asyncio.Event, thawed: asyncio.Event) -> None:
    async def rows() -> AsyncIterator[tuple[str, str, int]]:
        yield ("a", "a", 1)
        locked.set()
        await thawed.wait()

    columns = ["id", "name", "seen_at"]
    await connection.copy_records_to_table("node_names", columns=columns, records=rows(), timeout=60)


async def _before_executing(connection: Any, locked: asyncio.Event, thawed: asyncio.Event) -> None:
    statement = await connection.prepare("SELECT 1")
    locked.set()
    await thawed.wait()
    await statement.fetch()


@pytest.mark.parametrize("option", ["", "?pooler=transaction", "?application_name=reports+" + "x" * 60])
@pytest.mark.parametrize("freeze", [_inside_copy, _before_executing])
async def test_whoever_declares_a_node_lost_ends_its_transactions(
    postgres_url: str, option: str, freeze: Callable[[Any, asyncio.Event, asyncio.Event], Awaitable[None]]
) -> None:
    """The server does not call these idle: it would wait for as long as the node is frozen."""
    frozen = await open_store(postgres_url + option)
    other = await open_store(postgres_url)
    watching = await asyncpg.connect(postgres_url)
    locked, thawed = asyncio.Event(), asyncio.Event()

    async def freezes(tx: Transaction) -> None:
        connection = tx.connection  # type: ignore[attr-defined]
        await connection.execute(LOCK)
        await freeze(connection, locked, thawed)

    await other.register(_node("frozen", os.getpid()))
    await other.register(_node("one with a longer number", int(f"9{os.getpid()}")))
    freezing = asyncio.create_task(frozen.driver.transact_slow(freezes))
    await locked.wait()
    waiting = asyncio.create_task(watching.execute(LOCK))
    old = "SELECT count(*) FROM pg_stat_activity WHERE xact_start < clock_timestamp() - interval '1 s'"

    async def is_old() -> bool:
        (row,) = await other.driver.transact_slow(lambda tx: tx.sql(old))
        return bool(row["count"])

    await until(is_old, "the transaction is a second old")

    assert await other.declare_lost("one with a longer number", 0)
    assert not await other.declare_lost("frozen", 7), "its beat has moved on"
    assert not waiting.done()
    assert await other.declare_lost("frozen", 0)
    await asyncio.wait_for(waiting, 5)
    thawed.set()
    with pytest.raises(StoreUnavailable):
        await freezing
    assert await frozen.now() > 0, "it goes on over a new connection"
    await watching.close()
    await frozen.close()
    await other.close()


@pytest.mark.parametrize("option", ["", "?pooler=transaction"])
async def test_a_transaction_whose_client_has_hung_up_does_not_wait_on(postgres_url: str, option: str) -> None:
    """Found by chaos: nodes gave up what waited for a lock, asked again, and waited behind what they had given up."""
    hasty = await open_store(postgres_url + option)
    holder = await asyncpg.connect(postgres_url)
    job = await create(hasty)
    await holder.execute("BEGIN; LOCK TABLE meta")

    async def waits(tx: Transaction) -> None:
        connection = tx.connection  # type: ignore[attr-defined]
        asyncio.get_running_loop().call_later(0.2, connection.terminate)
        await tx.sql("SELECT 1 FROM jobs WHERE id = $1 FOR UPDATE", job.id)
        await tx.sql(LOCK)

    with pytest.raises(StoreUnavailable):
        await hasty.driver.transact_slow(waits)
    assert (await asyncio.wait_for(hasty.pause_job(1, job.id), HUNG_UP / 1000 + 3)).state == "paused"
    await holder.close()
    await hasty.close()


async def test_one_node_at_a_time_takes_the_runs_of_a_lost_one(postgres_url: str) -> None:
    """Found by chaos: all heard of them, each wrote them all, one after the other, and all that was to be recorded
    waited behind."""
    stores = [await open_store(postgres_url) for _ in range(5)]
    busy = stores[0]
    job = await create(busy, schedule={"every": "1h"})
    runs = [await busy.run_job(1, job.id) for _ in range(20)]
    await busy.register(_node("lost", 1))
    claimed = await busy.claim("lost", offers=["webhook"], level=9, limit=50, lookahead_ms=0)
    assert len(claimed.runs) == len(runs)
    assert await busy.declare_lost("lost", 0)

    at_it, done = asyncio.Event(), asyncio.Event()

    async def takes_turn(tx: Transaction) -> None:
        assert await tx.row("take_reclaim_turn") is not None
        at_it.set()
        await done.wait()

    turn = asyncio.create_task(busy.driver.transact_slow(takes_turn))
    await at_it.wait()
    assert await stores[1].reclaim() == 0, "nobody waits for the one who is at it"
    done.set()
    await turn
    events: list[str] = []
    stop = telemetry.subscribe(lambda event: events.append(event.name))
    found = await asyncio.gather(*(store.reclaim() for store in stores))
    stop()
    assert sum(found) == len(runs)
    assert events.count("run.lost") == len(runs)
    assert "run.refused" not in events
    for store in stores:
        await store.close()


def _node(name: str, pid: int) -> NodeInfo:
    return NodeInfo(
        id=name, name=name, host=socket.gethostname(), pid=pid, version="1", level=1, roles=[], offers=[], capacity=1
    )
