"""Who asked for a run: kept beside it for as long as the run itself, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from onthedot.model.actor import ChangeActor
from onthedot.model.bulk import BulkRequest
from onthedot.model.job import JobView
from onthedot.model.run import Outcome
from onthedot.store import NewJob, RunFilter, Store
from onthedot.store.abandoned_requests import ASKER
from tests.store.conftest import START, Times
from tests.store.given import HOURLY, create, fetch, spec
from tests.store.hands import OK, REFUSED, Hands

HOUR = 3_600_000


class Someone:
    """Who asks."""

    def __init__(self, name: str) -> None:
        self.name: str | None = name
        self.actor: ChangeActor | None = ChangeActor(kind="key", name=name, key_id=1)

    def check(self, *, late: bool = True) -> None: ...


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


@pytest.fixture
def anna() -> Iterator[Someone]:
    """Asks for everything in this test."""
    someone = Someone("anna")
    token = ASKER.set(someone)
    yield someone
    ASKER.reset(token)


async def work(hands: Hands, outcome: Outcome = OK) -> None:
    await hands.finish(*(await hands.claim()).runs, outcome=outcome)


async def told(store: Store, run_id: str) -> tuple[str, object]:
    trigger = (await store.get_run(1, run_id)).trigger
    return trigger.kind, trigger.actor


async def test_it_is_told_of_a_live_run_and_of_one_that_ended(hands, times, anna):
    job = await create(hands.store, schedule=HOURLY)
    run = await hands.store.run_job(1, job.id)
    assert (run.trigger.kind, run.trigger.actor) == ("manual", "anna")
    assert await told(hands.store, run.id) == ("manual", "anna")
    await work(hands)
    assert (await hands.store.get_run(1, run.id)).status == "DONE"
    assert await told(hands.store, run.id) == ("manual", "anna")
    listed = (await hands.store.list_runs(1, RunFilter(job_id=job.id))).items
    assert [each.trigger.actor for each in listed] == ["anna"]


async def test_what_the_schedule_fires_has_none(hands, times, anna):
    job = await create(hands.store, schedule=HOURLY)
    await times.advance(HOUR)
    await work(hands)
    for status in (None, "PENDING"):
        for run in (await hands.store.list_runs(1, RunFilter(job_id=job.id, status=status))).items:
            assert not isinstance(run.trigger.actor, str)
    assert await fetch(hands.store, "SELECT * FROM run_actors") == []


async def test_whoever_drives_it_again_is_told_of_the_new_run(hands, times, anna):
    job = await create(hands.store, schedule=HOURLY)
    run = await hands.store.run_job(1, job.id)
    await work(hands, REFUSED)
    ASKER.set(Someone("bob"))
    again = await hands.store.retry_run(1, run.id)
    assert (again.trigger.kind, again.trigger.run_id, again.trigger.actor) == ("retry", run.id, "bob")
    await work(hands, REFUSED)
    ASKER.set(Someone("carl"))
    (driven,) = await hands.store.redrive(1)
    assert await told(hands.store, driven) == ("retry", "carl")
    assert await told(hands.store, run.id) == ("manual", "anna")


async def test_a_backfill_tells_it_of_each_run(hands, times, anna):
    job = await create(hands.store, schedule=HOURLY)
    await times.advance(3 * HOUR)
    await work(hands)
    made = await hands.store.backfill_job(1, job.id, start=START, end=START + 3 * HOUR, force=True)
    assert len(made) >= 2
    assert {await told(hands.store, run) for run in made} == {("backfill", "anna")}


async def test_bulk_operations_do_it_in_the_name_of_who_started_them(hands, times, anna):
    job = await create(hands.store, schedule=HOURLY)
    await times.advance(3 * HOUR)
    await work(hands)
    await hands.store.start_operation(1, BulkRequest(verb="run", ids=[job.id]), actor="anna")
    span = {"start": "2023-11-14T00:00:00Z", "end": "2023-11-15T00:00:00Z", "force": True, "by_slot": True}
    await hands.store.start_operation(1, BulkRequest(verb="backfill", ids=[job.id], params=span), actor="anna")
    ASKER.set(None)  # a node works them off
    while await hands.store.work_off_operation("n"):
        pass
    runs = (await hands.store.list_runs(1, RunFilter(job_id=job.id, status="PENDING"))).items
    asked = {run.trigger.kind: run.trigger.actor for run in runs if run.kind != "scheduled"}
    assert asked == {"manual": "anna", "backfill": "anna"}


async def test_a_run_that_comes_with_its_job(store, times, anna):
    new = NewJob(tenant=1, spec=spec(schedule=HOURLY), run_now=True, asker=Someone("dora"))
    (job,) = await store.create_jobs([new])
    assert isinstance(job, JobView)
    put, _ = await store.put_job(1, "k", lambda old: spec(key="k", schedule=HOURLY), run_now=True)
    for job_id, name in ((job.id, "dora"), (put.id, "anna")):
        runs = (await store.list_runs(1, RunFilter(job_id=job_id))).items
        assert [(run.trigger.kind, run.trigger.actor) for run in runs] == [("manual", name)]


async def test_nobody_asked_for_what_this_process_does_by_itself(hands, times):
    job = await create(hands.store, schedule=HOURLY)
    run = await hands.store.run_job(1, job.id)
    assert not isinstance(run.trigger.actor, str)
    assert not isinstance((await hands.store.get_run(1, run.id)).trigger.actor, str)


async def test_it_goes_when_the_run_is_old(hands, times, anna):
    job = await create(hands.store, schedule=HOURLY)
    run, waits = [await hands.store.run_job(1, job.id) for _ in range(2)]
    await hands.store.cancel_run(1, run.id)
    await hands.store.prune(START + 1)
    assert [row["run_id"] for row in await fetch(hands.store, "SELECT run_id FROM run_actors")] == [waits.id]
