"""Any order of verbs, claims and finishes keeps the store's promises, and means the same on both databases.

A walk is drawn from its seed alone. After each step the invariants are looked at; at the end both stores must hold the
same jobs, runs and ledger, to the last column (P8).
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import islice
from typing import Any

import pytest

from onthedot.clock import FakeClock
from onthedot.errors import Conflict, Invalid, NotFound
from onthedot.model.job import JobView
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.plan import coming
from onthedot.store import Store, open_store
from onthedot.store.runs.look import Floor
from tests.store.conftest import START, Times
from tests.store.given import create, fetch, spec
from tests.store.hands import FAILED, OK, Hands, node_info

SCHEDULES: list[dict[str, Any]] = [
    {"every": "7s"},
    {"every": "1m"},
    {"every": "13s", "count": 4},
    {"in": "5s"},
    {"in": "40s"},
    {"cron": "* * * * *"},
    {"cron": "*/15 * * * * *"},
]
POLICIES: list[dict[str, Any]] = [
    {},
    {"overlap": "skip"},
    {"overlap": "queue"},
    {"catch_up": "all", "catch_up_limit": 5},
    {"catch_up": "skip"},
    {"jitter": "3s"},
    {"delivery": "at_most_once"},
    {"retry": {"attempts": 2, "backoff": "3s", "factor": 1}},
]


MORE = (("job_versions", "job_id, version"), ("deleted_jobs", "id"))


class Walk:
    def __init__(self, store: Store, times: Times, seed: int) -> None:
        self.store = store
        self.times = times
        self.random = random.Random(seed)
        self.hands = Hands(store)
        self.jobs: list[JobView] = []
        self.deleted: list[JobView] = []
        self.skipped: list[tuple[JobView, int]] = []
        self.held: dict[str, ClaimedRun] = {}

    async def go(self, steps: int) -> None:
        await self.store.register(node_info(self.hands.node))
        verbs: list[tuple[int, Callable[[], Awaitable[object]]]] = [
            (3, self.create),
            (4, self.edit),
            (2, self.pause),
            (3, self.resume),
            (1, self.delete),
            (1, self.undelete),
            (3, self.skip),
            (2, self.unskip),
            (1, self.cancel),
            (1, self.manual),
            (1, self.backfill),
            (6, self.wait),
            (8, self.claim),
            (6, self.finish),
            (3, self.obey),
        ]
        weights = [weight for weight, _ in verbs]
        for _ in range(steps):
            ((_, verb),) = self.random.choices(verbs, weights)
            await verb()
            await self.hands.check()

    def _fields(self) -> dict[str, Any]:
        return {
            "schedule": self.random.choice(SCHEDULES),
            "policy": self.random.choice(POLICIES),
            "paused": self.random.random() < 0.1,
            "tags": self.random.sample(["a", "b", "c"], self.random.randrange(3)),
        }

    def _some(self) -> JobView | None:
        return self.random.choice(self.jobs) if self.jobs else None

    async def create(self) -> None:
        if len(self.jobs) < 6:
            self.jobs.append(await create(self.store, **self._fields()))

    async def edit(self) -> None:
        fields = self._fields()
        if job := self._some():
            before = await self.store.get_record(1, job.id)
            after = await self.store.update_job(1, job.id, lambda _: spec(**fields))
            assert after.version == before.version + (before.spec != spec(**fields))

    async def pause(self) -> None:
        if job := self._some():
            assert (await self.store.pause_job(1, job.id)).state != "active"

    async def resume(self) -> None:
        if job := self._some():
            assert (await self.store.resume_job(1, job.id)).state != "paused"

    async def delete(self) -> None:
        if job := self._some():
            await self.store.delete_job(1, job.id)
            self.jobs.remove(job)
            self.deleted.append(job)

    async def undelete(self) -> None:
        """Those that are too old, and those whose time has come, are all the same to a walk: they come back or not."""
        if self.deleted:
            job = self.deleted.pop(self.random.randrange(len(self.deleted)))
            with suppress(NotFound):
                self.jobs.append(await self.store.undelete_job(1, job.id))

    async def skip(self) -> None:
        """Any of its next slots; what is not possible changes nothing."""
        if job := self._some():
            ahead = await self.store.job_ahead(1, job.id)
            slots = list(islice(coming(ahead.record, ahead.cursor_slot, ahead.now, ahead.taken), 5))
            if slots:
                slot = self.random.choice(slots)
                with suppress(Conflict, Invalid):
                    await self.store.skip_slot(1, job.id, slot)
                    self.skipped.append((job, slot))

    async def unskip(self) -> None:
        if self.skipped:
            job, slot = self.skipped.pop(self.random.randrange(len(self.skipped)))
            with suppress(NotFound, Conflict):
                await self.store.unskip_slot(1, job.id, slot)

    async def cancel(self) -> None:
        if job := self._some():
            ahead = await self.store.job_ahead(1, job.id)
            if ahead.cursor_slot is not None and ahead.record.state != "quarantined":
                await self.store.cancel_run(1, f"{job.id}-{ahead.cursor_slot}")

    async def manual(self) -> None:
        if job := self._some():
            await self.store.run_job(1, job.id)

    async def backfill(self) -> None:
        if job := self._some():
            await self.store.backfill_job(1, job.id, start=self.times.now - 30_000, end=self.times.now)

    async def wait(self) -> None:
        """Odd amounts: of two runs that are ready in the same millisecond either may be claimed first."""
        await self.times.advance(self.random.choice([0, 500, 2_000, 5_000, 20_000, 90_000]) + self.random.randrange(97))

    async def claim(self) -> None:
        for run in (await self.hands.claim(self.random.choice([1, 3, 100]))).runs:
            self.held[run.id] = run

    async def finish(self) -> None:
        """What is due ends, one way or another."""
        due = sorted((run for run in self.held.values() if run.due_at <= self.times.now), key=lambda run: run.id)
        await self.store.begin(self.hands.node, [(run.id, run.token) for run in due])
        for run in due:
            outcome: Outcome = self.random.choice([OK, OK, FAILED])
            await self.hands.finish(run, outcome=outcome)
            del self.held[run.id]

    async def obey(self) -> None:
        orders = [order for order in (await self.store.poll_orders(self.hands.node)).orders if order.what == "recall"]
        await self.store.give_back(self.hands.node, sorted((order.run_id, order.token) for order in orders))
        for order in orders:
            self.held.pop(order.run_id, None)

    async def everything(self) -> dict[str, list[dict[str, Any]]]:
        """All that is kept, as plain values."""
        found = {}
        for table, order in (("jobs", "id"), ("runs", "id"), ("history", "id"), ("job_tags", "job_id, tag"), *MORE):
            rows = await fetch(self.store, f"SELECT * FROM {table} ORDER BY {order}")
            found[table] = [{name: _plain(value) for name, value in row.items()} for row in rows]
        return found


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


async def _walk_in_memory(seed: int, steps: int) -> dict[str, list[dict[str, Any]]]:
    clock = FakeClock()
    store = await open_store("sqlite:///:memory:", clock=clock, threads=False)
    times = Times(store, clock)
    await times.set(START)
    try:
        walk = Walk(store, times, seed)
        await walk.go(steps)
        return await walk.everything()
    finally:
        await store.close()


async def test_a_job_made_one_off_whose_only_slot_is_skipped_has_ended(store: Store, times: Times) -> None:
    """Found by a walk: the old schedule's run still held the lane, and the job stayed active without any run. It ends
    with that run."""
    hands = Hands(store)
    job = await create(store, schedule={"every": "10s"}, policy={"overlap": "skip"})
    await times.advance(10_000)
    running = await hands.one()
    await store.update_job(1, job.id, lambda _: spec(schedule={"in": "5s"}, policy={"overlap": "skip"}))
    await times.advance(5_000)
    assert (await hands.claim()).runs == []
    assert (await store.get_job(1, job.id)).state == "active"
    await hands.finish(running)
    assert (await store.get_job(1, job.id)).state == "ended"
    await hands.check()
    assert [row["status"] for row in await hands.ledger(job.id)] == ["done", "skipped"]


@pytest.mark.parametrize("seed", range(12))
async def test_any_order_keeps_the_promises(seed: int) -> None:
    found = await _walk_in_memory(seed, 150)
    assert found["history"], "nothing happened"


@pytest.mark.parametrize("seed", [101, 102])
async def test_the_same_walk_ends_the_same_on_each_store(
    store: Store, times: Times, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Floor, "GAP", 0.0)  # a claim's floor goes by real seconds, and a walk has none
    walk = Walk(store, times, seed)
    await walk.go(60)
    here, there = await walk.everything(), await _walk_in_memory(seed, 60)
    for table, rows in there.items():
        assert here[table] == rows, table
