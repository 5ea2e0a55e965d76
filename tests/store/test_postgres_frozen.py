"""A node that freezes between two statements of a transaction must not hold its locks for as long as it is frozen."""

from __future__ import annotations

import asyncio
import time

import pytest

from onthedot.errors import StoreUnavailable
from onthedot.store import open_store
from onthedot.store.driver import Transaction
from onthedot.store.postgres.driver import IDLE
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
