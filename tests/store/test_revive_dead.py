"""An update of a one-off whose firing is a dead letter makes it fire again: with the address corrected, say."""

from __future__ import annotations

from typing import Any

import pytest

from onthedot.model.job import JobSpec, JobView
from onthedot.store import JobFilter, LetterFilter, Store
from tests.store.conftest import START, Times
from tests.store.given import spec
from tests.store.hands import OK, REFUSED, Hands

AT = {"at": "2023-11-14T22:13:30Z"}
IN = {"in": "10s"}
BAD, GOOD = ({"type": "webhook", "url": f"https://{name}.example.com/"} for name in ("bad", "good"))


@pytest.fixture
def hands(store: Store) -> Hands:
    return Hands(store)


async def fired(hands: Hands, times: Times, outcome: Any = REFUSED, **fields: Any) -> JobView:
    """A one-off that has fired and ended."""
    (job,) = await hands.create(spec(key="j", target=BAD, **fields))
    await times.set(START + 20_000)
    await hands.finish(await hands.one(), outcome=outcome)
    await times.set(START + 60_000)
    return await hands.store.get_job(1, job.id)


async def updated(hands: Hands, job: JobView, verb: str, **fields: Any) -> JobView:
    new = spec(key="j", **fields)

    def change(_: JobSpec | None) -> JobSpec:
        return new

    if verb == "update":
        return await hands.store.update_job(1, job.id, change)
    view, created = await hands.store.put_job(1, "j", change)
    assert not created
    return view


@pytest.mark.parametrize("schedule", [AT, IN])
@pytest.mark.parametrize("verb", ["update", "put"])
async def test_it_fires_again_now_and_says_so(hands: Hands, times: Times, schedule: dict[str, str], verb: str) -> None:
    job = await fired(hands, times, schedule=schedule)
    assert (job.state, job.next_run) == ("ended", None)
    view = await updated(hands, job, verb, schedule=schedule, target=GOOD)
    assert (view.state, view.next_run, view.version) == ("active", "2023-11-14T22:14:20.000Z", 2)
    assert (await hands.store.list_dead(1)).items == []
    await hands.store.close_one_offs()
    assert (await hands.store.get_job(1, job.id)).state == "active"
    run = await hands.one()
    assert (run.kind, run.slot, run.spec.target.summary().what) == ("redrive", START + 10_000, GOOD["url"])
    assert (await hands.store.get_job(1, job.id)).state == "active", "it executes"
    await hands.finish(run)
    await hands.check()
    view = await hands.store.get_job(1, job.id)
    assert (view.state, view.next_run) == ("ended", None)
    await hands.store.close_one_offs()
    assert (await hands.store.get_job(1, job.id)).state == "ended"
    statuses = {row["kind"]: (row["status"], row["parent"]) for row in await hands.ledger(job.id)}
    assert statuses == {"scheduled": ("failed", None), "redrive": ("done", f"{job.id}-{START + 10_000}")}


async def test_again_and_again_until_it_succeeds(hands: Hands, times: Times) -> None:
    job = await fired(hands, times, schedule=AT)
    for name, outcome in (("a", REFUSED), ("b", REFUSED), ("c", OK)):
        view = await updated(hands, job, "update", schedule=AT, target=GOOD, name=name)
        assert view.state == "active"
        await hands.finish(await hands.one(), outcome=outcome)
        await hands.check()
    view = await updated(hands, job, "update", schedule=AT, target=GOOD, name="d")
    assert (view.state, view.next_run) == ("ended", None)
    assert (await hands.claim()).runs == []
    assert len(await hands.ledger(job.id)) == 4


async def test_an_update_that_changes_nothing_does_not(hands: Hands, times: Times) -> None:
    job = await fired(hands, times, schedule=AT)
    for verb in ("update", "put"):
        assert (await updated(hands, job, verb, schedule=AT, target=BAD)).state == "ended"
    assert await hands.live(job.id) == []


