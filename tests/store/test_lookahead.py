"""How early a run may be claimed is what the store was opened with, whoever writes the run."""

from __future__ import annotations

import pytest

from onthedot.model.duration import Duration
from onthedot.model.schedule import Schedule
from onthedot.store import Store
from tests.store.conftest import Times
from tests.store.hands import Hands, every, spec

SHORT = 300
MINUTE = 60_000


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    store.driver.queries.lookahead = SHORT
    return Hands(store)


async def ahead(hands: Hands, job: int) -> list[int]:
    return [row["due_at"] - row["ready_at"] for row in await hands.live(job) if row["state"] == "pending"]


@pytest.mark.parametrize("key", [None, "named"])
async def test_of_a_new_job(hands: Hands, key: str | None):
    once = await hands.job(Schedule(in_=Duration(MINUTE)), key=key)
    often = await hands.job(every(MINUTE))
    assert await ahead(hands, once) == await ahead(hands, often) == [SHORT]


async def test_of_many_new_jobs(hands: Hands):
    views = await hands.create(*(spec(Schedule(in_=Duration(MINUTE))) for _ in range(200)))
    assert {tuple(await ahead(hands, view.id)) for view in views[::50]} == {(SHORT,)}


async def test_of_a_job_that_goes_on_after_a_pause(hands: Hands):
    job = await hands.job(every(MINUTE))
    await hands.store.pause_job(1, job)
    await hands.store.resume_job(1, job)
    assert await ahead(hands, job) == [SHORT]


async def test_of_the_slot_after_a_cancelled_one(hands: Hands):
    job = await hands.job(every(MINUTE))
    (cursor,) = await hands.live(job)
    await hands.store.cancel_run(1, cursor["id"])
    assert await ahead(hands, job) == [SHORT]


async def test_of_a_run_that_is_given_back(hands: Hands, times: Times):
    job = await hands.job(Schedule(in_=Duration(MINUTE)))
    await times.advance(MINUTE - SHORT)
    run = await hands.one()
    await hands.store.give_back(hands.node, [(run.id, run.token)])
    assert await ahead(hands, job) == [SHORT]
