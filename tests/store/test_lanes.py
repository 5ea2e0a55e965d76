"""Overlap ≠ allow: at most one run of a job at a time, decided on what runs now."""

from __future__ import annotations

import pytest

from onthedot.model.instant import NEVER
from onthedot.plan import stopped_by
from onthedot.store import Store
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, Hands, at, every, node_info

MINUTE = 60_000


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


async def running_at_first_slot(hands: Hands, times: Times, overlap: str) -> int:
    job = await hands.job(every(MINUTE), overlap=overlap)
    await times.set(START + MINUTE)
    assert [run.slot for run in (await hands.claim()).runs] == [START + MINUTE]
    await times.set(START + 2 * MINUTE)
    return job


async def test_a_laned_run_is_not_claimed_ahead(hands: Hands, times: Times):
    await hands.job(every(MINUTE), overlap="skip")
    await times.set(START + MINUTE - 1)
    assert (await hands.claim()).next_ready == START + MINUTE
    await times.advance(1)
    assert (await hands.one()).slot == START + MINUTE


async def test_skip_gives_the_slot_up(hands: Hands, times: Times):
    job = await running_at_first_slot(hands, times, "skip")
    claim = await hands.claim()
    assert (claim.runs, claim.skipped) == ([], 1)
    (row,) = await hands.ledger(job)
    assert (row["slot"], row["status"], row["reason"]) == (START + 2 * MINUTE, "skipped", "overlap")
    await hands.check()


async def test_after_the_finish_the_next_slot_fires(hands: Hands, times: Times):
    job = await hands.job(every(MINUTE), overlap="skip")
    for n in (1, 2, 3):
        await times.set(START + n * MINUTE)
        await hands.finish(await hands.one())
    assert [row["status"] for row in await hands.ledger(job)] == ["done"] * 3
    await hands.check()


async def test_behind_those_that_find_their_lane_held_there_is_more(hands: Hands, times: Times):
    """They had the room of the claim: who takes what it brought for all there is leaves the others until they look
    again (seed 985: up to a second for each claim of what waited for a host that was well again)."""
    job = await running_at_first_slot(hands, times, "queue")
    await hands.store.run_job(1, job)
    other = await hands.job(every(MINUTE))
    await hands.store.run_job(1, other)
    claim = await hands.claim(limit=2)
    assert len(claim.runs) < 2
    assert claim.next_ready == claim.now
    claims = [await hands.claim(limit=2) for _ in range(2)]
    assert other in {run.job_id for each in (claim, *claims) for run in each.runs}
    assert claims[-1].next_ready != claims[-1].now, "that was all"
    await hands.check()


class TestQueue:
    async def test_one_waits_and_is_released_by_the_finish(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE), overlap="queue")
        await times.set(START + MINUTE)
        first = await hands.one()
        await times.set(START + 2 * MINUTE)
        assert (await hands.claim()).runs == []
        waiter = next(row for row in await hands.live(job) if row["parked"] == "lane")
        assert (waiter["ready_at"], bool(waiter["cursor"]), waiter["slot"]) == (NEVER, False, START + 2 * MINUTE)
        await hands.check()
        await hands.finish(first)
        assert (await hands.one()).id == waiter["id"]
        await hands.check()

    async def test_a_second_one_does_not(self, hands: Hands, times: Times):
        job = await running_at_first_slot(hands, times, "queue")
        await hands.claim()
        await times.set(START + 3 * MINUTE)
        assert (await hands.claim()).skipped == 1
        assert [row["reason"] for row in await hands.ledger(job)] == ["overlap"]

    async def test_runs_by_hand_wait_for_their_turn_one_by_one(self, hands: Hands, times: Times):
        job = await running_at_first_slot(hands, times, "skip")
        first = next(row for row in await hands.live(job) if row["state"] == "running")
        ids = [(await hands.store.run_job(1, job)).id for _ in range(3)]
        assert (await hands.claim()).runs == []
        held = [run for run in await hands.store.held("n1") if run[0] == first["id"]]
        assert len(held) == 1
        done = []
        await hands.store.give_back("n1", held)
        for _ in range(4):
            (run,) = (await hands.claim()).runs
            done.append(run.id)
            await hands.finish(run)
            await hands.check()
        assert set(done) == {first["id"], *ids}


