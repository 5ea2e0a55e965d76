"""Bulk operations: portions that neither lose nor repeat, on both stores."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onthedot.errors import Conflict, NotFound
from onthedot.model.bulk import BulkFilter, BulkOperation, BulkRequest
from onthedot.model.instant import format_instant
from onthedot.model.job import JobView
from onthedot.store import JobFilter, Store
from onthedot.store.bulk import job_verbs, selection
from onthedot.store.bulk.portion import WorkedOff
from tests.store.conftest import START, Times
from tests.store.given import create, cursor_of, execute, fetch, history_of, hold, retrying, runs_of

MINUTE = 60_000


def request(verb: str, **fields: Any) -> BulkRequest:
    chosen = {"filter": BulkFilter()} if not fields.keys() & {"ids", "filter"} else {}
    return BulkRequest(verb=verb, **chosen, **fields)  # type: ignore[arg-type]


async def start(store: Store, verb: str, tenant: int = 1, **fields: Any) -> BulkOperation:
    return await store.start_operation(tenant, request(verb, **fields), actor="me")


async def work(store: Store, portions: int = 1000) -> WorkedOff | None:
    """So many portions at most; what the last one answered."""
    last = None
    for _ in range(portions):
        worked = await store.work_off_operation("n1")
        if worked is None:
            break
        last = worked
    return last


@pytest.fixture
def two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for verb in job_verbs.PORTIONS:
        monkeypatch.setitem(job_verbs.PORTIONS, verb, 2)
    monkeypatch.setattr("onthedot.store.bulk.operations.SQLITE_SHARE", 1)
    monkeypatch.setattr("onthedot.store.bulk.portion.LETTERS", 2)
    monkeypatch.setattr(selection, "WINDOW", 3)


async def test_pause_and_resume_do_what_the_verbs_for_one_job_do(store: Store, times: Times) -> None:
    """Twins: one is paused by hand, the other by the operation. Afterwards their rows are the same."""
    kinds: list[dict[str, Any]] = [
        {"schedule": {"every": "1m"}},
        {"schedule": {"every": "1m"}, "policy": {"overlap": "queue"}},
        {"schedule": {"every": "1m"}, "policy": {"jitter": "5s", "max_running": 2}},
        {"schedule": {"in": "10s"}},
        {"schedule": {"every": "1m", "count": 1}},
    ]
    pairs = [(await create(store, **kind), await create(store, **kind, tags=["x"])) for kind in kinds]
    held, mine = pairs[3]
    for job in (held, mine):
        (run,) = await runs_of(store, job)
        await retrying(store, run["id"], START + 9_000)
    for job in pairs[1]:
        await store.run_job(1, job.id)

    async def same() -> None:
        for pair in pairs:
            one, other = [await _seen(store, job) for job in pair]
            assert one == other

    for job, _ in pairs:
        await store.pause_job(1, job.id, note="why")
    await start(store, "pause", filter=BulkFilter(tag="x"), params={"note": "why"})
    done = await work(store)
    assert done is not None
    assert (done.operation.state, done.operation.done, done.orders) == ("done", 5, True)
    await same()
    await times.advance(3 * MINUTE + 1)
    for job, _ in pairs:
        await store.resume_job(1, job.id)
    await start(store, "resume", filter=BulkFilter(tag="x"))
    await work(store)
    await same()


async def _seen(store: Store, job: JobView) -> list[dict[str, Any]]:
    """All that is kept of it, without what two jobs can't have in common."""
    jobs = await fetch(store, f"SELECT * FROM jobs WHERE id = {job.id}")
    apart = {"id", "job_id", "key", "spec", "n", "lane", "group_key"}
    if job.policy.jitter:  # by chance
        apart |= {"due_at", "ready_at", "resume_at"}
    rows = [*jobs, *await runs_of(store, job), *await history_of(store, job)]
    assert (await store.get_job(1, job.id)).paused == (jobs[0]["state"] == "paused")
    return [{name: value for name, value in row.items() if name not in apart} for row in rows]


