"""Jobs of a kind that this process does not know: everything but to run or change them, on both stores."""

from __future__ import annotations

import msgspec
import pytest

from onthedot.model.job import JobView
from onthedot.model.policy import Retry
from onthedot.model.secret_text import MASK
from onthedot.model.targets import OpaqueTarget
from onthedot.store import JobFilter, Store
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, Hands, every, node_info, spec

STORED = {"type": "teleport", "to": "Mars", "token": "hunter2", "luck": 1.5, "via": [{"a": None}]}
CAPABILITY = "teleport:mars"


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


async def made(hands: Hands, **policy: object) -> JobView:
    """As a node that knows the kind would make it."""
    (job,) = await hands.create(spec(every(10_000), target=OpaqueTarget(STORED, CAPABILITY, 1), key="far", **policy))
    return job


async def stored(hands: Hands) -> tuple[object, ...]:
    (row,) = await hands.sql("SELECT spec, requires, level, target_type FROM jobs")
    return msgspec.json.decode(row["spec"])["target"], row["requires"], row["level"], row["target_type"]


async def test_it_is_shown_without_what_is_in_it(hands: Hands):
    job = await made(hands)
    shown = OpaqueTarget({"type": "teleport", "to": MASK, "token": MASK, "luck": MASK, "via": MASK})
    assert (await hands.store.get_job(1, job.id)).target == shown
    (listed,) = (await hands.store.list_jobs(1, JobFilter())).items
    assert listed.target == shown
    assert listed.target.summary().line == "teleport (not known here)"


async def test_a_pause_and_a_resume_leave_it_as_it_was_stored(hands: Hands, times: Times):
    job = await made(hands)
    paused = await hands.store.pause_job(1, job.id)
    assert paused.state == "paused"
    assert await stored(hands) == (STORED, CAPABILITY, 1, "teleport")
    await times.advance(60_000)
    assert (await hands.store.resume_job(1, job.id)).state == "active"
    assert await stored(hands) == (STORED, CAPABILITY, 1, "teleport")
    (cursor,) = await hands.live(job.id)
    assert (cursor["requires"], cursor["level"]) == (CAPABILITY, 1)
    await hands.check()


async def test_only_who_offers_it_claims_it(hands: Hands, times: Times):
    job = await made(hands)
    await times.set(START + 10_000)
    assert (await hands.claim()).runs == []
    (run,) = (await hands.claim(offers=[CAPABILITY])).runs
    assert run.job_id == job.id
    (following,) = [row for row in await hands.live(job.id) if row["cursor"]]
    assert following["requires"] == CAPABILITY, "its successor needs the same"
    await hands.finish(run)
    assert [row["status"] for row in await hands.ledger(job.id)] == ["done"]
    await hands.check()


async def test_a_lost_node_s_run_is_reclaimed(hands: Hands, times: Times):
    await made(hands)
    await hands.store.register(node_info("n1"))
    await times.set(START + 10_000)
    (run,) = (await hands.claim(offers=[CAPABILITY])).runs
    await hands.store.declare_lost("n1", 0)
    await times.advance(6000)
    assert await hands.store.reclaim() == 1
    (again,) = [row for row in await hands.live() if row["id"] == run.id]
    assert (again["state"], again["losses"], again["requires"]) == ("pending", 1, CAPABILITY)
    await hands.check()


async def test_what_a_person_asks_for_waits_for_who_can_do_it(hands: Hands, times: Times):
    job = await made(hands, retry=Retry(attempts=1))
    await hands.store.run_job(1, job.id)
    (manual,) = [row for row in await hands.live(job.id) if row["kind"] == "manual"]
    assert manual["requires"] == CAPABILITY
    (run,) = (await hands.claim(offers=[CAPABILITY])).runs
    await hands.finish(run, outcome=FAILED)
    (new,) = await hands.store.redrive(1)
    (redriven,) = [row for row in await hands.live(job.id) if row["id"] == new]
    assert (redriven["requires"], redriven["level"]) == (CAPABILITY, 1)
    await hands.store.delete_job(1, job.id)
    assert (await hands.store.list_jobs(1, JobFilter())).items == []