class TestReplace:
    async def test_the_old_one_is_ordered_to_stop_and_the_new_one_follows(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE), overlap="replace")
        await times.set(START + MINUTE)
        old = await hands.one()
        await times.set(START + 2 * MINUTE)
        assert (await hands.claim()).runs == []
        (order,) = (await hands.store.poll_orders("n1")).orders
        newer = f"{job}-{START + 2 * MINUTE}"
        assert (order.run_id, order.token, order.what, order.by) == (old.id, 1, "cancel", newer)
        await hands.finish(old, outcome=stopped_by(order.by))
        new = await hands.one()
        assert new.slot == START + 2 * MINUTE
        await hands.finish(new)
        assert [row["status"] for row in await hands.ledger(job)] == ["cancelled", "done"]
        view = await hands.store.get_run(1, old.id)
        assert (view.reason, view.error) == ("replaced", f"replaced by run {newer}")
        assert view.outcome == {"kind": "cancelled", "replaced_by": newer}
        await hands.check()

    async def test_an_older_one_that_comes_late_does_not_replace_the_newer(self, hands: Hands, times: Times):
        """Missed slots that all fire come a millisecond apart, and one of them was let go after younger ones."""
        job = await hands.job(every(MINUTE), overlap="replace", catch_up="all", catch_up_limit=10)
        await times.set(START + 5 * MINUTE)
        first = await hands.one()
        assert first.slot == START + MINUTE
        await times.advance(1)  # two of the four others are ready, and the second waits
        assert (await hands.claim()).runs == []
        await times.advance(10)
        await hands.finish(first, outcome=stopped_by("x"))
        run = await hands.one()
        waiting = [row["slot"] for row in await hands.live(job) if row["parked"] == "lane"]
        assert waiting == [START + 5 * MINUTE], "the newest waits"
        assert run.slot < START + 5 * MINUTE
        await hands.check()

    async def test_a_user_who_cancelled_it_first_is_who_cancelled_it(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE), overlap="replace")
        await times.set(START + MINUTE)
        old = await hands.one()
        await hands.store.cancel_run(1, old.id)
        await times.set(START + 2 * MINUTE)
        await hands.claim()
        (order,) = (await hands.store.poll_orders("n1")).orders
        assert (order.what, order.by) == ("cancel", None)
        await hands.finish(old, outcome=stopped_by(order.by))
        view = await hands.store.get_run(1, old.id)
        assert (view.status, view.reason, view.error) == ("CANCELLED", None, "cancelled by a user")
        assert (await hands.one()).job_id == job

    @pytest.mark.parametrize("by", ["finish", "give back"])
    async def test_replaced_before_its_node_had_read_so(self, hands: Hands, times: Times, by: str):
        await hands.job(every(MINUTE), overlap="replace")
        await times.set(START + MINUTE)
        old = await hands.one()
        await times.set(START + 2 * MINUTE)
        await hands.claim()
        if by == "finish":
            await hands.finish(old, outcome=FAILED)
        else:
            await hands.store.give_back("n1", [(old.id, old.token)])
        view = await hands.store.get_run(1, old.id)
        assert (view.status, view.reason) == ("CANCELLED", "replaced")
        assert (await hands.one()).slot == START + 2 * MINUTE
        await hands.check()

    async def test_who_waited_before_gives_way_to_the_newest(self, hands: Hands, times: Times):
        job = await running_at_first_slot(hands, times, "replace")
        await hands.claim()
        await times.set(START + 3 * MINUTE)
        await hands.claim()
        waiting = [row["slot"] for row in await hands.live(job) if row["parked"] == "lane"]
        assert waiting == [START + 3 * MINUTE]
        assert [(row["slot"], row["reason"]) for row in await hands.ledger(job)] == [(START + 2 * MINUTE, "overlap")]
        await hands.check()


