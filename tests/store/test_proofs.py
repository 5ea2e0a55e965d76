"""The proof turns red when a row is missing or double, and stays quiet whatever people do to their jobs."""

from __future__ import annotations

import msgspec
import pytest

from onthedot.model.duration import Duration
from onthedot.model.proof import TenantProof
from onthedot.model.schedule import Schedule
from onthedot.store import Store
from onthedot.store.cluster import proofs
from tests.store.conftest import Times
from tests.store.hands import Hands, every, spec

MINUTE, HOUR = 60_000, 3_600_000


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


async def live(hands: Hands, times: Times, steps: int, ms: int = MINUTE) -> None:
    """A node fires what comes."""
    for _ in range(steps):
        await times.advance(ms)
        while runs := (await hands.claim()).runs:
            await hands.finish(*runs)


async def found(hands: Hands, times: Times) -> TenantProof:
    await times.advance(proofs.ROUND_EVERY)
    while not await hands.store.prove():
        pass
    return (await hands.store.proof(1))[1]


async def test_all_is_well(hands: Hands, times: Times):
    await hands.job(every(MINUTE))
    await hands.job(Schedule(cron="*/2 * * * *", tz="Europe/Berlin"), jitter=Duration(20_000))
    await hands.job()  # a one-off
    await hands.job(every(MINUTE, count=3))
    await live(hands, times, 10)
    proof = await found(hands, times)
    assert (proof.missing, proof.twice, proof.offences, proof.unchecked_jobs) == (0, 0, [], 0)
    assert proof.expected >= 10 + 5 + 1
    assert proof.waiting > 0, "what became due while nobody claimed"
    assert proof.decided + proof.waiting == proof.expected
    rounds, _ = await hands.store.proof(1)
    assert rounds is not None
    assert rounds.complete
    assert not await hands.store.prove(), "the next round has time"


@pytest.mark.parametrize("planted", ["missing", "twice"])
async def test_a_planted_row(hands: Hands, times: Times, planted: str):
    good, bad = await hands.job(every(MINUTE)), await hands.job(every(MINUTE), key="bad")
    await live(hands, times, 5)
    slot = (await hands.ledger(bad))[2]["slot"]
    if planted == "missing":
        await hands.sql(f"DELETE FROM history WHERE job_id = {bad} AND slot = {slot}")
    else:
        await hands.sql(
            "INSERT INTO history (id, tenant, job_id, slot, kind, due_at, status, finished_at)"
            f" VALUES ('{bad}-{slot}-x', 1, {bad}, {slot}, 'scheduled', {slot}, 'done', {slot})"
        )
    proof = await found(hands, times)
    assert (proof.missing, proof.twice) == ((1, 0) if planted == "missing" else (0, 1))
    (offence,) = proof.offences
    assert (offence.job_id, offence.key, offence.slot, offence.problem) == (bad, "bad", slot, planted)
    assert good != bad


async def test_a_one_off_whose_row_is_gone(hands: Hands, times: Times):
    job = await hands.job()
    await live(hands, times, 1)
    await hands.sql(f"DELETE FROM history WHERE job_id = {job}")
    assert (await found(hands, times)).missing == 1


async def test_a_range_of_slots_that_were_given_up_is_decided(hands: Hands, times: Times):
    await hands.job(every(MINUTE))
    await times.advance(20 * MINUTE)
    await live(hands, times, 1)
    proof = await found(hands, times)
    assert (proof.missing, proof.twice) == (0, 0)
    assert proof.decided >= 21


async def test_what_people_do_is_no_alarm(hands: Hands, times: Times, store: Store):
    edited, paused, ended = [await hands.job(every(MINUTE), key=key) for key in ("edited", "paused", "ended")]
    await live(hands, times, 5)
    await store.update_job(1, edited, lambda _: spec(every(7_000), key="edited"))
    await store.pause_job(1, paused)
    await live(hands, times, 5)
    await store.resume_job(1, paused)
    await store.update_job(1, ended, lambda _: spec(every(MINUTE, end="2023-11-14T22:30:00Z"), key="ended"))
    await hands.job(every(MINUTE, start="2023-11-14T22:40:00Z"))
    await live(hands, times, 30)
    proof = await found(hands, times)
    assert (proof.missing, proof.twice, proof.offences) == (0, 0, [])
    assert proof.left_out > 0


async def test_labels_move_no_slot(hands: Hands, times: Times, store: Store):
    named, tagged, both = [await hands.job(every(MINUTE), key=key) for key in ("named", "tagged", "both")]
    await live(hands, times, 10)
    await store.update_job(1, named, lambda was: msgspec.structs.replace(was, name="Named", owner="ann"))
    await live(hands, times, 2)
    await store.update_job(1, tagged, lambda was: msgspec.structs.replace(was, tags=["a"]))
    await store.update_job(1, tagged, lambda was: msgspec.structs.replace(was, tags=["a", "b"]))
    await store.pause_job(1, both)
    await store.resume_job(1, both)
    await live(hands, times, 3)
    await store.update_job(1, both, lambda was: msgspec.structs.replace(was, tags=["a"]))
    await live(hands, times, 1)
    proof = await found(hands, times)
    assert (proof.missing, proof.twice, proof.offences) == (0, 0, [])
    assert 10 <= proof.left_out <= 13, "what `both` decided before it was paused"
    assert proof.expected >= 16 + 16 + 4
    slot = (await hands.ledger(tagged))[2]["slot"]
    await hands.sql(f"DELETE FROM history WHERE job_id = {tagged} AND slot = {slot}")
    (offence,) = (await found(hands, times)).offences
    assert (offence.job_id, offence.slot) == (tagged, slot), "before its tags changed"


async def test_portions_and_a_round_that_takes_too_long(
    hands: Hands, times: Times, store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(proofs, "PORTION", 2)
    jobs = [await hands.job(every(MINUTE)) for _ in range(5)]
    await live(hands, times, 3)
    await times.advance(proofs.ROUND_EVERY)
    assert not await store.prove()
    await times.advance(proofs.ROUND_LONGEST)
    assert await store.prove()
    rounds, proof = await store.proof(1)
    assert rounds is not None
    assert (rounds.complete, rounds.jobs, proof.jobs) == (False, 4, 4)
    await hands.sql(f"DELETE FROM history WHERE job_id = {jobs[4]}")
    await times.advance(proofs.ROUND_EVERY)
    other = Store(store.driver)
    while not await other.prove():
        await times.advance(proofs.ROUND_LONGEST)
    _, proof = await store.proof(1)
    assert {offence.job_id for offence in proof.offences} == {jobs[4]}, "the next one began where that one ended"