async def test_each_matching_job_is_run_once_however_often_it_is_interrupted(
    store: Store, times: Times, two_at_a_time: None
) -> None:
    jobs = [await create(store, tags=["x"] if n % 2 else []) for n in range(11)]
    began = await start(store, "run", filter=BulkFilter(tag="x"), params={"params": {"a": 1}})
    assert (began.total, began.total_exact, began.state, began.actor) == (5, True, "running", "me")
    later = await create(store, tags=["x"])

    async def crash(tx: Any) -> None:
        from onthedot.store.bulk.portion import BulkPortion
        from onthedot.store.runs.spec_cache import SpecCache

        await BulkPortion("n0", 1, {}, SpecCache()).attempt(tx)
        raise RuntimeError("killed before the commit")

    for _ in range(4):
        with pytest.raises(RuntimeError):
            await store.driver.transact_slow(crash)
        await store.work_off_operation("n1")
    done = await store.get_operation(1, began.id)
    assert (done.state, done.done, done.total, done.node) == ("done", 5, 5, "n1")
    for n, job in enumerate(jobs):
        manual = [run for run in await runs_of(store, job) if run["kind"] == "manual"]
        assert len(manual) == n % 2
    assert not [run for run in await runs_of(store, later) if run["kind"] == "manual"]
    assert [row["params"] for row in await fetch(store, "SELECT params FROM run_params")] == ['{"a":1}'] * 5


async def test_two_nodes_at_once_share_an_operation(store: Store, times: Times, two_at_a_time: None) -> None:
    for _ in range(20):
        await create(store)
    began = await start(store, "run")

    async def node(name: str) -> None:
        for _ in range(200):
            await store.work_off_operation(name)
            if (await store.get_operation(1, began.id)).state != "running":
                return

    await asyncio.gather(node("n1"), node("n2"), node("n3"))
    done = await store.get_operation(1, began.id)
    assert (done.state, done.done) == ("done", 20)
    runs = await fetch(store, "SELECT job_id FROM runs WHERE kind = 'manual'")
    assert len(runs) == len({run["job_id"] for run in runs}) == 20


async def test_filters_select_what_the_list_shows(store: Store, times: Times, two_at_a_time: None) -> None:
    await create(store, key="Alpha-1", owner="ann")
    await create(store, name="alphabet", schedule={"every": "5m"}, tags=["x"])
    beta = await create(store, key="beta", target={"type": "command", "command": "backup"}, tags=["x"])
    await create(store, key="soon", schedule={"in": "10s"}, owner="ann")
    await store.pause_job(1, beta.id)
    other = await create(store, tenant=2, key="alpha")
    soon = START + 20_000
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"q": "ALPHA"}, {"q": "alpha"}),
        ({"tag": "x"}, {"tag": "x"}),
        ({"tag": "x", "status": "paused"}, {"tag": "x", "status": "paused"}),
        ({"status": "active"}, {"status": "active"}),
        ({"never_ran": True, "ended": False}, {"never_ran": True, "ended": False}),
        ({"failing": False}, {"failing": False}),
        ({"owner": "ann", "schedule": "in"}, {"owner": "ann", "schedule": "in"}),
        ({"target": "command"}, {"target": "command"}),
        ({"next_before": soon}, {"next_before": format_instant(soon)}),
        ({"next_after": soon}, {"next_after": format_instant(soon)}),
        ({}, {}),
    ]
    for fields, chosen in cases:
        listed = {job.id for job in (await store.list_jobs(1, JobFilter(**fields))).items}
        counted = await store.count_operation(1, request("pause", filter=BulkFilter(**chosen)))
        assert {item.id for item in counted.sample} == listed, fields
        assert (counted.total, counted.total_exact) == (len(listed), True)
        assert other.id not in listed


async def test_what_refuses_is_counted_with_its_reason_and_what_is_so_already_is_skipped(
    store: Store, times: Times, two_at_a_time: None
) -> None:
    named = await create(store, key="named")
    naming = await create(store, key="naming", on_success=["named"])
    free = await create(store)
    began = await start(store, "delete", ids=[free.id, named.id, 999])
    done = await work(store)
    assert done is not None
    assert (done.operation.done, done.operation.failed, done.operation.skipped) == (1, 2, 0)
    told = {error.id: error.error for error in done.operation.errors}
    assert told[999] == "job 999 not found"
    assert "'naming'" in told[named.id]
    with pytest.raises(NotFound):
        await store.get_job(1, free.id)
    assert (await store.get_operation(1, began.id)).ids == 3
    await store.pause_job(1, named.id)
    await start(store, "pause", ids=[named.id, naming.id])
    done = await work(store)
    assert done is not None
    assert (done.operation.done, done.operation.skipped) == (1, 1)
    await execute(store, f"UPDATE jobs SET state = 'quarantined', reason = 'odd' WHERE id = {naming.id}")
    await start(store, "run", ids=[naming.id])
    done = await work(store)
    assert done is not None
    assert "quarantined (odd)" in done.operation.errors[0].error