async def test_nor_does_one_of_what_succeeded(hands: Hands, times: Times) -> None:
    job = await fired(hands, times, OK, schedule=AT)
    assert (await updated(hands, job, "update", schedule=AT, target=GOOD)).state == "ended"
    await hands.store.run_job(1, job.id)
    await hands.finish(await hands.one(), outcome=REFUSED)
    assert (await updated(hands, job, "update", schedule=AT, target=BAD)).state == "ended", "a run by hand was it"
    assert await hands.live(job.id) == []


async def test_what_was_driven_again_by_hand_and_succeeded_is_over(hands: Hands, times: Times) -> None:
    job = await fired(hands, times, schedule=AT)
    (again,) = await hands.store.redrive(1, LetterFilter(job_id=job.id))
    await updated(hands, job, "update", schedule=AT, target=GOOD)
    assert [row["id"] for row in await hands.live(job.id)] == [again], "it is under way already"
    await hands.finish(await hands.one())
    await hands.check()
    assert (await updated(hands, job, "update", schedule=AT, target=GOOD, name="x")).state == "ended"
    assert [row["id"] for row in await hands.ledger(job.id) if row["status"] == "done"] == [again]


async def test_a_cancelled_one_is_not_revived(hands: Hands, times: Times) -> None:
    (job,) = await hands.create(spec(key="j", schedule=AT))
    await hands.store.cancel_run(1, f"{job.id}-{START + 10_000}")
    assert (await updated(hands, job, "update", schedule=AT, target=GOOD)).state == "ended"
    assert await hands.live(job.id) == []


async def test_paused_by_the_update_it_waits_for_the_resume(hands: Hands, times: Times) -> None:
    job = await fired(hands, times, schedule=AT)
    view = await updated(hands, job, "update", schedule=AT, target=GOOD, paused=True)
    assert (view.state, view.next_run) == ("paused", None)
    assert (await hands.claim()).runs == []
    assert (await hands.store.resume_job(1, job.id)).state == "active"
    await hands.finish(await hands.one())
    assert (await hands.store.get_job(1, job.id)).state == "ended"
    await hands.check()


async def test_deleted_before_it_is_claimed_it_has_its_row(hands: Hands, times: Times) -> None:
    job = await fired(hands, times, schedule=AT)
    await updated(hands, job, "update", schedule=AT, target=GOOD)
    await hands.store.delete_job(1, job.id)
    assert [row["reason"] for row in await hands.ledger(job.id)] == ["not_retryable", "deleted"]


class TestSync:
    async def test_the_same_file_does_not_and_a_changed_one_does(self, hands: Hands, times: Times) -> None:
        before = [spec(key="j", schedule=AT, target=BAD)]
        await hands.store.sync_jobs(1, "f", before, prune=True)
        job = await hands.store.get_job_by_key(1, "j")
        await times.set(START + 20_000)
        await hands.finish(await hands.one(), outcome=REFUSED)
        for _ in range(2):
            assert (await hands.store.sync_jobs(1, "f", before, prune=True)).unchanged == ["j"]
        assert await hands.live(job.id) == []
        after = [spec(key="j", schedule=AT, target=GOOD)]
        assert (await hands.store.sync_jobs(1, "f", after, prune=True)).updated == ["j"]
        assert (await hands.one()).kind == "redrive"
        assert (await hands.store.sync_jobs(1, "f", after, prune=True)).unchanged == ["j"]


async def test_lists_agree_with_the_job_itself(hands: Hands, times: Times) -> None:
    job = await fired(hands, times, schedule=AT)
    await hands.store.close_one_offs()
    await updated(hands, job, "update", schedule=AT, target=GOOD)
    active = (await hands.store.list_jobs(1, JobFilter(status="active"))).items
    assert [(view.id, view.state) for view in active] == [(job.id, "active")]
    await hands.finish(await hands.one())
    assert (await hands.store.list_jobs(1, JobFilter(status="active"))).items == []
    assert [view.id for view in (await hands.store.list_jobs(1, JobFilter(status="ended"))).items] == [job.id]
