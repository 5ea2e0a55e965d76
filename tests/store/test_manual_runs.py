"""Run now, and backfill."""

from __future__ import annotations

from typing import Any

import pytest

from onthedot.errors import Conflict, IdempotencyMismatch, Invalid, NotFound
from onthedot.model.instant import NEVER, format_instant
from onthedot.store import Idempotency, Store
from tests.store.conftest import START, Times
from tests.store.given import HOUR, create, cursor_of, execute, fetch, runs_of

LAST_HOUR = START - START % HOUR


class TestRunNow:
    async def test_beside_the_schedule(self, store: Store, times: Times) -> None:
        job = await create(store, key="k")
        before = await cursor_of(store, job)
        run = await store.run_job(1, job.id)
        assert (run.job_id, run.key, run.kind, run.status) == (job.id, "k", "manual", "PENDING")
        assert run.scheduled_for == run.due_at == format_instant(START)
        row = next(row for row in await runs_of(store, job) if row["id"] == run.id)
        assert run.id == f"{job.id}-{START}-m{row['n']}"
        assert (row["slot"], row["ready_at"], row["requires"], row["kind"]) == (START, START, "webhook", "manual")
        assert not row["cursor"]
        assert await cursor_of(store, job) == before
        assert (await store.get_job(1, job.id)).next_run == job.next_run

    async def test_twice_in_the_same_millisecond_is_two_runs(self, store: Store, times: Times) -> None:
        job = await create(store)
        assert (await store.run_job(1, job.id)).id != (await store.run_job(1, job.id)).id

    async def test_a_repeat_gets_the_first_answer(self, store: Store, times: Times) -> None:
        job = await create(store)
        once = Idempotency("k", "f")
        first = await store.run_job(1, job.id, idempotency=once)
        await times.advance(5)
        assert await store.run_job(1, job.id, idempotency=once) == first
        assert len(await runs_of(store, job)) == 2
        with pytest.raises(IdempotencyMismatch):
            await store.run_job(1, job.id, idempotency=Idempotency("k", "g"))

    async def test_of_an_ended_job(self, store: Store, times: Times) -> None:
        job = await create(store, schedule={"in": "1s"})
        await execute(store, "DELETE FROM runs")
        await execute(store, f"UPDATE jobs SET state = 'ended', ended_at = {START}")
        assert (await store.run_job(1, job.id)).status == "PENDING"

    async def test_not_of_a_quarantined_one(self, store: Store, times: Times) -> None:
        job = await create(store)
        await execute(store, "UPDATE jobs SET state = 'quarantined', reason = 'broken'")
        with pytest.raises(Conflict, match="broken"):
            await store.run_job(1, job.id)

    async def test_it_keeps_to_its_lane(self, store: Store, times: Times) -> None:
        job = await create(store, policy={"overlap": "queue"})
        run = await store.run_job(1, job.id)
        assert [row["lane"] for row in await runs_of(store, job) if row["id"] == run.id] == [job.id]


class TestBackfill:
    async def test_the_slots_before_the_cursor(self, store: Store, times: Times) -> None:
        job = await create(store)
        ids = await store.backfill_job(1, job.id, start=LAST_HOUR - 2 * HOUR, end=START + 9 * HOUR)
        rows = [row for row in await runs_of(store, job) if row["kind"] == "backfill"]
        assert [row["slot"] for row in rows] == [LAST_HOUR - 2 * HOUR, LAST_HOUR - HOUR, LAST_HOUR]
        assert [row["id"] for row in rows] == ids == [f"{job.id}-{row['slot']}-b{row['n']}" for row in rows]
        assert all(bool(row["backlog"]) for row in rows)
        assert [row["ready_at"] for row in rows] == [START, START + 1, START + 2], "they run in their order"
        assert {row["due_at"] for row in rows} == {START}

    async def test_what_was_done_or_waits_is_left_out(self, store: Store, times: Times) -> None:
        job = await create(store)
        first: dict[str, Any] = {"start": LAST_HOUR - 3 * HOUR, "end": LAST_HOUR}
        for slot, status in ((LAST_HOUR - 2 * HOUR, "done"), (LAST_HOUR - HOUR, "failed")):
            await execute(
                store,
                "INSERT INTO history (id, tenant, job_id, slot, kind, due_at, status, finished_at) "
                f"VALUES ('{job.id}-{slot}', 1, {job.id}, {slot}, 'scheduled', {slot}, '{status}', {slot})",
            )
        slots = [int(run_id.split("-")[1]) for run_id in await store.backfill_job(1, job.id, **first)]
        assert slots == [LAST_HOUR - 3 * HOUR, LAST_HOUR - HOUR, LAST_HOUR]
        assert await store.backfill_job(1, job.id, **first) == []
        assert len(await store.backfill_job(1, job.id, **first, force=True)) == 4

    async def test_not_more_than_the_limit(self, store: Store, times: Times) -> None:
        job = await create(store)
        with pytest.raises(Invalid, match="more than 3 slots") as caught:
            await store.backfill_job(1, job.id, start=LAST_HOUR - 9 * HOUR, end=LAST_HOUR, limit=3)
        assert caught.value.problems[0].path == "end"
        assert len(await runs_of(store, job)) == 1
        fits: dict[str, Any] = {"start": LAST_HOUR - 9 * HOUR, "end": LAST_HOUR - 7 * HOUR}
        assert len(await store.backfill_job(1, job.id, **fits, limit=3)) == 3

    async def test_of_a_paused_job_it_waits(self, store: Store, times: Times) -> None:
        job = await create(store, paused=True)
        (run_id,) = await store.backfill_job(1, job.id, start=LAST_HOUR, end=LAST_HOUR)
        (row,) = [row for row in await runs_of(store, job) if row["id"] == run_id]
        assert (row["parked"], row["ready_at"], row["resume_at"]) == ("paused", NEVER, START)

    async def test_nothing_to_do(self, store: Store, times: Times) -> None:
        job = await create(store)
        assert await store.backfill_job(1, job.id, start=START, end=START) == []
        assert await fetch(store, "SELECT id FROM runs WHERE kind = 'backfill'") == []
        with pytest.raises(NotFound):
            await store.backfill_job(1, 99, start=0, end=1)
