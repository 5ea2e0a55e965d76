"""A run that moves while somebody reads is found: between live and ended, pending and running, the next slot and the
one that runs, and between partitions of the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from onthedot.errors import NotFound
from onthedot.store import RunFilter, Store
from onthedot.store.cluster.partitions import make_ahead
from onthedot.store.postgres.transaction import PostgresTransaction
from onthedot.store.sqlite.connection import SqliteTransaction
from tests.services.waiting import until
from tests.store.conftest import START, Times
from tests.store.given import fetch
from tests.store.hands import Hands, at, every

Meanwhile = Callable[[str, Callable[[], Awaitable[object]]], None]


@pytest.fixture
def meanwhile(store: Store, monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """`meanwhile("get_ended", act)`: right before somebody asks that, for the first time, `act` happens."""

    def arrange(statement: str, act: Callable[[], Awaitable[object]]) -> None:
        kind: Any = PostgresTransaction if store.driver.dialect == "postgres" else SqliteTransaction
        for method in ("row", "rows"):
            asks = getattr(kind, method)

            async def ask(self: Any, name: str, *args: Any, asks: Any = asks) -> Any:
                if name == statement:
                    monkeypatch.undo()
                    await act()
                return await asks(self, name, *args)

            monkeypatch.setattr(kind, method, ask)

    return arrange


async def test_a_run_that_comes_back_from_the_ledger_is_found(store: Store, times: Times, meanwhile: Meanwhile):
    """It was cancelled with its job, which is undeleted between the look at what lives and the look at what ended."""
    hands = Hands(store)
    job_id = await hands.job(at(START + 60_000))
    run_id = f"{job_id}-{START + 60_000}"
    await store.delete_job(1, job_id)
    assert (await store.get_run(1, run_id)).status == "CANCELLED"
    meanwhile("get_ended", lambda: store.undelete_job(1, job_id))
    assert (await store.get_run(1, run_id)).id == run_id
    assert (await store.get_run(1, run_id)).status == "PENDING"
    with pytest.raises(NotFound):
        await store.get_run(1, f"{job_id}-{START}")


async def test_a_run_that_ends_meanwhile_is_found(store: Store, times: Times, meanwhile: Meanwhile):
    hands = Hands(store)
    await hands.job(at(START + 1000))
    await times.advance(1000)
    run = await hands.one()
    meanwhile("list_running", lambda: hands.finish(run))
    assert [each.id for each in (await store.list_runs(1, RunFilter())).items] == [run.id]
    assert (await store.get_run(1, run.id)).status == "DONE"


async def test_a_run_that_is_given_back_meanwhile_is_listed(store: Store, times: Times, meanwhile: Meanwhile):
    """Running when those that wait are read, waiting when those that run are read."""
    hands = Hands(store)
    await hands.job(at(START + 1000))
    await times.advance(1000)
    run = await hands.one()
    meanwhile("list_running", lambda: store.give_back("n1", [(run.id, run.token)]))
    assert [each.id for each in (await store.list_runs(1, RunFilter())).items] == [run.id]
    assert (await store.get_run(1, run.id)).status == "PENDING"


async def test_a_slot_that_is_claimed_meanwhile_is_explained(store: Store, times: Times, meanwhile: Meanwhile):
    """The next slot when those that run are read, a run when the next slot is read."""
    hands = Hands(store)
    job_id = await hands.job(every(10_000))
    slot = await times.advance(10_000)
    meanwhile("cursor_slot", hands.one)
    state, entries, _ = await store.slot_entries(1, job_id, START, slot, 100)
    assert slot in [state.cursor, *(each.slot for each in state.live)]
    assert entries == []
    assert (await store.slot_state(1, job_id)).cursor == slot + 10_000, "it was claimed"


async def _get_run(store: Store, run_id: str) -> list[str]:
    return [(await store.get_run(1, run_id)).id]


async def _list_runs(store: Store, run_id: str) -> list[str]:
    return [run.id for run in (await store.list_runs(1, RunFilter())).items]


async def _list_runs_of_job(store: Store, run_id: str) -> list[str]:
    return [run.id for run in (await store.list_runs(1, RunFilter(job_id=int(run_id.split("-")[0])))).items]


async def _recent_runs(store: Store, run_id: str) -> list[str]:
    job_id = int(run_id.split("-")[0])
    return [run.id for run in (await store.recent_runs(1, [job_id]))[job_id]]


@pytest.mark.parametrize("read", [_get_run, _list_runs, _list_runs_of_job, _recent_runs])
@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
async def test_a_run_whose_day_gets_its_partition_is_found(
    store: Store, times: Times, read: Callable[[Store, str], Awaitable[list[str]]]
):
    """The first node of an installation makes the partitions while its first runs end. A reader that had looked up the
    partitions and waited at the default one, until the rows had moved, found them in neither."""
    hands = Hands(store)
    await hands.job(at(START + 1000))
    await times.advance(1000)
    run = await hands.one()
    await hands.finish(run)
    assert await read(store, run.id) == [run.id]
    async with store.driver.transaction() as tx:
        assert await make_ahead(tx, await tx.now())
        reader = asyncio.ensure_future(read(store, run.id))

        async def waits() -> bool:
            return bool(await fetch(store, "SELECT 1 FROM pg_locks WHERE NOT granted"))

        await until(waits, "the reader waits for the move")
    assert await reader == [run.id]