async def test_a_retry_frees_the_lane_and_waits_for_its_turn(hands: Hands, times: Times):
    job = await hands.job(every(MINUTE), overlap="skip")
    await times.set(START + MINUTE)
    first = await hands.one()
    await times.set(START + 2 * MINUTE - 100)
    await hands.finish(first, outcome=FAILED)
    await times.set(START + 2 * MINUTE)
    second = await hands.one()
    assert second.slot == START + 2 * MINUTE
    await times.advance(10_000)
    assert (await hands.claim()).runs == []
    await hands.finish(second)
    assert (await hands.one()).id == first.id
    assert len(await hands.ledger(job)) == 1
    await hands.check()


async def test_a_lost_holder_frees_the_lane(hands: Hands, times: Times):
    job = await running_at_first_slot(hands, times, "queue")
    await hands.claim()
    await hands.store.register(node_info("n2"))
    assert await hands.store.reclaim() == 1, "n1 never registered: an unknown node"
    other = Hands(hands.store, "n2")
    claim = await other.claim()
    assert len(claim.runs) == 1
    assert claim.runs[0].job_id == job
    await hands.check()


async def test_missed_slots_of_a_lane_are_coalesced(hands: Hands, times: Times):
    job = await hands.job(every(MINUTE), overlap="queue")
    await times.set(START + 5 * MINUTE)
    assert (await hands.one()).slot == START + 5 * MINUTE
    (row,) = await hands.ledger(job)
    assert (row["reason"], row["slots"]) == ("coalesced", 4)
    await hands.check()


async def test_catch_up_all_in_a_lane_runs_one_by_one(hands: Hands, times: Times):
    job = await hands.job(every(MINUTE), overlap="queue", catch_up="all")
    await times.set(START + 3 * MINUTE)
    slots = []
    for _ in range(8):
        await times.advance(10)
        runs = (await hands.claim()).runs
        assert len(runs) <= 1
        slots += [run.slot for run in runs]
        await hands.finish(*runs)
        await hands.check()
    ended = {row["slot"]: row["status"] for row in await hands.ledger(job)}
    assert set(ended) == {START + n * MINUTE for n in (1, 2, 3)}
    assert slots[0] == START + MINUTE


async def test_other_jobs_are_not_held_up(hands: Hands, times: Times):
    await running_at_first_slot(hands, times, "skip")
    other = await hands.job(at(START + 2 * MINUTE + 5), overlap="skip")
    await times.advance(5)
    assert [run.job_id for run in (await hands.claim()).runs] == [other]


async def test_a_paused_job_s_waiter_waits_for_the_resume(hands: Hands, times: Times):
    job = await hands.job(every(MINUTE), overlap="queue")
    await times.set(START + MINUTE)
    first = await hands.one()
    await times.set(START + 2 * MINUTE)
    await hands.claim()
    await hands.store.pause_job(1, job)
    await hands.check()
    await hands.finish(first)
    await hands.check()
    assert (await hands.claim()).runs == []
    await hands.store.resume_job(1, job)
    assert (await hands.one()).slot == START + 2 * MINUTE
    await hands.check()


async def test_a_lane_that_waits_for_nobody_is_let_go(hands: Hands, times: Times):
    """It must not happen; if it does, the watch over the ledger ends it."""
    await running_at_first_slot(hands, times, "queue")
    await hands.claim()
    await hands.sql("DELETE FROM runs WHERE state = 'running'")
    await hands.store.watch_ledger()
    assert (await hands.one()).slot == START + 2 * MINUTE
