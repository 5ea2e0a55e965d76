"""Params that one run was given for itself, and jobs that run at once when they are made."""

from __future__ import annotations

import msgspec
import pytest

from onthedot.model.job import JobView
from onthedot.store import NewJob, RunFilter, Store
from tests.store.conftest import START, Times
from tests.store.given import HOURLY, create, fetch, runs_of, spec
from tests.store.hands import Hands


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


async def test_a_run_has_the_params_it_was_given(hands):
    job = await create(hands.store, schedule=HOURLY, params={"a": 1})
    given = await hands.store.run_job(1, job.id, params={"b": "ä"})
    plain = await hands.store.run_job(1, job.id)
    assert (given.params, plain.params) == ({"b": "ä"}, None)
    claimed = {run.id: run for run in (await hands.claim()).runs}
    assert (claimed[given.id].params, claimed[plain.id].params) == ({"b": "ä"}, None)
    assert (await hands.store.get_run(1, given.id)).params == {"b": "ä"}


async def test_they_stay_with_it_in_the_ledger_and_when_it_is_driven_again(hands):
    job = await create(hands.store, schedule=HOURLY)
    run = await hands.store.run_job(1, job.id, params={"b": 2})
    await hands.store.cancel_run(1, run.id)
    assert (await hands.store.get_run(1, run.id)).params == {"b": 2}
    listed = await hands.store.list_runs(1, RunFilter(job_id=job.id))
    assert [item.params for item in listed.items] == [{"b": 2}]
    again = await hands.store.retry_run(1, run.id)
    assert (await hands.store.get_run(1, again.id)).params == {"b": 2}
    (claimed,) = (await hands.claim()).runs
    assert (claimed.id, claimed.params) == (again.id, {"b": 2})


async def test_they_go_when_their_run_is_old(hands):
    job = await create(hands.store, schedule=HOURLY)
    run, waits = [await hands.store.run_job(1, job.id, params={"b": n}) for n in range(2)]
    await hands.store.cancel_run(1, run.id)
    await hands.store.prune(START + 1)
    assert [row["run_id"] for row in await fetch(hands.store, "SELECT run_id FROM run_params")] == [waits.id]


@pytest.mark.parametrize("fields", [{}, {"key": "k"}, {"schedule": {"in": "1h"}}, {"paused": True}])
async def test_a_job_that_runs_at_once_does_so_beside_its_schedule(store, times, fields):
    new = NewJob(tenant=1, spec=spec(**{"schedule": HOURLY, **fields}), run_now=True)
    (job,) = await store.create_jobs([new])
    assert isinstance(job, JobView)
    runs = {row["kind"]: row for row in await runs_of(store, job)}
    assert set(runs) == {"manual", "scheduled"}
    assert (runs["manual"]["due_at"], runs["manual"]["ready_at"]) == (START, START)
    assert job == await store.get_job(1, job.id)


async def test_put_and_sync_run_at_once_what_is_new(store, times):
    made, _ = await store.put_job(1, "a", lambda _: spec(key="a"), run_now=True)
    await store.put_job(1, "a", lambda _: spec(key="a", name="x"), run_now=True)
    assert [row["kind"] for row in await runs_of(store, made)].count("manual") == 1
    for _ in range(2):
        await store.sync_jobs(1, "f", [spec(key="b"), spec(key="c")], prune=False, run_now=frozenset("b"))
    found = await fetch(store, "SELECT j.key FROM runs r JOIN jobs j ON j.id = r.job_id WHERE r.kind = 'manual'")
    assert sorted(row["key"] for row in found) == ["a", "b"]


async def test_the_owner_is_kept_by_an_update_that_does_not_name_one(store, times):
    job = await create(store, key="a", owner="ada")
    assert job.owner == "ada"
    changed = await store.update_job(1, job.id, lambda _: spec(key="a", name="x"))
    assert changed.owner == "ada"
    assert (await store.update_job(1, job.id, lambda old: msgspec.structs.replace(old, owner=None))).owner is None
    await store.sync_jobs(1, "f", [spec(key="f")], prune=False, owner="ci")
    again = await store.sync_jobs(1, "f", [spec(key="f")], prune=False, owner="somebody else")
    assert again.unchanged == ["f"]
    assert (await store.get_job_by_key(1, "f")).owner == "ci"
