"""What a frozen node has locked: it can't be woken, so the server must let go of it, or it must not come to that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import asyncpg
import pytest

from onthedot.store import open_driver
from onthedot.store.driver import Driver, Transaction

LOCK = "UPDATE meta SET name = name"


@pytest.fixture
async def driver(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Driver]:
    monkeypatch.setattr("onthedot.store.postgres.limits.LONGEST", 600)
    opened = await open_driver(postgres_url + "?timeout=0.1")
    yield opened
    await opened.close()


async def test_a_lock_is_let_go_of_between_preparing_and_executing(driver: Any, postgres_url: str) -> None:
    """There the transaction does not count as idle."""
    other = await asyncpg.connect(postgres_url)
    try:
        async with driver._connections.use() as frozen:
            await frozen.execute(f"BEGIN; {LOCK}")
            await frozen.prepare("SELECT 1")
            state = "SELECT state FROM pg_stat_activity WHERE pid = $1"
            assert await other.fetchval(state, frozen.get_server_pid()) == "active"
            await asyncio.wait_for(other.execute(LOCK), 5)
    finally:
        await other.close()


class Verb:
    async def write(self, tx: Transaction) -> int:
        await tx.sql("SELECT $1::int", 1)
        return await tx.execute("leave", "nobody")


async def _plain(_: int, tx: Transaction) -> int:
    await tx.row("now")
    return await tx.execute("leave", "nobody")


@pytest.mark.parametrize("make", [lambda: Verb().write, lambda: partial(_plain, 1)], ids=["method", "partial"])
async def test_on_a_new_connection_all_is_prepared_before_it_begins(
    driver: Any, monkeypatch: pytest.MonkeyPatch, make: Any
) -> None:
    inside: list[str] = []
    prepare = asyncpg.Connection._get_statement  # type: ignore[attr-defined]  # not in the stubs

    async def noted(self: Any, query: str, *args: Any, **kwargs: Any) -> Any:
        known = self._stmt_cache.has((query, self._protocol.get_record_class(), False))
        if not known and self.is_in_transaction():
            inside.append(query)
        return await prepare(self, query, *args, **kwargs)

    monkeypatch.setattr(asyncpg.Connection, "_get_statement", noted)
    await driver.transact(make())
    assert len(inside) == 2, "the first time nobody knows"
    driver._connections._drop_all(next(iter(driver._connections._kept)))
    inside.clear()
    await driver.transact(make())
    await driver.transact(make())
    assert inside == []


async def test_a_script_may_take_longer(driver: Driver) -> None:
    """Than a call, and than any other transaction."""
    await driver.transact(lambda tx: tx.script("SELECT pg_sleep(0.8)"))
    assert await driver.transact(lambda tx: tx.row("now")) is not None
