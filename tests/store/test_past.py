"""Whether a job's time has gone by is judged where it is written, by the database's clock: one answer under one key."""

from __future__ import annotations

import asyncio

import pytest

from onthedot.errors import Invalid
from onthedot.model.instant import format_instant
from onthedot.model.job import JobView
from onthedot.store import Idempotency, NewJob, Store
from onthedot.store.jobs.idempotency import claim_keys
from tests.services.waiting import until
from tests.store.conftest import START
from tests.store.given import create, fetch, new, spec

KEY = Idempotency("k", "2:f")


def at(ms: int) -> dict[str, str]:
    return {"at": format_instant(ms)}


async def made(store: Store) -> int:
    return len(await fetch(store, "SELECT id FROM jobs"))


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("schedule", [at(START), {"every": "1m", "end": format_instant(START)}])
async def test_what_is_past_when_it_is_written_is_refused(store, times, schedule, key):
    good = new(schedule={"in": "1h"})
    refused, made_beside = await store.create_jobs([new(idempotency=key, schedule=schedule), good])
    assert isinstance(refused, Invalid)
    assert isinstance(made_beside, JobView)
    assert await made(store) == 1
    assert await fetch(store, "SELECT key FROM idempotency") == []


async def test_a_repeat_after_its_time_is_answered_with_the_job(store, times):
    item = new(idempotency=KEY, schedule=at(START + 1000))
    (first,) = await store.create_jobs([item])
    await times.advance(2000)
    (again,) = await store.create_jobs([item])
    assert isinstance(first, JobView)
    assert isinstance(again, JobView)
    assert first.id == again.id
    assert await made(store) == 1


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)  # on SQLite nobody waits in a transaction
async def test_two_that_meet_under_one_key_get_one_answer(store, times):
    """One waits for the other with its key and looked at the clock before. The other finds it past and says so; the one
    that waited must not make it then."""
    item = new(idempotency=KEY, schedule=at(START + 1000))
    async with store.driver.transaction() as tx:
        await claim_keys(tx, [(1, KEY, "1")], START)
        waiting = asyncio.create_task(store.create_jobs([item]))

        async def waits() -> bool:
            return bool(await fetch(store, "SELECT 1 FROM pg_locks WHERE NOT granted"))

        await until(waits, "the second waits for the first")
        await times.advance(2000)
        await tx.execute("release_idempotency", *[[1], ["k"]])
    (answer,) = await waiting
    assert isinstance(answer, Invalid)
    assert await made(store) == 0


async def test_put_and_update_are_judged_where_they_are_written(store, times):
    job = await create(store, key="a")
    with pytest.raises(Invalid, match=r"schedule\.at"):
        await store.update_job(1, job.id, lambda _: spec(key="a", schedule=at(START)))
    for key in ("a", "b"):
        with pytest.raises(Invalid, match=r"schedule\.at"):
            await store.put_job(1, key, lambda _, key=key: spec(key=key, schedule=at(START)))
    assert (await store.get_job(1, job.id)).version == 1
    await store.update_job(1, job.id, lambda _: spec(key="a", schedule=at(START + 1)))
    await times.advance(5000)
    renamed = await store.update_job(1, job.id, lambda old: spec(key="a", name="b", schedule=at(START + 1)))
    assert renamed.name == "b"  # a schedule that was there before is no news


async def test_in_a_group_each_is_judged_by_itself(store, times):
    items = [NewJob(tenant=1, spec=spec(schedule=at(START + ms))) for ms in (-1, 0, 1)]
    answers = await store.create_jobs(items)
    assert [isinstance(answer, Invalid) for answer in answers] == [True, True, False]
