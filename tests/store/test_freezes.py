"""Pausing the whole installation, on both databases: rule by rule."""

from __future__ import annotations

import pytest

from onthedot.model.instant import parse_rfc3339
from onthedot.model.schedule import Schedule
from onthedot.store import Store
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, Hands, at, every, node_info, spec

SECOND, MINUTE = 1000, 60_000


@pytest.fixture
async def hands(store: Store, times: Times) -> Hands:
    await store.register(node_info("n1"))
    return Hands(store, "n1")


async def claimed(hands: Hands) -> list[str]:
    claim = await hands.claim()
    await hands.check()
    return [run.id for run in claim.runs]


async def skipped(hands: Hands, job_id: int) -> list[tuple[str | None, int, int | None, int | None]]:
    rows = await hands.ledger(job_id)
    return [(r["reason"], r["slot"], r["until_slot"], r["slots"]) for r in rows if r["status"] == "skipped"]


async def test_nothing_is_claimed_until_it_is_over(hands: Hands, times: Times):
    jobs = [
        await hands.job(every(MINUTE)),
        await hands.job(every(MINUTE), overlap="skip"),
        await hands.job(at(START + MINUTE)),
    ]
    found = await hands.store.freeze(1, "maintenance")
    assert (found.note, parse_rfc3339(found.since)) == ("maintenance", START)
    assert await hands.store.current_freeze() == found
    await times.advance(5 * MINUTE)
    assert await claimed(hands) == []
    assert await hands.store.unfreeze(1)
    assert await hands.store.current_freeze() is None
    assert await claimed(hands) == [f"{jobs[2]}-{START + MINUTE}"], "a one-off still fires, however late"
    for job_id in jobs[:2]:
        assert await skipped(hands, job_id) == [("paused", START + MINUTE, START + 4 * MINUTE, 4)]
    assert await claimed(hands) == [f"{jobs[0]}-{START + 5 * MINUTE}", f"{jobs[1]}-{START + 5 * MINUTE}"]


async def test_what_comes_after_it_follows_catch_up(hands: Hands, times: Times):
    """Nobody claimed for ten minutes after the end: that is downtime, not a pause."""
    job_id = await hands.job(every(MINUTE))
    await hands.store.freeze(1, None)
    await times.advance(2 * MINUTE + SECOND)
    await hands.store.unfreeze(1)
    await times.advance(10 * MINUTE)
    assert await claimed(hands) == []
    assert await claimed(hands) == [f"{job_id}-{START + 12 * MINUTE}"]
    assert await skipped(hands, job_id) == [
        ("paused", START + MINUTE, START + 2 * MINUTE, 2),
        ("coalesced", START + 3 * MINUTE, START + 11 * MINUTE, 9),
    ]


@pytest.mark.parametrize("policy", [{}, {"overlap": "skip"}])
async def test_what_is_asked_for_by_hand_runs_all_the_same(hands: Hands, times: Times, policy: dict[str, str]):
    job_id = await hands.job(every(MINUTE), **policy)
    await hands.store.freeze(1, None)
    await times.advance(3 * MINUTE)
    run = await hands.store.run_job(1, job_id)
    (found,) = (await hands.claim()).runs
    assert (found.id, found.kind) == (run.id, "manual")
    assert (await hands.finish(found)).recorded == 1
    assert await claimed(hands) == []
    assert (await hands.store.get_run(1, run.id)).status == "DONE"


async def test_retries_wait_for_its_end(hands: Hands, times: Times):
    await hands.job(at(START + SECOND))
    await times.advance(SECOND)
    run = await hands.one()
    await hands.finish(run, outcome=FAILED)
    await hands.store.freeze(1, None)
    await times.advance(MINUTE)
    assert await claimed(hands) == []
    await hands.store.unfreeze(1)
    assert await claimed(hands) == [run.id]


