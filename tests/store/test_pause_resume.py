"""Pause stops every attempt but a run by hand; resume goes on and leaves no hole in the ledger."""

from __future__ import annotations

import pytest

from onthedot.errors import NotFound
from onthedot.model.instant import NEVER, format_instant
from onthedot.model.level import LEVEL
from onthedot.store import JobFilter, Store
from tests.store.conftest import START, Times
from tests.store.given import create, cursor_of, execute, fetch, history_of, hold, retrying, runs_of

MINUTE = 60_000


async def test_pause_parks_and_resume_releases(store: Store, times: Times) -> None:
    job = await create(store, schedule={"every": "1m"})
    paused = await store.pause_job(1, job.id)
    assert (paused.state, paused.paused, paused.next_run, paused.version) == ("paused", True, None, 2)
    run = await cursor_of(store, job)
    assert (run["parked"], run["ready_at"], run["slot"]) == ("paused", NEVER, START + MINUTE)
    await times.advance(1000)
    resumed = await store.resume_job(1, job.id)
    assert (resumed.state, resumed.paused, resumed.next_run, resumed.version) == ("active", False, job.next_run, 3)
    run = await cursor_of(store, job)
    assert (run["parked"], run["resume_at"], run["ready_at"]) == (None, None, START + MINUTE - 2000)
    assert await history_of(store, job) == []


async def test_jobs_whose_ids_begin_alike_are_left_alone(store: Store, times: Times) -> None:
    """A job's runs are a range of ids: that of 1 ends before 10."""
    jobs = [await create(store, schedule={"every": "1m"}) for _ in range(12)]
    first = jobs[0]
    assert [job.id for job in jobs if str(job.id).startswith(str(first.id))][1:]
    await store.pause_job(1, first.id)
    parked = await fetch(store, "SELECT job_id FROM runs WHERE parked = 'paused'")
    assert [row["job_id"] for row in parked] == [first.id]
    assert {job.next_run is None for job in (await store.list_jobs(1, JobFilter(status="active"))).items} == {False}
    await store.delete_job(1, first.id)
    assert len(await fetch(store, "SELECT id FROM runs")) == 11
    assert not await runs_of(store, first)


async def test_twice_changes_nothing(store: Store, times: Times) -> None:
    job = await create(store)
    assert await store.resume_job(1, job.id) == job
    paused = await store.pause_job(1, job.id)
    await times.advance(5)
    assert await store.pause_job(1, job.id) == paused
    assert await fetch(store, "SELECT paused_at FROM jobs") == [{"paused_at": START}]


async def test_resume_writes_one_range_row_for_what_passed(store: Store, times: Times) -> None:
    job = await create(store, schedule={"every": "1m"})
    await times.advance(30_000)
    await store.pause_job(1, job.id)
    await times.advance(5 * MINUTE)
    resumed = await store.resume_job(1, job.id)
    (row,) = await history_of(store, job)
    assert (row["slot"], row["until_slot"], row["slots"]) == (START + MINUTE, START + 5 * MINUTE, 5)
    assert (row["status"], row["reason"], row["kind"]) == ("skipped", "paused", "scheduled")
    assert row["finished_at"] == START + 30_000 + 5 * MINUTE
    assert resumed.next_run == format_instant(START + 6 * MINUTE)
    assert await fetch(store, "SELECT claimed_slot FROM jobs") == [{"claimed_slot": START + 5 * MINUTE}]


async def test_a_one_off_that_passed_while_paused_fires_on_resume(store: Store, times: Times) -> None:
    job = await create(store, schedule={"in": "10s"})
    await store.pause_job(1, job.id)
    await times.advance(MINUTE)
    resumed = await store.resume_job(1, job.id)
    assert resumed.state == "active"
    run = await cursor_of(store, job)
    assert (run["due_at"], run["ready_at"], run["parked"]) == (START + 10_000, START + MINUTE, None)
    assert await history_of(store, job) == []


async def test_waiting_retries_are_parked_until_resume(store: Store, times: Times) -> None:
    job = await create(store, schedule={"in": "1s"})
    (run,) = await runs_of(store, job)
    await times.advance(2000)
    await retrying(store, run["id"], START + 9_000)
    await store.pause_job(1, job.id)
    (run,) = await runs_of(store, job)
    assert (run["parked"], run["ready_at"], run["resume_at"], run["tries"]) == ("paused", NEVER, START + 9_000, 1)
    await times.advance(3000)
    await store.resume_job(1, job.id)
    (run,) = await runs_of(store, job)
    assert (run["parked"], run["ready_at"], run["due_at"]) == (None, START + 9_000, START + 1000)


async def test_a_retry_whose_time_passed_is_ready_at_once(store: Store, times: Times) -> None:
    job = await create(store, schedule={"in": "1s"})
    (run,) = await runs_of(store, job)
    await retrying(store, run["id"], START + 3_000)
    await store.pause_job(1, job.id)
    await times.advance(MINUTE)
    await store.resume_job(1, job.id)
    assert [run["ready_at"] for run in await runs_of(store, job)] == [START + MINUTE]


