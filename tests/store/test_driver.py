"""What both drivers promise."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onthedot.store import Store
from onthedot.store.driver import Collision, Transaction
from onthedot.store.jobs.rows import ChangedJob, KeyOfJob, spec_columns
from onthedot.store.shapes import Rows
from tests.store.conftest import START, Times
from tests.store.given import create, spec


async def count(store: Store) -> int:
    async def body(tx: Transaction) -> int:
        return int((await tx.sql("SELECT count(*) AS n FROM idempotency"))[0]["n"])

    return await store.driver.read(body)


async def insert(tx: Transaction, key: str) -> None:
    await tx.sql(f"INSERT INTO idempotency VALUES (1, '{key}', '', '', 0)")


async def test_time_is_what_the_test_says(store: Store, times: Times) -> None:
    assert await store.now() == START
    await times.advance(1234)
    assert await store.now() == START + 1234


async def test_a_transaction_that_ends_is_kept(store: Store) -> None:
    await store.driver.transact_slow(lambda tx: insert(tx, "a"))
    assert await count(store) == 1


async def test_a_transaction_that_raises_leaves_nothing(store: Store) -> None:
    async def body(tx: Transaction) -> None:
        await insert(tx, "a")
        raise LookupError("stop")

    with pytest.raises(LookupError):
        await store.driver.transact_slow(body)
    assert await count(store) == 0


async def test_a_cancelled_transaction_leaves_nothing_and_blocks_nobody(store: Store) -> None:
    inserted = asyncio.Event()

    async def body(tx: Transaction) -> None:
        await insert(tx, "a")
        inserted.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(store.driver.transact_slow(body))
    await inserted.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await store.driver.transact_slow(lambda tx: insert(tx, "a"))
    assert await count(store) == 1


async def test_readers_do_not_see_what_is_not_committed(store: Store) -> None:
    async with store.driver.transaction() as tx:
        await insert(tx, "a")
        assert await count(store) == 0
    assert await count(store) == 1


async def test_numbers_are_given_once(store: Store) -> None:
    from onthedot.store.jobs.sequences import take_run_numbers

    first = await store.driver.transact_slow(lambda tx: take_run_numbers(tx, 3))
    second = await store.driver.transact_slow(lambda tx: take_run_numbers(tx, 2))
    assert await store.driver.transact_slow(lambda tx: take_run_numbers(tx, 0)) == []
    assert first == sorted(first)
    assert len(set(first + second)) == 5


def test_rows_go_column_by_column() -> None:
    assert Rows([KeyOfJob(1, "a"), KeyOfJob(2, "b")]).columns() == [[1, 2], ["a", "b"]]
    with pytest.raises(ValueError):
        Rows([])


async def test_what_is_done_at_once_is_kept_or_leaves_nothing(store: Store) -> None:
    async def body(tx: Transaction) -> str:
        await insert(tx, "a")
        return "done"

    assert await store.driver.transact(body) == "done"
    with pytest.raises(Collision):
        await store.driver.transact(body)

    async def stop(tx: Transaction) -> None:
        await insert(tx, "b")
        raise LookupError("stop")

    with pytest.raises(LookupError):
        await store.driver.transact(stop)
    assert await count(store) == 1


async def test_a_statement_alone_is_kept(store: Store) -> None:
    assert await store.driver.statement("note_endings", 1, [5], START) == []
    (row,) = await store.driver.statement("take_endings", 10)
    assert row["ended_at"] == START
    assert await store.driver.statement("any_endings") == []


async def test_a_statement_for_each_row(store: Store) -> None:
    job = await create(store)
    rest: dict[str, Any] = {"state": "active", "claimed_slot": None, "slots_used": 0, "paused_at": None, "reason": None}
    rest |= {"pause_note": None, "pause_until": None, "anchor_at": START, "updated_at": START}
    rows = [ChangedJob(**spec_columns(spec(name=name)), **rest) for name in ("a", "b")]
    assert await store.driver.transact(lambda tx: tx.execute_each("update_job", rows, 1, job.id)) == 2
    assert (await store.get_job(1, job.id)).name == "b"
