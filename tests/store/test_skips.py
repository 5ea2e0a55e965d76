"""A slot that a user leaves out: one row, passed over by all that follows, and taken back as if nothing had been."""

from __future__ import annotations

from typing import Any

import pytest

from onthedot.errors import Conflict, Invalid, NotFound, VersionMismatch
from onthedot.model.duration import MINUTE
from onthedot.model.instant import format_instant
from onthedot.model.job import JobView
from onthedot.plan import coming
from onthedot.store import Idempotency, Store
from tests.store.conftest import START, Times
from tests.store.given import change, create, cursor_of, fetch, history_of, runs_of
from tests.store.hands import FAILED, Hands, node_info

EVERY = {"every": "1m"}
CRON = {"cron": "20 * * * * *"}  # the same slots: all begins 20 s after a minute


def at(n: int) -> int:
    return START + n * MINUTE


async def fires(store: Store, job: JobView, most: int = 6) -> list[int]:
    """Minutes after the start at which it says that it will fire."""
    ahead = await store.job_ahead(1, job.id)
    slots = coming(ahead.record, ahead.cursor_slot, ahead.now, ahead.taken)
    return [(slot - START) // MINUTE for slot, _ in zip(slots, range(most), strict=False)]


async def fired(store: Store, times: Times, job: JobView, minutes: int) -> list[int]:
    """Minutes at which it fires from now on, claimed and finished each minute."""
    hands = Hands(store)
    await store.register(node_info(hands.node))
    for _ in range(minutes):
        await times.advance(MINUTE)
        if claimed := (await hands.claim()).runs:
            await hands.finish(*claimed)
        await hands.check()
    done = [row for row in await hands.ledger(job.id) if row["status"] == "done"]
    return [(row["slot"] - START) // MINUTE for row in done]


async def test_the_next_slot_is_left_out(store: Store, times: Times) -> None:
    job = await create(store, schedule=EVERY)
    after = await store.skip_slot(1, job.id, at(1))
    assert (after.version, (await cursor_of(store, job))["slot"]) == (1, at(2))
    (row,) = await history_of(store, job)
    assert (row["status"], row["reason"], row["slot"], row["finished_at"]) == ("skipped", "skipped", at(1), START)
    run = await store.get_run(1, f"{job.id}-{at(1)}")
    assert run.outcome == {"kind": "skipped", "actor": "onthedot", "actor_kind": "system"}
    await store.skip_slot(1, job.id, at(1))
    assert len(await history_of(store, job)) == 1, "left out before: it stays so"
    assert await fired(store, times, job, 3) == [2, 3]


async def test_slots_further_ahead_are_left_out_and_counted(store: Store, times: Times) -> None:
    job = await create(store, schedule={**EVERY, "count": 5})
    await store.skip_slot(1, job.id, at(3))
    await store.skip_slot(1, job.id, at(4))
    assert [row["slot"] for row in (await store.job_ahead(1, job.id)).skipped] == [at(3), at(4)]
    assert await fires(store, job) == [1, 2, 5]
    with pytest.raises(Invalid):
        await store.skip_slot(1, job.id, at(6))  # the count ends before it
    assert await fired(store, times, job, 7) == [1, 2, 5]
    assert (await store.get_job(1, job.id)).state == "ended"


async def test_it_outlasts_pause_edit_delete_and_a_clock_that_was_ahead(store: Store, times: Times) -> None:
    job = await create(store, schedule=EVERY)
    await store.skip_slot(1, job.id, at(5))
    await store.pause_job(1, job.id)
    await times.advance(2 * MINUTE + 1)
    await store.resume_job(1, job.id)
    await change(store, job, schedule=EVERY, name="x")
    await store.delete_job(1, job.id)
    await store.undelete_job(1, job.id)
    assert await fires(store, job, 3) == [3, 4, 6]
    await change(store, job, schedule=CRON)
    assert await fires(store, job, 3) == [3, 4, 6], "the new schedule has that slot, too"
    await times.set(at(4))
    await store.skip_slot(1, job.id, at(20))  # its row says a time that has not come
    await times.set(at(2) + 1)
    await store.pause_job(1, job.id)
    await store.resume_job(1, job.id)
    await Hands(store).check()
    assert await fires(store, job, 20) == [3, 4, *range(6, 20), *range(21, 25)]


async def test_taken_back_it_fires(store: Store, times: Times) -> None:
    job = await create(store, schedule={**EVERY, "count": 4})
    before = await runs_of(store, job), await fetch(store, "SELECT slots_used, state, ended_at FROM jobs")
    for slot in (at(1), at(3), at(2)):
        await store.skip_slot(1, job.id, slot)
    assert await fires(store, job) == [4]
    for slot in (at(2), at(1), at(3)):
        await store.unskip_slot(1, job.id, slot)
    assert await history_of(store, job) == []
    assert (await runs_of(store, job), await fetch(store, "SELECT slots_used, state, ended_at FROM jobs")) == before
    with pytest.raises(Conflict, match="not skipped"):
        await store.unskip_slot(1, job.id, at(1))
    assert await fired(store, times, job, 5) == [1, 2, 3, 4]


@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize("schedule", [{"in": "1m"}, {**EVERY, "count": 1}])
async def test_a_job_that_ends_by_it_lives_again(
    store: Store, times: Times, schedule: dict[str, Any], paused: bool
) -> None:
    job = await create(store, schedule=schedule)
    if paused:
        await store.pause_job(1, job.id)
    assert (await store.skip_slot(1, job.id, at(1))).state == "ended"
    back = await store.unskip_slot(1, job.id, at(1))
    await store.close_one_offs()
    assert back.state == (await store.get_job(1, job.id)).state == ("paused" if paused else "active")
    await store.resume_job(1, job.id)
    assert await fired(store, times, job, 2) == [1]
    assert (await store.get_job(1, job.id)).state == "ended"


async def test_a_former_schedule_s_slot_is_not_given_back_to_the_count(store: Store, times: Times) -> None:
    job = await create(store, schedule=EVERY)
    await store.skip_slot(1, job.id, at(3))
    await times.advance(1)
    await change(store, job, schedule={**CRON, "count": 2})
    assert await fires(store, job) == [1, 2]
    await store.unskip_slot(1, job.id, at(3))
    assert await fired(store, times, job, 5) == [1, 2]
    await change(store, job, schedule={"every": "7s"})
    await store.skip_slot(1, job.id, slot := (await cursor_of(store, job))["slot"])
    await change(store, job, schedule={"every": "1h"})
    with pytest.raises(Conflict, match="any more"):
        await store.unskip_slot(1, job.id, slot)


async def test_what_can_t_be_left_out_names_what_can(store: Store, times: Times) -> None:
    job = await create(store, schedule=EVERY)
    with pytest.raises(Invalid) as refused:
        await store.skip_slot(1, job.id, at(3) + 5)
    (problem,) = refused.value.problems
    near = f"{format_instant(at(3))} or {format_instant(at(4))}"
    assert problem.path == "slot"
    assert str(problem.accepted).endswith(near)
    await times.advance(MINUTE)
    with pytest.raises(Invalid, match="has passed"):
        await store.skip_slot(1, job.id, at(1))
    await times.set(at(1) - 1000)
    await Hands(store).one()
    with pytest.raises(Conflict, match="a node already has run"):
        await store.skip_slot(1, job.id, at(1))
    with pytest.raises(VersionMismatch):
        await store.skip_slot(1, job.id, at(2), if_match=7)
    with pytest.raises(NotFound):
        await store.skip_slot(2, job.id, at(2))
    assert await history_of(store, job) == []


async def test_what_is_decided_is_decided(store: Store, times: Times) -> None:
    job = await create(store, schedule=EVERY)
    await store.cancel_run(1, f"{job.id}-{at(1)}")
    with pytest.raises(Conflict, match="CANCELLED"):
        await store.skip_slot(1, job.id, at(1))
    with pytest.raises(Conflict, match="not skipped"):
        await store.unskip_slot(1, job.id, at(1))
    once = Idempotency("k", "2:x")
    await store.skip_slot(1, job.id, at(2), idempotency=once)
    await store.unskip_slot(1, job.id, at(2))
    await store.skip_slot(1, job.id, at(2), idempotency=once)
    assert await fires(store, job, 2) == [2, 3], "a repeat changes nothing more"
    await store.skip_slot(1, job.id, at(2))
    await times.set(at(2))
    with pytest.raises(Conflict, match="has passed"):
        await store.unskip_slot(1, job.id, at(2))


async def test_a_token_never_goes_down(store: Store, times: Times) -> None:
    hands = Hands(store)
    await store.register(node_info(hands.node))
    job = await create(store, schedule={"in": "1m"}, policy={"retry": {"attempts": 1}})
    (run,) = await runs_of(store, job)
    await times.set(at(1) - 1000)
    held = await hands.one()
    await store.give_back(hands.node, [(run["id"], held.token)])
    if [row["cursor"] for row in await runs_of(store, job)] == [True]:
        await store.skip_slot(1, job.id, at(1))
        assert (await store.get_run(1, run["id"])).attempts == []
        await store.unskip_slot(1, job.id, at(1))
        assert [row["token"] for row in await runs_of(store, job)] == [held.token]
    await times.set(at(1))
    again = await hands.one()
    assert again.token > held.token
    await hands.finish(again, outcome=FAILED)
    await hands.check()