async def test_what_a_node_holds_is_recalled_and_recorded_as_paused(hands: Hands, times: Times):
    """Also what was claimed after the row was written, by a claim that did not see it yet."""
    recurring, once = await hands.job(every(MINUTE)), await hands.job(at(START + MINUTE))
    await times.set(START + MINUTE - SECOND)
    held = (await hands.claim()).runs
    assert {run.job_id for run in held} == {recurring, once}
    assert (await hands.store.poll_orders("n1")).orders == []
    await hands.store.freeze(1, None)
    orders = (await hands.store.poll_orders("n1")).orders
    assert {(order.run_id, order.what) for order in orders} == {(run.id, "recall") for run in held}
    await hands.store.give_back("n1", [(run.id, run.token) for run in held])
    await hands.check()
    assert [entry[:2] for entry in await skipped(hands, recurring)] == [("paused", START + MINUTE)]
    assert (await hands.store.poll_orders("n1")).orders == []
    await times.advance(MINUTE)
    assert await claimed(hands) == []
    await hands.store.unfreeze(1)
    assert f"{once}-{START + MINUTE}" in await claimed(hands), "a one-off still fires"


async def test_a_run_by_hand_that_a_node_holds_is_not_recalled(hands: Hands, times: Times):
    job_id = await hands.job(every(MINUTE))
    await hands.store.run_job(1, job_id)
    (run,) = (await hands.claim()).runs
    await hands.store.freeze(1, None)
    assert (await hands.store.poll_orders("n1")).orders == []
    assert (await hands.finish(run)).recorded == 1


async def test_a_job_that_was_paused_by_itself_stays_paused(hands: Hands, times: Times):
    paused, other = await hands.job(every(MINUTE)), await hands.job(every(MINUTE))
    await hands.store.pause_job(1, paused)
    await hands.store.freeze(1, None)
    await times.advance(2 * MINUTE + SECOND)
    await hands.store.unfreeze(1)
    await hands.claim()
    await times.advance(MINUTE)
    assert await claimed(hands) == [f"{other}-{START + 3 * MINUTE}"]
    assert (await hands.store.get_job(1, paused)).state == "paused"


async def test_what_is_created_and_changed_meanwhile_waits_too(hands: Hands, times: Times):
    old = await hands.job(every(MINUTE))
    await hands.store.freeze(1, None)
    await times.advance(MINUTE + SECOND)
    new = await hands.job(every(MINUTE))
    await hands.store.update_job(1, old, lambda _: spec(every(2 * MINUTE)))
    assert await skipped(hands, old) == [("paused", START + MINUTE, None, 1)]
    await times.advance(5 * MINUTE)
    assert await claimed(hands) == []
    await hands.store.unfreeze(1)
    assert await claimed(hands) == []
    first = START + MINUTE + SECOND
    assert await skipped(hands, new) == [("paused", first + MINUTE, first + 4 * MINUTE, 4)]
    assert [entry[0] for entry in await skipped(hands, old)] == ["paused", "paused"]


async def test_a_second_freeze_before_the_first_was_worked_off(hands: Hands, times: Times):
    job_id = await hands.job(every(MINUTE))
    await hands.store.freeze(1, "first")
    await times.advance(90 * SECOND)
    await hands.store.unfreeze(1)
    await hands.store.freeze(1, "second")
    await times.advance(90 * SECOND)
    await hands.store.unfreeze(1)
    assert await claimed(hands) == []
    assert await skipped(hands, job_id) == [("paused", START + MINUTE, START + 2 * MINUTE, 2)]


async def test_twice_is_once_and_the_note_may_be_changed(hands: Hands, times: Times):
    assert not await hands.store.unfreeze(1)
    first = await hands.store.freeze(1, "a")
    await times.advance(SECOND)
    assert await hands.store.freeze(1, None) == first
    second = await hands.store.freeze(1, "b")
    assert (second.since, second.note) == (first.since, "b")
    assert (await hands.store.stats(1)).freeze == second
    assert await hands.store.unfreeze(1)
    assert (await hands.store.stats(1)).freeze is None


async def test_what_waits_is_no_backlog_meanwhile(hands: Hands, times: Times):
    await hands.job(every(MINUTE))
    await hands.store.freeze(1, None)
    await times.advance(5 * MINUTE)
    assert (await hands.store.backlog()).due == 0
    await hands.store.unfreeze(1)
    assert (await hands.store.backlog()).due == 1


async def test_a_job_that_ends_in_it_has_ended(hands: Hands, times: Times):
    job_id = await hands.job(Schedule(every=every(MINUTE).every, count=2))
    await hands.store.freeze(1, None)
    await times.advance(5 * MINUTE)
    await hands.store.unfreeze(1)
    assert await claimed(hands) == []
    assert (await hands.store.get_job(1, job_id)).state == "ended"
    assert await skipped(hands, job_id) == [("paused", START + MINUTE, START + 2 * MINUTE, 2)]
