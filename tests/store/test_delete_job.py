"""Delete: what waits is cancelled into the ledger, what executes goes on, the history stays."""

from __future__ import annotations

import pytest

from onthedot.errors import NotFound
from onthedot.store import Store
from onthedot.store.jobs.undelete import UNDELETE_WITHIN
from tests.store.conftest import START, Times
from tests.store.given import create, execute, fetch, history_of, hold, runs_of


async def test_everything_of_it_is_gone_but_its_ledger(store: Store, times: Times) -> None:
    job = await create(store, key="a", tags=["x"], schedule={"every": "1m"})
    other = await create(store, key="b", tags=["x"])
    await store.run_job(1, job.id)
    await execute(
        store,
        "INSERT INTO job_stats (job_id, tenant, runs, failures, timed, duration_ms) "
        f"VALUES ({job.id}, 1, 1, 0, 1, 5), ({other.id}, 1, 1, 0, 1, 5)",
    )
    await times.advance(10)
    await store.delete_job(1, job.id, if_match=1)
    with pytest.raises(NotFound):
        await store.get_job(1, job.id)
    with pytest.raises(NotFound):
        await store.get_job_by_key(1, "a")
    assert await runs_of(store, job) == []
    cancelled = await history_of(store, job)
    assert [(row["kind"], row["status"], row["reason"]) for row in cancelled] == [
        ("manual", "cancelled", "deleted"),
        ("scheduled", "cancelled", "deleted"),
    ]
    assert {row["finished_at"] for row in cancelled} == {START + 10}
    assert await fetch(store, "SELECT job_id FROM job_tags") == [{"job_id": other.id}]
    await times.advance(UNDELETE_WITHIN + 1)
    await store.prune(0)
    assert await fetch(store, "SELECT job_id FROM job_stats") == [{"job_id": other.id}]
    assert await fetch(store, "SELECT id FROM deleted_jobs") == []
    assert (await create(store, key="a")).id not in (job.id, other.id)


async def test_what_executes_goes_on(store: Store, times: Times) -> None:
    """The node is asked for it all the same: only the node knows whether it has begun, and it keeps what has."""
    job = await create(store, schedule={"in": "1s"})
    (run,) = await runs_of(store, job)
    await hold(store, run["id"])
    await times.advance(1000)
    await store.delete_job(1, job.id)
    assert [(run["state"], run["orders"]) for run in await runs_of(store, job)] == [("running", "recall")]
    assert await history_of(store, job) == []


async def test_begin_asked_again_after_a_delete_says_no(store: Store, times: Times) -> None:
    job = await create(store, schedule={"in": "1s"}, policy={"delivery": "at_most_once"})
    (run,) = await runs_of(store, job)
    await hold(store, run["id"])
    await times.advance(1000)
    assert await store.begin("n1", [(run["id"], 1)]) == {run["id"]}
    await store.delete_job(1, job.id)
    assert await store.begin("n1", [(run["id"], 1)]) == set()
    await store.give_back("n1", [(run["id"], 1)])
    assert [(row["status"], row["reason"], row["tries"]) for row in await history_of(store, job)] == [
        ("cancelled", "deleted", 0)
    ]


async def test_what_a_node_holds_ahead_is_recalled(store: Store, times: Times) -> None:
    job = await create(store, schedule={"in": "1s"})
    (run,) = await runs_of(store, job)
    await hold(store, run["id"])
    await store.delete_job(1, job.id)
    assert [(run["state"], run["orders"]) for run in await runs_of(store, job)] == [("running", "recall")]


async def test_what_is_due_and_not_yet_recorded_as_sent_is_not_sent_any_more(store: Store, times: Times) -> None:
    """At most once: its node lost the database before it could record that it begins, and asks again later."""
    job = await create(store, schedule={"in": "1s"}, policy={"delivery": "at_most_once"})
    (run,) = await runs_of(store, job)
    await hold(store, run["id"])
    await times.advance(5000)
    await store.delete_job(1, job.id)
    assert await store.begin("n1", [(run["id"], 1)]) == set()
    await store.give_back("n1", [(run["id"], 1)])
    assert await runs_of(store, job) == []
    (row,) = await history_of(store, job)
    assert (row["id"], row["status"], row["token"]) == (run["id"], "cancelled", 1)


async def test_open_dead_letters_go_with_the_job(store: Store, times: Times) -> None:
    job = await create(store)
    await execute(
        store,
        f"INSERT INTO dead_letters (run_id, tenant, job_id, slot, failed_at) VALUES ('x', 1, {job.id}, 1, 1)",
    )
    await store.delete_job(1, job.id)
    assert await fetch(store, "SELECT run_id FROM dead_letters") == []