async def test_what_waits_in_a_lane_is_parked_too(store: Store, times: Times) -> None:
    job = await create(store, schedule={"every": "1m"}, policy={"overlap": "queue"})
    run = await cursor_of(store, job)
    await execute(
        store, f"UPDATE runs SET cursor = false, parked = 'lane', ready_at = {NEVER} WHERE id = '{run['id']}'"
    )
    await store.pause_job(1, job.id)
    assert [run["parked"] for run in await runs_of(store, job)] == ["paused"]
    await times.advance(2 * MINUTE)
    await store.resume_job(1, job.id)
    first = (await runs_of(store, job))[0]
    assert (first["parked"], first["ready_at"]) == (None, START + 2 * MINUTE)


async def test_runs_by_hand_are_not_parked(store: Store, times: Times) -> None:
    job = await create(store)
    before = await store.run_job(1, job.id)
    await store.pause_job(1, job.id)
    after = await store.run_job(1, job.id)
    ready = {run["id"]: run["ready_at"] for run in await runs_of(store, job)}
    assert ready[before.id] == ready[after.id] == START


async def test_pause_recalls_what_a_node_holds_ahead(store: Store, times: Times) -> None:
    job = await create(store, schedule={"in": "1s"})
    (run,) = await runs_of(store, job)
    await hold(store, run["id"])
    await store.pause_job(1, job.id)
    assert [(run["state"], run["orders"]) for run in await runs_of(store, job)] == [("running", "recall")]


async def test_pause_recalls_what_is_due_and_has_to_be_recorded_first(store: Store, times: Times) -> None:
    job = await create(store, schedule={"in": "1s"}, policy={"delivery": "at_most_once"})
    (run,) = await runs_of(store, job)
    await hold(store, run["id"])
    await times.advance(5000)
    await store.pause_job(1, job.id)
    assert await store.begin("n1", [(run["id"], 1)]) == set()
    await store.give_back("n1", [(run["id"], 1)])
    assert [(run["state"], run["parked"]) for run in await runs_of(store, job)] == [("pending", "paused")]


async def test_begin_asked_again_after_a_pause_says_no(store: Store, times: Times) -> None:
    """The answer to the first was lost, so nothing was sent: after the pause was acknowledged nothing may be."""
    job = await create(store, schedule={"in": "1s"}, policy={"delivery": "at_most_once"})
    (run,) = await runs_of(store, job)
    await hold(store, run["id"])
    await times.advance(1000)
    assert await store.begin("n1", [(run["id"], 1)]) == {run["id"]}
    await store.pause_job(1, job.id)
    assert await store.begin("n1", [(run["id"], 1)]) == set()
    await store.give_back("n1", [(run["id"], 1)])
    assert [(r["state"], r["parked"], r["begun_at"]) for r in await runs_of(store, job)] == [
        ("pending", "paused", None)
    ]


async def test_an_ended_job_has_nothing_to_pause(store: Store, times: Times) -> None:
    job = await create(store, schedule={"in": "1s"})
    await execute(store, "DELETE FROM runs")
    await execute(store, f"UPDATE jobs SET state = 'ended', ended_at = {START}")
    assert (await store.pause_job(1, job.id)).state == "ended"
    assert (await store.resume_job(1, job.id)).state == "ended"


async def test_a_count_that_ran_out_while_paused_ends_the_job(store: Store, times: Times) -> None:
    job = await create(store, schedule={"every": "1m", "count": 3})
    await store.pause_job(1, job.id)
    await times.advance(10 * MINUTE)
    resumed = await store.resume_job(1, job.id)
    assert (resumed.state, resumed.next_run) == ("ended", None)
    assert (resumed.paused, resumed.version) == (False, 3)
    assert (await store.pause_job(1, job.id)).version == (await store.resume_job(1, job.id)).version == 3
    assert await runs_of(store, job) == []
    (row,) = await history_of(store, job)
    assert (row["slots"], row["until_slot"]) == (3, START + 3 * MINUTE)


async def test_no_such_job(store: Store) -> None:
    for verb in (store.pause_job, store.resume_job, store.run_job):
        with pytest.raises(NotFound):
            await verb(1, 99)


async def test_a_retry_goes_on_if_the_resume_finds_no_slot_to_come(store: Store, times: Times) -> None:
    """Found by the simulation: the job had ended, its last run stayed parked, and nobody could resume it any more."""
    job = await create(store, schedule={"every": "1m", "count": 1})
    (run,) = await runs_of(store, job)
    await times.advance(MINUTE)
    await retrying(store, run["id"], START + 2 * MINUTE)
    await execute(store, f"UPDATE jobs SET claimed_slot = {run['slot']}, slots_used = 1 WHERE id = {job.id}")
    assert (await store.pause_job(1, job.id)).state == "paused"
    assert [run["parked"] for run in await runs_of(store, job)] == ["paused"]
    assert (await store.resume_job(1, job.id)).state == "ended"
    assert [(run["parked"], run["ready_at"]) for run in await runs_of(store, job)] == [(None, START + 2 * MINUTE)]


async def test_a_retry_goes_on_if_the_last_slot_of_its_paused_job_is_cancelled(store: Store, times: Times) -> None:
    job = await create(store, schedule={"every": "1m", "count": 2})
    await times.advance(MINUTE)
    (first,) = (await store.claim("n", offers=["webhook"], level=LEVEL, limit=9, lookahead_ms=0)).runs
    await retrying(store, first.id, START + 3 * MINUTE)
    await store.pause_job(1, job.id)
    last = await cursor_of(store, job)
    await store.cancel_run(1, last["id"])
    assert [(run["id"], run["parked"]) for run in await runs_of(store, job)] == [(first.id, None)]
