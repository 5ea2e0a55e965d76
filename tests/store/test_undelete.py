"""A deleted job comes back within ten minutes: as it was, with nothing fired meanwhile and no slot covered twice."""

from __future__ import annotations

import pytest

from onthedot.errors import Conflict, NotFound
from onthedot.model.duration import MINUTE, SECOND
from onthedot.model.run import Outcome
from onthedot.store import Idempotency, RunFilter, Store
from onthedot.store.jobs.undelete import UNDELETE_WITHIN
from tests.store.conftest import START, Times
from tests.store.given import change, create, cursor_of, execute, fetch, history_of, hold, runs_of, spec
from tests.store.hands import FAILED, OK, Hands, node_info

EVERY = {"every": "1m"}
TABLES = ("jobs", "job_tags", "job_chains")


async def test_it_is_what_it_was(store: Store, times: Times) -> None:
    await create(store, key="next")
    job = await create(store, key="a", tags=["x"], schedule=EVERY, on_success=["next"])
    job = await change(
        store, job, key="a", tags=["x", "y"], schedule={"every": "2m"}, on_success=["next"], requires=["gpu"]
    )
    await execute(
        store,
        f"INSERT INTO job_stats (job_id, tenant, runs, failures, timed, duration_ms) VALUES ({job.id}, 1, 3, 1, 1, 5)",
    )
    before = await store.get_job(1, job.id)
    rows = [await fetch(store, f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in TABLES]
    await store.delete_job(1, job.id)
    assert len((await store.list_runs(1, RunFilter(job_id=job.id))).items) == 1
    await times.advance(1000)
    assert await store.undelete_job(1, job.id) == before
    assert [await fetch(store, f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in TABLES] == rows
    assert await history_of(store, job) == [], "its next slot is to come, and has no row"
    assert [each.version for each in (await store.list_versions(1, job.id)).items] == [2, 1]
    assert await fetch(store, "SELECT id FROM deleted_jobs") == []
    with pytest.raises(Conflict, match="is not deleted"):
        await store.undelete_job(1, job.id)


async def test_the_table_of_deleted_jobs_has_every_column_of_jobs(store: Store) -> None:
    """Whoever adds a column to `jobs` adds it to `deleted_jobs` and to `KeptJob`, too."""
    job = await create(store)
    (live,) = await fetch(store, "SELECT * FROM jobs")
    await store.delete_job(1, job.id)
    (kept,) = await fetch(store, "SELECT * FROM deleted_jobs")
    assert set(kept) - {"cursor_slot", "deleted_at"} == set(live)
    assert {name: kept[name] for name in live} == live


async def test_slots_that_passed_are_one_row(store: Store, times: Times) -> None:
    job = await create(store, schedule=EVERY)
    await store.delete_job(1, job.id)
    await times.advance(3 * MINUTE + 10 * SECOND)
    back = await store.undelete_job(1, job.id)
    assert (back.version, (await cursor_of(store, job))["slot"]) == (1, START + 4 * MINUTE)
    (row,) = await history_of(store, job)
    assert (row["status"], row["reason"], row["slot"], row["until_slot"], row["slots"]) == (
        "skipped",
        "deleted",
        START + MINUTE,
        START + 3 * MINUTE,
        3,
    )


async def test_what_was_due_at_the_delete_keeps_its_row(store: Store, times: Times) -> None:
    """And what a count allows is used up by it."""
    job = await create(store, schedule={**EVERY, "count": 5})
    await times.advance(2 * MINUTE + 1)
    await store.delete_job(1, job.id)
    await times.advance(MINUTE)
    await store.undelete_job(1, job.id)
    found = [(row["status"], row["reason"], row["slot"] - START, row["slots"]) for row in await history_of(store, job)]
    assert found == [
        ("cancelled", "deleted", MINUTE, None),
        ("skipped", "deleted", 2 * MINUTE, 1),
        ("skipped", "deleted", 3 * MINUTE, 1),
    ]
    assert (await cursor_of(store, job))["slot"] == START + 4 * MINUTE
    assert (await fetch(store, "SELECT slots_used FROM jobs"))[0]["slots_used"] == 3


async def test_a_one_off_still_fires(store: Store, times: Times) -> None:
    hands = Hands(store)
    await store.register(node_info(hands.node))
    job = await create(store, schedule={"in": "5s"})
    (run,) = await runs_of(store, job)
    await execute(store, "UPDATE runs SET token = 7")
    await store.delete_job(1, job.id)
    await times.advance(MINUTE)
    assert (await hands.claim()).runs == []
    assert (await store.undelete_job(1, job.id)).state == "active"
    fired = await hands.one()
    assert (fired.id, fired.token) == (run["id"], 8), "a token never goes down"
    await hands.finish(fired)
    await hands.check()
    assert (await store.get_job(1, job.id)).state == "ended"


async def test_a_one_off_that_a_node_gave_back_meanwhile_fires_too(store: Store, times: Times) -> None:
    job = await create(store, schedule={"in": "2s"})
    (run,) = await runs_of(store, job)
    await hold(store, run["id"])
    await store.delete_job(1, job.id)
    await store.give_back("n1", [(run["id"], 1)])
    assert [row["reason"] for row in await history_of(store, job)] == ["deleted"]
    await store.undelete_job(1, job.id)
    assert [(row["id"], row["cursor"], row["token"]) for row in await runs_of(store, job)] == [(run["id"], True, 1)]
    assert await history_of(store, job) == []


async def test_a_one_off_that_ended_meanwhile_has_ended(store: Store, times: Times) -> None:
    hands = Hands(store)
    await store.register(node_info(hands.node))
    job = await create(store, schedule={"in": "1s"})
    await times.advance(1000)
    run = await hands.one()
    await store.delete_job(1, job.id)
    await hands.finish(run)
    await store.close_one_offs()
    assert (await store.undelete_job(1, job.id)).state == "ended"
    await store.close_one_offs()
    assert (await fetch(store, "SELECT state FROM jobs"))[0]["state"] == "ended"
    await hands.check()


async def test_a_paused_job_comes_back_paused(store: Store, times: Times) -> None:
    job = await create(store, schedule=EVERY)
    await store.pause_job(1, job.id, note="why not")
    await times.advance(MINUTE + 1)
    await store.delete_job(1, job.id)
    await times.advance(2 * MINUTE)
    back = await store.undelete_job(1, job.id)
    assert (back.state, back.pause is not None and back.pause.note, back.next_run) == ("paused", "why not", None)
    await Hands(store).check()
    await store.resume_job(1, job.id)
    await Hands(store).check()
    found = [(row["reason"], row["slot"] - START, row["until_slot"]) for row in await history_of(store, job)]
    assert found == [("deleted", MINUTE, None), ("paused", 2 * MINUTE, START + 3 * MINUTE)]


async def test_a_paused_job_without_slots_left_has_ended(store: Store, times: Times) -> None:
    """Its last slots passed in the pause: after the delete there is nothing that a resume could fire or record."""
    job = await create(store, schedule={"every": "1m", "count": 3})
    await store.pause_job(1, job.id)
    await times.advance(4 * MINUTE)
    await store.delete_job(1, job.id)
    back = await store.undelete_job(1, job.id)
    assert (back.state, back.next_run) == ("ended", None)
    assert (await store.resume_job(1, job.id)).state == "ended"
    slots = [(row["slot"], row["until_slot"]) for row in await history_of(store, job)]
    assert {START + minute * MINUTE for minute in (1, 2, 3)} == {
        slot for first, last in slots for slot in range(first, (last or first) + 1, MINUTE)
    }, "each has its row, once"


async def test_dead_letters_come_back_with_it(store: Store, times: Times) -> None:
    hands = Hands(store)
    await store.register(node_info(hands.node))
    job = await create(store, schedule=EVERY, policy={"retry": {"attempts": 1}})
    await times.advance(MINUTE)
    await hands.finish(await hands.one(), outcome=FAILED)
    await store.delete_job(1, job.id)
    assert (await store.list_dead(1)).items == []
    await store.undelete_job(1, job.id)
    assert len((await store.list_dead(1)).items) == 1


@pytest.mark.parametrize("outcome", [FAILED, OK], ids=["failed", "ok"])
async def test_a_run_that_ended_meanwhile_counts(store: Store, times: Times, outcome: Outcome) -> None:
    hands = Hands(store)
    await store.register(node_info(hands.node))
    job = await create(store, schedule=EVERY, policy={"retry": {"attempts": 1}})
    await times.advance(MINUTE)
    run = await hands.one()
    await store.delete_job(1, job.id)
    await hands.finish(run, outcome=outcome)
    assert (await store.list_dead(1)).items == []
    stats = (await store.undelete_job(1, job.id)).stats
    assert stats is not None
    failed = outcome is FAILED
    assert (stats.runs, stats.failures, stats.last_status) == (1, failed, "FAILED" if failed else "DONE")
    assert len((await store.list_dead(1)).items) == failed
    await hands.check()


async def test_a_key_that_was_taken_is_a_conflict(store: Store, times: Times) -> None:
    job = await create(store, key="a", schedule=EVERY)
    with pytest.raises(NotFound, match="10 minutes"):
        await store.deleted_by_key(1, "a")
    await store.delete_job(1, job.id)
    assert await store.deleted_by_key(1, "a") == job.id
    other = await create(store, key="a", schedule=EVERY)
    with pytest.raises(Conflict, match=f"'a' is used by job {other.id}"):
        await store.undelete_job(1, job.id)
    await store.delete_job(1, other.id)
    with pytest.raises(NotFound):
        await store.undelete_job(2, job.id)
    assert (await store.undelete_job(1, job.id)).key == "a"


async def test_what_it_names_must_be_there(store: Store, times: Times) -> None:
    last = await create(store, key="last")
    first = await create(store, key="first", on_success=["last"])
    await store.delete_job(1, first.id)
    await store.delete_job(1, last.id)
    with pytest.raises(Conflict, match=r"no job has this key \('last'\)"):
        await store.undelete_job(1, first.id)
    await store.undelete_job(1, last.id)
    await store.undelete_job(1, first.id)
    with pytest.raises(Conflict):
        await store.delete_job(1, last.id)


async def test_after_ten_minutes_it_is_gone(store: Store, times: Times) -> None:
    job = await create(store, schedule=EVERY)
    await change(store, job, schedule=EVERY, name="x")
    await store.delete_job(1, job.id)
    await times.advance(UNDELETE_WITHIN)
    await store.prune(0)
    assert (await store.undelete_job(1, job.id)).name == "x"
    await store.delete_job(1, job.id)
    await times.advance(UNDELETE_WITHIN + 1)
    with pytest.raises(NotFound, match="more than 10 minutes ago"):
        await store.undelete_job(1, job.id)
    await store.prune(0)
    with pytest.raises(NotFound, match="not found"):
        await store.undelete_job(1, job.id)
    for table in ("deleted_jobs", "job_versions", "jobs"):
        assert await fetch(store, f"SELECT * FROM {table}") == [], table


async def test_a_repeat_changes_nothing_more_and_a_file_s_delete_is_kept_too(store: Store, times: Times) -> None:
    await store.sync_jobs(1, "file", [spec(key="a"), spec(key="b")], prune=True)
    job = await store.get_job_by_key(1, "b")
    await store.sync_jobs(1, "file", [spec(key="a")], prune=True)
    once = Idempotency("k", "2:x")
    assert (await store.undelete_job(1, job.id, idempotency=once)).key == "b"
    await store.pause_job(1, job.id)
    assert (await store.undelete_job(1, job.id, idempotency=once)).state == "paused"
    report = await store.sync_jobs(1, "file", [spec(key="a"), spec(key="b")], prune=True)
    assert report.unchanged == ["a", "b"]