async def test_tags_are_added_and_removed_and_nothing_else_changes(store: Store, times: Times) -> None:
    job = await create(store, tags=["a", "b"])
    full = await create(store, tags=[f"t{n}" for n in range(50)])
    cursor = await cursor_of(store, job)
    await start(store, "tag", params={"add": ["c", "a"], "remove": ["b"]})
    done = await work(store)
    assert done is not None
    assert (done.operation.done, [error.id for error in done.operation.errors]) == (1, [full.id])
    now = await store.get_job(1, job.id)
    assert (now.tags, now.version, now.next_run) == (["a", "c"], 2, job.next_run)
    assert [found.id for found in (await store.list_jobs(1, JobFilter(tag="c"))).items] == [job.id]
    assert (await store.list_jobs(1, JobFilter(tag="b"))).items == []
    assert await cursor_of(store, job) == cursor


async def test_backfill_runs_what_was_missed_and_tells_what_is_too_much(store: Store, times: Times) -> None:
    await times.advance(-10 * MINUTE)
    many = await create(store, schedule={"every": "100ms"})
    job = await create(store, schedule={"every": "1m"})
    await times.set(START)
    await execute(store, f"UPDATE runs SET slot = {START + MINUTE} WHERE cursor")
    span = {"start": format_instant(START - 5 * MINUTE), "end": format_instant(START)}
    await start(store, "backfill", params=span)
    done = await work(store)
    assert done is not None
    assert (done.operation.done, [error.id for error in done.operation.errors]) == (1, [many.id])
    assert "more than 1000 slots" in done.operation.errors[0].error
    assert len([run for run in await runs_of(store, job) if run["kind"] == "backfill"]) == 6


