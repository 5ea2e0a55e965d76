"""claim of a cursor: the successor, catch-up, the end, and a schedule that fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onthedot import plan, telemetry
from onthedot.errors import Conflict
from onthedot.model.duration import Duration
from onthedot.model.instant import NEVER, format_instant
from onthedot.model.schedule import Schedule
from onthedot.store import Store
from onthedot.store.runs import claim as claiming
from onthedot.store.runs import claim_batch
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, Hands, every, spec

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


@pytest.fixture
def said():
    events: list[tuple[str, dict[str, Any]]] = []
    stop = telemetry.subscribe(lambda event: events.append((event.name, event.fields)))
    yield events
    stop()


async def test_the_next_slot_is_a_row_at_once(hands: Hands, times: Times):
    job = await hands.job(every(MINUTE))
    await times.advance(MINUTE)
    run = await hands.one()
    assert (run.slot, run.recurring) == (START + MINUTE, True)
    running, cursor = await hands.live(job)
    assert (running["id"], running["cursor"], running["node"]) == (run.id, 0, "n1")
    assert (cursor["slot"], bool(cursor["cursor"]), cursor["state"]) == (START + 2 * MINUTE, True, "pending")
    assert cursor["ready_at"] == START + 2 * MINUTE - 2000
    await hands.check()


async def test_others_have_their_turn_while_many_jobs_go_on(hands: Hands, times: Times, monkeypatch):
    """Nothing fires on the loop that plans a claim: at 35 µs a job, a claim of two hundred would hold it for 7 ms."""
    turns, seen = 0, list[int]()

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def follow(*given: Any) -> Any:
        seen.append(turns)
        return plan.on_claim(*given)

    monkeypatch.setattr(claim_batch, "on_claim", follow)
    for _ in range(3 * claiming.BREATH):
        await hands.job(every(MINUTE))
    await times.advance(MINUTE)
    beside = asyncio.ensure_future(others())
    claim = await hands.claim(limit=1000)
    beside.cancel()
    assert len(claim.runs) == len(seen) == 3 * claiming.BREATH
    if hands.store.driver.dialect == "postgres":  # SQLite's is planned in the writer's thread
        assert len(set(seen)) == 3
    await hands.check()


async def test_a_fast_job_is_claimed_up_to_the_lookahead(hands: Hands):
    """Each second, two seconds ahead: the claim says that there is more already."""
    await hands.job(every(1000))
    slots = []
    claim = await hands.claim()
    while claim.runs:
        slots += [run.slot - START for run in claim.runs]
        assert len(slots) < 9
        claim = await hands.claim()
    assert slots == [1000, 2000]
    assert claim.next_ready == START + 2000


async def test_the_job_keeps_the_newest_slot_claimed(hands: Hands, times: Times):
    job = await hands.job(every(MINUTE))
    await times.advance(MINUTE)
    await hands.one()
    record = await hands.store.get_record(1, job)
    assert (record.claimed_slot, record.slots_used) == (START + MINUTE, 1)


async def test_missed_slots_are_one_row_and_the_newest_fires(hands: Hands, times: Times, said):
    job = await hands.job(every(MINUTE))
    await times.advance(10 * MINUTE + 5)
    claim = await hands.claim()
    (run,) = claim.runs
    assert (run.id, run.slot, run.due_at) == (f"{job}-{START + 10 * MINUTE}", START + 10 * MINUTE, START + 10 * MINUTE)
    (row,) = await hands.ledger()
    assert (row["id"], row["until_slot"], row["slots"]) == (f"{job}-{START + MINUTE}", START + 9 * MINUTE, 9)
    assert (row["status"], row["reason"]) == ("skipped", "coalesced")
    assert claim.skipped == 1
    assert ("run.skipped", {"tenant": 1, "job_id": job, "reason": "coalesced", "n": 9}) in said
    assert (await hands.finish(run)).recorded == 1
    await hands.check()


async def test_a_retry_is_not_coalesced(hands: Hands, times: Times):
    """Catch-up applies at the first claim only."""
    await hands.job(every(MINUTE), catch_up="skip")
    await times.advance(MINUTE)
    first = await hands.one()
    await hands.finish(first, outcome=FAILED)
    await times.advance(3 * HOUR)
    claim = await hands.claim()
    assert [run.id for run in claim.runs if run.tries] == [first.id]


async def test_skip_waits_for_the_next_slot(hands: Hands, times: Times):
    job = await hands.job(every(HOUR), catch_up="skip")
    await times.advance(2 * HOUR + 61_000)
    claim = await hands.claim()
    assert claim.runs == []
    (row,) = await hands.ledger()
    assert (row["reason"], row["slots"]) == ("late", 2)
    (cursor,) = await hands.live(job)
    assert cursor["slot"] == START + 3 * HOUR
    await hands.check()


async def test_all_goes_to_the_backlog_in_order(hands: Hands, times: Times):
    job = await hands.job(every(HOUR), catch_up="all")
    await times.advance(5 * HOUR)
    first = await hands.one()
    waiting = [row for row in await hands.live(job) if row["backlog"]]
    assert first.slot == START + HOUR
    assert [row["slot"] for row in waiting] == [START + n * HOUR for n in (2, 3, 4, 5)]
    assert sorted(row["ready_at"] for row in waiting) == [row["ready_at"] for row in waiting]
    assert {bool(row["cursor"]) for row in waiting} == {False}
    await times.advance(1000)
    more = await hands.claim(100)
    assert [run.slot for run in more.runs] == [START + n * HOUR for n in (2, 3, 4, 5)]
    await hands.check()


async def test_the_end_of_a_schedule(hands: Hands, times: Times):
    job = await hands.job(every(MINUTE, end=format_instant(START + 2 * MINUTE)))
    for _ in range(2):
        await times.advance(MINUTE)
        await hands.finish(await hands.one())
    assert (await hands.store.get_job(1, job)).state == "ended"
    assert await hands.live(job) == []
    await hands.check()


async def test_count_counts_slots_fired_or_not(hands: Hands, times: Times):
    job = await hands.job(every(MINUTE, count=4))
    await times.advance(3 * MINUTE)
    assert (await hands.one()).slot == START + 3 * MINUTE
    await times.advance(5 * MINUTE)
    assert (await hands.one()).slot == START + 4 * MINUTE
    assert (await hands.store.get_job(1, job)).state == "ended"
    await hands.check()


async def test_jitter_is_kept_in_the_row(hands: Hands, times: Times):
    await hands.job(every(HOUR), jitter=Duration(10 * MINUTE))
    (cursor,) = await hands.live()
    assert START + HOUR < cursor["due_at"] < START + HOUR + 10 * MINUTE
    await times.set(cursor["due_at"])
    run = await hands.one()
    assert (run.slot, run.due_at) == (START + HOUR, cursor["due_at"])


async def test_expired_slots_of_a_recurring_job(hands: Hands, times: Times):
    await hands.job(every(HOUR), expires_in=Duration(1000))
    await times.advance(HOUR + 1001)
    assert (await hands.claim()).runs == []
    assert [row["reason"] for row in await hands.ledger()] == ["late"]
    await hands.check()


class TestQuarantine:
    async def test_one_bad_schedule_does_not_stop_the_others(self, hands: Hands, times: Times, said):
        bad, good = [view.id for view in await hands.create(spec(every(MINUTE)), spec(every(MINUTE)))]
        broken = '{"schedule":{"cron":"0 0 * * *","tz":"Gone/Zone"},"target":{"type":"webhook","url":"http://a/"}}'
        await hands.sql(f"UPDATE jobs SET spec = '{broken}', version = 2 WHERE id = {bad}")
        await times.advance(MINUTE)
        claim = await hands.claim()
        assert [run.job_id for run in claim.runs] == [good]
        view = await hands.store.get_job(1, bad)
        assert view.state == "quarantined"
        assert view.reason is not None
        assert "unknown time zone" in view.reason
        (row,) = await hands.live(bad)
        assert (row["state"], row["parked"], row["ready_at"], bool(row["cursor"])) == (
            "pending",
            "quarantined",
            NEVER,
            True,
        )
        assert [fields["job_id"] for name, fields in said if name == "job.quarantined"] == [bad]
        assert (await hands.claim()).runs == []
        await hands.check()

    async def test_an_edit_brings_it_back(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE))
        broken = '{"schedule":{"cron":"0 0 * * *","tz":"Gone/Zone"},"target":{"type":"webhook","url":"http://a/"}}'
        await hands.sql(f"UPDATE jobs SET spec = '{broken}', version = 2 WHERE id = {job}")
        await times.advance(MINUTE)
        await hands.claim()
        await hands.store.update_job(1, job, lambda _: spec(every(MINUTE)))
        await times.advance(MINUTE)
        assert (await hands.one()).slot == START + 2 * MINUTE
        await hands.check()

    async def test_its_next_run_is_not_cancelled(self, hands: Hands, times: Times):
        """The slot after it can't be computed; where it could, the job fired on though it was quarantined."""
        job = await hands.job(every(MINUTE))
        (row,) = await hands.live(job)
        await hands.sql(f"UPDATE jobs SET state = 'quarantined', reason = 'broken' WHERE id = {job}")
        with pytest.raises(Conflict, match=r"quarantined \(broken\); change the job first"):
            await hands.store.cancel_run(1, row["id"])
        assert await hands.live(job) == [row]

    async def test_a_slot_that_is_there_already_is_an_alarm_not_a_stop(self, hands: Hands, times: Times, said):
        """It can't happen. If it does, the other jobs of the batch go on."""
        bad, good = [view.id for view in await hands.create(spec(every(MINUTE)), spec(every(MINUTE)))]
        await hands.sql(
            "INSERT INTO runs"
            " (id, tenant, job_id, slot, kind, recurring, due_at, ready_at, requires, level, created_at)"
            f" SELECT '{bad}-{START + 2 * MINUTE}', 1, {bad}, {START + 2 * MINUTE}, kind, recurring, due_at,"
            f" {NEVER}, requires, level, created_at FROM runs WHERE job_id = {bad}"
        )
        await times.advance(MINUTE)
        claim = await hands.claim()
        assert {run.job_id for run in claim.runs} == {bad, good}
        assert ("ledger.conflict", {"run_id": f"{bad}-{START + 2 * MINUTE}"}) in said
        assert (await hands.store.get_job(1, bad)).state == "quarantined"


async def test_both_kinds_share_the_room(hands: Hands, times: Times):
    await hands.create(*[spec() for _ in range(60)], *[spec(every(MINUTE)) for _ in range(60)])
    await times.advance(MINUTE)
    kinds = [run.recurring for run in (await hands.claim(40)).runs]
    assert 10 <= sum(kinds) <= 30


async def test_the_room_that_one_kind_leaves_is_the_others(hands: Hands, times: Times):
    await hands.create(*[spec(every(MINUTE)) for _ in range(60)])
    await times.advance(MINUTE)
    assert len((await hands.claim(50)).runs) == 50


async def test_cron_in_a_zone(hands: Hands, times: Times):
    job = await hands.job(Schedule(cron="0 3 * * *", tz="Europe/Berlin"))
    (cursor,) = await hands.live(job)
    await times.set(cursor["slot"])
    assert (await hands.one()).slot == cursor["slot"]
    assert (await hands.live(job))[1]["slot"] == cursor["slot"] + DAY
