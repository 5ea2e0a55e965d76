"""A way to the database that has gone silent: what may be asked again is asked again soon, over another one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from onthedot.errors import StoreUnavailable
from onthedot.model.node import NodeLoad
from onthedot.store import Store, open_store
from onthedot.store.driver import Transaction
from onthedot.store.postgres.connections import PATIENCE
from proof.chaos.proxy import Door
from tests.services.postgres import PostgresServer


@pytest.fixture
async def door(postgres_server: PostgresServer) -> AsyncIterator[Door]:
    door = Door(postgres_server.port)
    yield door
    door.close()


@pytest.fixture
async def store(door: Door, postgres_url: str, postgres_server: PostgresServer) -> AsyncIterator[Store]:
    port = await door.serve()
    store = await open_store(postgres_url.replace(f":{postgres_server.port}/", f":{port}/"))
    yield store
    door.heal()
    await store.close()


async def given_up(call: asyncio.Task[object]) -> float:
    """After how many seconds."""
    began = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await call
    return time.monotonic() - began


async def test_hung_up_between_preparing_and_binding_it_is_away(store: Store):
    """asyncpg has no protocol left then, and says so by an AttributeError: a node ended by it."""

    async def body(tx: Transaction) -> object:
        await tx.now()
        tx.connection.terminate()  # type: ignore[attr-defined]
        return tx.connection._con._protocol.bind_execute  # type: ignore[attr-defined]

    with pytest.raises(StoreUnavailable):
        await store.driver.read(body)
    assert await store.now()


@pytest.mark.parametrize("way", ["up", "down"])
async def test_a_statement_that_gets_no_answer_is_given_up_and_asked_again_elsewhere(store: Store, door: Door, way):
    driver = store.driver
    await driver.statement("now", repeatable=True)
    door.silence(way)
    took = await given_up(asyncio.ensure_future(driver.statement("note_endings", 1, [5], 7, repeatable=True)))
    assert PATIENCE * 0.9 < took < 2 * PATIENCE
    again = asyncio.ensure_future(driver.statement("now", repeatable=True))
    door.heal()
    assert await asyncio.wait_for(again, PATIENCE)


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.poll_orders("n1"),
        lambda store: store.held("n1"),
        lambda store: store.reclaim(),
        lambda store: store.claim("n1", offers=["webhook"], level=1, limit=1, lookahead_ms=2000),
        lambda store: store.beat("n1", NodeLoad()),
    ],
    ids=["poll_orders", "held", "reclaim", "claim", "beat"],
)
async def test_so_is_what_a_node_asks_each_second(store: Store, door: Door, ask: Callable[[Store], Awaitable[object]]):
    await ask(store)
    door.silence("down")
    took = await given_up(asyncio.ensure_future(ask(store)))
    assert PATIENCE * 0.9 < took < 2 * PATIENCE


async def test_a_transaction_that_gets_no_answer_does_not_wait_for_its_rollback_either(store: Store, door: Door):
    async def body(tx: Transaction) -> None:
        await tx.execute("note_endings", 1, [5], 7)
        door.silence("up", "down")
        await tx.now()

    took = await given_up(asyncio.ensure_future(store.driver.transact(body, repeatable=True)))
    assert PATIENCE * 0.9 < took < 2 * PATIENCE
    door.heal()
    assert await store.driver.statement("take_endings", 10) == [], "nothing of it stays"


async def test_who_is_slow_gets_more_time_with_each_try(store: Store):
    """A database that takes longer than our patience for everything must get through with the same call in the end."""

    async def slow(tx: Transaction) -> bool:
        await tx.sql("SELECT pg_sleep($1)", PATIENCE * 1.3)
        return True

    driver = store.driver
    await given_up(asyncio.ensure_future(driver.transact(slow, repeatable=True)))
    assert await driver.transact(slow, repeatable=True)
    assert await driver.transact(slow, repeatable=True), "as long as it stays slow"
    await driver.statement("now", repeatable=True)
    await given_up(asyncio.ensure_future(driver.transact(slow, repeatable=True)))


async def test_what_must_not_be_repeated_is_waited_for(store: Store):
    async def slow(tx: Transaction) -> bool:
        await tx.sql("SELECT pg_sleep($1)", PATIENCE * 1.2)
        return True

    assert await store.driver.transact(slow)


async def test_the_second_host_is_found_within_a_lease_when_the_first_goes_silent(
    door: Door, postgres_url: str, postgres_server: PostgresServer
):
    """In the middle of the work, not only at the start: connections that were good hang, and so do new ones there."""
    port = await door.serve()
    ours = f"127.0.0.1:{postgres_server.port}"
    store = await open_store(postgres_url.replace(ours, f"127.0.0.1:{port},{ours}"))
    try:
        await store.driver.statement("now", repeatable=True)
        door.silence("up")
        began = time.monotonic()
        while True:
            try:
                await store.driver.statement("now", repeatable=True)
            except StoreUnavailable:
                assert time.monotonic() - began < 5
                continue
            break
        assert time.monotonic() - began < 5
        began = time.monotonic()
        await asyncio.gather(*(store.now() for _ in range(8)))
        assert time.monotonic() - began < PATIENCE, "the one that answered is asked first from now on"
    finally:
        door.heal()
        await store.close()