async def test_a_backfill_by_slot_counts_the_slots_of_one_job(
    store: Store, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also far more than the 1,000 of one transaction; what is done is left out, and an abort leaves the rest alone."""
    monkeypatch.setattr("onthedot.store.bulk.operations.SQLITE_SHARE", 1)
    await times.advance(-10 * MINUTE)
    job = await create(store, schedule={"every": "250ms"})
    await times.set(START)
    await execute(store, f"UPDATE runs SET slot = {START + MINUTE} WHERE cursor")
    span = {"start": format_instant(START - 5 * MINUTE), "end": format_instant(START - 1)}
    await store.backfill_job(1, job.id, start=START - 5 * MINUTE, end=START - 5 * MINUTE + 999)
    by_slot: dict[str, Any] = {"ids": [job.id], "params": {**span, "by_slot": True}}
    count = await store.count_operation(1, request("backfill", **by_slot))
    assert (count.total, count.total_exact, [each.id for each in count.sample]) == (1196, True, [job.id])
    began = await start(store, "backfill", **by_slot)
    assert (began.total, began.ids) == (1196, 1)
    first = await work(store, 1)
    assert first is not None
    assert (first.operation.state, first.operation.done) == ("running", 496)
    done = await work(store)
    assert done is not None
    assert (done.operation.state, done.operation.done, done.operation.total) == ("done", 1196, 1196)
    slots = [run["slot"] for run in await runs_of(store, job) if run["kind"] == "backfill"]
    assert len(slots) == len(set(slots)) == 1200
    again = await start(store, "backfill", ids=[job.id], params={**span, "by_slot": True, "force": True}, rate=100)
    assert await work(store, 1) is not None
    await store.abort_operation(1, again.id)
    assert await work(store) is None
    assert (await store.get_operation(1, again.id)).done < 1200


async def test_a_backfill_by_slot_stops_when_its_job_goes(store: Store, times: Times) -> None:
    await times.advance(-10 * MINUTE)
    job = await create(store, schedule={"every": "1m"})
    await times.set(START)
    span = {"start": format_instant(START - 5 * MINUTE), "end": format_instant(START), "by_slot": True}
    await start(store, "backfill", ids=[job.id], params=span)
    await store.delete_job(1, job.id)
    stopped = await work(store)
    assert stopped is not None
    assert (stopped.operation.state, stopped.operation.reason) == ("stopped", "the job was deleted")
    with pytest.raises(NotFound):
        await store.count_operation(1, request("backfill", ids=[job.id], params=span))


async def test_a_rate_is_kept_and_an_abort_leaves_the_rest_alone(
    store: Store, times: Times, two_at_a_time: None
) -> None:
    for _ in range(6):
        await create(store)
    began = await start(store, "pause", rate=4)
    assert await store.wait_for_operation() == 0
    assert await work(store) is not None
    assert (await store.get_operation(1, began.id)).done == 2
    assert await store.wait_for_operation() == 500
    await times.advance(499)
    assert await work(store) is None
    await times.advance(1)
    assert await work(store) is not None
    assert (await store.abort_operation(1, began.id)).state == "aborted"
    await times.advance(MINUTE)
    assert await work(store) is None
    assert (await store.abort_operation(1, began.id)).done == 4
    assert len((await store.list_jobs(1, JobFilter(status="paused"))).items) == 4
    assert await store.wait_for_operation() is None
    ended = await start(store, "resume")
    await work(store)
    with pytest.raises(Conflict, match="already ended"):
        await store.abort_operation(1, ended.id)
    with pytest.raises(NotFound):
        await store.abort_operation(2, began.id)


async def test_a_paused_operation_rests_until_it_is_resumed(store: Store, times: Times, two_at_a_time: None) -> None:
    for _ in range(6):
        await create(store)
    began = await start(store, "pause")
    await work(store, 1)
    paused = await store.pause_operation(1, began.id)
    assert (paused.state, paused.done, paused.finished_at, paused.has_ended) == ("paused", 2, None, False)
    assert await store.wait_for_operation() is None
    await times.advance(MINUTE)
    assert await work(store) is None
    assert (await store.pause_operation(1, began.id)).updated_at == paused.updated_at, "it is paused already"
    other = await start(store, "tag", params={"add": ["x"]})
    await work(store)
    assert (await store.get_operation(1, other.id)).state == "done", "others go on"
    resumed = await store.resume_operation(1, began.id)
    assert (resumed.state, resumed.done) == ("running", 2)
    assert (await store.resume_operation(1, began.id)).state == "running"
    assert await store.wait_for_operation() == 0
    await work(store)
    ended = await store.get_operation(1, began.id)
    assert (ended.state, ended.done, ended.skipped) == ("done", 6, 0)
    for move in (store.pause_operation, store.resume_operation):
        with pytest.raises(Conflict, match="already ended: done"):
            await move(1, began.id)
        with pytest.raises(NotFound):
            await move(2, began.id)
    last = await start(store, "resume")
    await store.pause_operation(1, last.id)
    assert (await store.abort_operation(1, last.id)).has_ended, "also while it is paused"
    with pytest.raises(Conflict, match="already ended: aborted"):
        await store.resume_operation(1, last.id)


async def test_a_pause_waits_for_the_portion_that_is_being_done(
    store: Store, times: Times, two_at_a_time: None
) -> None:
    """Whoever pauses while portions are written sees a number that stays."""
    for _ in range(12):
        await create(store)
    began = await start(store, "run")
    worker = asyncio.create_task(work(store))
    paused = await store.pause_operation(1, began.id)
    await worker
    now = await store.get_operation(1, began.id)
    assert (now.state, now.done, now.updated_at) == (paused.state, paused.done, paused.updated_at)
    runs = await fetch(store, "SELECT id FROM runs WHERE kind = 'manual'")
    assert len(runs) == paused.done


async def test_one_that_breaks_the_portion_is_passed_over(
    store: Store, times: Times, two_at_a_time: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [await create(store) for _ in range(5)]
    real = job_verbs._VERBS["run"]

    async def broken(tx: Any, tenant: int, ids: list[int], said: Any, tally: Any) -> None:
        if jobs[2].id in ids:
            raise ZeroDivisionError
        await real(tx, tenant, ids, said, tally)

    monkeypatch.setitem(job_verbs._VERBS, "run", broken)
    await start(store, "run")
    done = await work(store)
    assert done is not None
    assert (done.operation.state, done.operation.done) == ("done", 4)
    assert [(error.id, error.error) for error in done.operation.errors] == [
        (jobs[2].id, "internal error: ZeroDivisionError; see the server log")
    ]


async def test_nodes_give_back_what_they_hold_of_a_paused_job(store: Store, times: Times) -> None:
    job = await create(store, schedule={"every": "1m"})
    run = await cursor_of(store, job)
    await hold(store, run["id"])
    await start(store, "pause")
    await work(store)
    assert [run["orders"] for run in await runs_of(store, job)] == ["recall"]


async def dead_letters(store: Store, count: int) -> list[str]:
    made = []
    for n in range(count):
        job = await create(store, key=f"dead-{n}")
        run = (await cursor_of(store, job))["id"]
        await execute(
            store,
            "INSERT INTO dead_letters (run_id, tenant, job_id, slot, failed_at) "
            f"VALUES ('{run}', 1, {job.id}, {run.partition('-')[2]}, {START - n})",
        )
        made.append(run)
    return made


async def test_a_few_are_redriven_first_and_their_failures_stop_the_rest(
    store: Store, times: Times, two_at_a_time: None
) -> None:
    letters = await dead_letters(store, 8)
    began = await start(store, "redrive", params={"first": 3, "stop_at_failures": 2})
    assert began.total == 8
    await work(store)
    waiting = await store.get_operation(1, began.id)
    assert (waiting.done, waiting.waiting_for, waiting.state) == (3, 3, "running")
    left = {row["run_id"] for row in await fetch(store, "SELECT run_id FROM dead_letters")}
    assert left == set(letters[3:]), "the last that failed come first"

    async def end(status: str, count: int) -> None:
        runs = await fetch(store, f"SELECT id, slot, job_id FROM runs WHERE kind = 'redrive' ORDER BY id LIMIT {count}")
        for run in runs:
            await execute(store, f"DELETE FROM runs WHERE id = '{run['id']}'")
            await execute(
                store,
                "INSERT INTO history (id, tenant, job_id, slot, kind, due_at, status, finished_at) VALUES "
                f"('{run['id']}', 1, {run['job_id']}, {run['slot']}, 'redrive', 0, '{status}', {START})",
            )

    await end("done", 3)
    await times.advance(1000)
    await work(store, 1)
    onwards = await store.get_operation(1, began.id)
    assert (onwards.done, onwards.failed_again) == (5, 0)
    await end("failed", 2)
    await work(store)
    stopped = await store.get_operation(1, began.id)
    assert (stopped.state, stopped.failed_again, stopped.done) == ("stopped", 2, 5)
    assert stopped.reason == "2 of the redriven runs failed again"
    assert len(await fetch(store, "SELECT run_id FROM dead_letters")) == 3


async def test_named_dead_letters_are_redriven_and_what_is_none_is_skipped(
    store: Store, times: Times, two_at_a_time: None
) -> None:
    letters = await dead_letters(store, 3)
    await start(store, "redrive", ids=[letters[0], "77-1700000000000", letters[2]])
    done = await work(store)
    assert done is not None
    assert (done.operation.state, done.operation.done, done.operation.skipped, done.due) == ("done", 2, 1, True)
    assert [row["run_id"] for row in await fetch(store, "SELECT run_id FROM dead_letters")] == [letters[1]]


async def test_operations_are_listed_by_tenant_and_pruned_with_their_age(store: Store, times: Times) -> None:
    made = [(await start(store, "pause")).id for _ in range(3)]
    await start(store, "pause", tenant=2)
    await work(store)
    page = await store.list_operations(1, limit=2)
    rest = await store.list_operations(1, limit=2, cursor=page.next)
    assert [each.id for each in (*page.items, *rest.items)] == made[::-1]
    assert rest.next is None
    running = await start(store, "pause", rate=1)
    await times.advance(10 * MINUTE)
    await store.prune(START + 5 * MINUTE)
    assert [each.id for each in (await store.list_operations(1)).items] == [running.id]
