"""`retry.until`: what a claim tells of the next slot, whatever kind of run it is."""

from __future__ import annotations

import msgspec
import pytest

from onthedot.model.duration import Duration
from onthedot.model.policy import Retry
from onthedot.store import Store
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, Hands, every

MINUTE = 60_000
UNTIL = Retry(attempts=9, backoff=Duration(1000), until="next_slot")


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


@pytest.mark.parametrize("overlap", ["allow", "queue"])
async def test_first_claim_and_retry_know_the_next_slot(hands: Hands, times: Times, overlap: str):
    job = await hands.job(every(MINUTE), retry=UNTIL, overlap=overlap)
    await times.advance(MINUTE)
    run = await hands.one()
    assert (run.slot, run.retry_until) == (START + MINUTE, START + 2 * MINUTE)
    await hands.finish(run, outcome=FAILED)
    await times.advance(5000)
    again = await hands.one()
    assert (again.id, again.token, again.retry_until) == (run.id, 2, START + 2 * MINUTE)
    await times.set(START + 2 * MINUTE - 700)
    await hands.finish(again, outcome=FAILED)
    (row,) = await hands.ledger(job)
    assert (row["status"], row["reason"], row["tries"]) == ("failed", "next_slot", 2)
    await hands.check()


async def test_what_catch_up_fires_counts_from_the_slot_that_it_fires(hands: Hands, times: Times):
    await hands.job(every(MINUTE), retry=UNTIL)
    await times.advance(10 * MINUTE + 5)
    run = await hands.one()
    assert (run.slot, run.retry_until) == (START + 10 * MINUTE, START + 11 * MINUTE)


async def test_a_run_by_hand_counts_from_when_it_was_asked_for(hands: Hands, times: Times):
    job = await hands.job(every(MINUTE), retry=UNTIL)
    await times.advance(1234)
    await hands.store.run_job(1, job)
    assert (await hands.one()).retry_until == START + MINUTE


async def test_the_schedule_that_the_job_has_now(hands: Hands, times: Times):
    job = await hands.job(every(MINUTE), retry=UNTIL)
    await times.advance(MINUTE)
    run = await hands.one()
    await hands.finish(run, outcome=FAILED)
    await times.advance(1000)
    await hands.store.update_job(1, job, lambda spec: msgspec.structs.replace(spec, schedule=every(2 * MINUTE)))
    await times.advance(1000)
    again = await hands.one()
    assert again.id == run.id
    assert again.retry_until == START + MINUTE + 1000 + 2 * MINUTE


async def test_without_it_nothing_limits_a_run(hands: Hands, times: Times):
    await hands.job(every(MINUTE))
    await times.advance(MINUTE)
    assert (await hands.one()).retry_until is None


async def test_an_older_node_leaves_such_jobs_alone(hands: Hands, times: Times):
    await hands.job(every(MINUTE), retry=UNTIL)
    await hands.job(every(MINUTE), retry=Retry(plan="quick"))
    await times.advance(MINUTE)
    assert (await hands.claim(level=2)).runs == []
    assert len((await hands.claim(level=3)).runs) == 2
