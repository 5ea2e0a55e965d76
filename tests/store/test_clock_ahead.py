"""The database's clock was ahead for a moment: nobody is silent until it comes there again, and nothing fires twice."""

from __future__ import annotations

from typing import ClassVar

import pytest

from onthedot import telemetry
from onthedot.model.instant import format_instant
from onthedot.model.job import JobSpec, JobView
from onthedot.model.run import ClaimedRun
from onthedot.store import Store
from tests.store.conftest import START, Times
from tests.store.given import cursor_of, spec
from tests.store.hands import FAILED, Hands

SECOND, MINUTE = 1000, 60_000
AHEAD = 20 * MINUTE
BEGIN = START - START % MINUTE + MINUTE


@pytest.fixture
def hands(store: Store) -> Hands:
    return Hands(store)


class Fired:
    """Plays a node: claims what there is, fires what is due, holds the rest ahead as nodes do."""

    def __init__(self, hands: Hands, times: Times) -> None:
        self.hands = hands
        self.times = times
        self.slots: list[int] = []
        self.held: dict[str, object] = {}

    async def until(self, end: int, step: int = SECOND) -> None:
        while self.times.now < end:
            await self.times.set(min(end, self.times.now + step))
            await self.now()

    async def now(self) -> None:
        self.held |= {run.id: run for run in (await self.hands.claim()).runs}
        due = [run for run in self.held.values() if run.due_at <= self.times.now]  # type: ignore[attr-defined]
        for run in due:
            self.slots.append(run.slot)  # type: ignore[attr-defined]
            del self.held[run.id]  # type: ignore[attr-defined]
        if due:
            await self.hands.finish(*due)  # type: ignore[arg-type]
        await self.hands.check()

    async def orders(self) -> None:
        """What is recalled goes back, as the keeper does it."""
        polled = await self.hands.store.poll_orders("n1")
        await self.hands.store.give_back("n1", [(order.run_id, order.token) for order in polled.orders])
        for order in polled.orders:
            self.held.pop(order.run_id, None)


async def put_right(store: Store) -> int:
    total, after = 0, -1
    while after:
        count, after = await store.put_floors_right(max(after, 0))
        total += count
    return total


@pytest.fixture
async def node(hands: Hands, times: Times) -> Fired:
    await times.set(BEGIN)
    return Fired(hands, times)


def slots(first: int, last: int, step: int = 10 * SECOND) -> list[int]:
    return list(range(first, last + 1, step))


EACH_TEN = {"cron": "*/10 * * * * *"}


async def a_moment_ahead(node: Fired) -> None:
    """A minute as it should be, 20 s of twenty minutes ahead, and right again."""
    await node.until(BEGIN + MINUTE)
    await node.times.advance(AHEAD)
    await node.until(BEGIN + MINUTE + AHEAD + 20 * SECOND)
    await node.times.set(BEGIN + MINUTE + 20 * SECOND)


class TestRecurring:
    @pytest.mark.parametrize("overlap", ["allow", "skip"])
    @pytest.mark.parametrize("catch_up", ["latest", "skip", "all"])
    async def test_it_goes_on_and_no_slot_fires_twice(self, node: Fired, overlap: str, catch_up: str) -> None:
        policy = {"overlap": overlap, "catch_up": catch_up, "catch_up_limit": 5}
        (job,) = await node.hands.create(spec(schedule=EACH_TEN, policy=policy))
        await a_moment_ahead(node)
        early = [slot for slot in node.slots if slot > node.times.now]
        assert early, "the clock was ahead, and so were they"
        assert await put_right(node.hands.store) == 1
        await node.orders()
        await node.hands.check()
        back = node.times.now
        assert (await cursor_of(node.hands.store, job))["slot"] == back + 10 * SECOND
        await node.until(BEGIN + MINUTE + AHEAD + 2 * MINUTE, 5 * SECOND)
        assert sorted(node.slots) == sorted(set(node.slots)), "a slot was fired twice"
        assert set(slots(back + 10 * SECOND, node.times.now)) <= set(node.slots), "a slot was not fired"
        for row in await node.hands.ledger(job.id):
            assert row["status"] == "done" or (row["until_slot"] or row["slot"]) <= back

    async def test_the_range_that_was_given_up_ends_now(self, node: Fired) -> None:
        (job,) = await node.hands.create(spec(schedule=EACH_TEN))
        await a_moment_ahead(node)
        await put_right(node.hands.store)
        (gap,) = [row for row in await node.hands.ledger(job.id) if row["status"] == "skipped"]
        first, last = BEGIN + MINUTE + 10 * SECOND, BEGIN + MINUTE + 20 * SECOND
        assert (gap["slot"], gap["until_slot"], gap["slots"]) == (first, last, 2)

    async def test_it_is_said_aloud_once(self, node: Fired) -> None:
        (job,) = await node.hands.create(spec(schedule=EACH_TEN))
        await a_moment_ahead(node)
        assert await node.hands.store.floors_ahead() == [job.id]
        said: list[dict[str, object]] = []
        stop = telemetry.subscribe(lambda event: said.append(event.fields) if event.name == "floor.repaired" else None)
        try:
            await put_right(node.hands.store)
            assert await put_right(node.hands.store) == 0
        finally:
            stop()
        assert said == [{"n": 1, "jobs": [job.id]}]
        assert "1 jobs" in (node.hands.store.clock_note or "")
        assert await node.hands.store.floors_ahead() == []

    @pytest.mark.parametrize("verb", ["edit", "schedule", "pause", "run"])
    async def test_any_verb_puts_its_job_right(self, node: Fired, verb: str) -> None:
        (job,) = await node.hands.create(spec(schedule=EACH_TEN))
        await a_moment_ahead(node)
        store = node.hands.store
        version = (await store.get_job(1, job.id)).version
        if verb == "edit":
            await store.update_job(1, job.id, lambda old: _named(old))
        elif verb == "schedule":
            await store.update_job(1, job.id, lambda _: spec(schedule={"cron": "*/5 * * * * *"}))
        elif verb == "pause":
            await store.pause_job(1, job.id)
            await store.resume_job(1, job.id)
        else:
            await store.run_job(1, job.id)
            assert (await store.get_job(1, job.id)).version == version
        await node.hands.check()
        step = 5 if verb == "schedule" else 10
        assert (await cursor_of(store, job))["slot"] == node.times.now + step * SECOND
        assert await put_right(store) == 0

    async def test_a_job_that_ended_in_that_future_lives_again(self, node: Fired) -> None:
        (job,) = await node.hands.create(spec(schedule={"every": "10s", "count": 30}))
        await a_moment_ahead(node)
        assert (await node.hands.store.get_job(1, job.id)).state == "ended"
        assert await put_right(node.hands.store) == 1
        await node.orders()
        assert (await node.hands.store.get_job(1, job.id)).state == "active"
        await node.until(BEGIN + AHEAD + 2 * MINUTE, 5 * SECOND)
        ledger = await node.hands.ledger(job.id)
        assert sum(row["slots"] or 1 for row in ledger) == 30
        assert (await node.hands.store.get_job(1, job.id)).state == "ended"

    async def test_a_slot_that_was_too_late_in_that_future_is_not_too_late(self, node: Fired) -> None:
        """Each half hour, at most a minute late: 10:30 was given up at 10:40, which it was not."""
        (job,) = await node.hands.create(spec(schedule={"cron": "0 */10 * * * *"}, policy={"catch_up": "skip"}))
        slot = (await cursor_of(node.hands.store, job))["slot"]
        await node.times.set(slot + 5 * MINUTE)
        await node.now()
        assert node.slots == []
        await node.times.set(BEGIN + SECOND)
        assert await put_right(node.hands.store) == 1
        assert await node.hands.ledger(job.id) == []
        await node.until(slot + SECOND, 5 * SECOND)
        assert node.slots == [slot]

    async def test_what_was_fired_early_stays_fired(self, node: Fired) -> None:
        (job,) = await node.hands.create(spec(schedule={"cron": "0 */10 * * * *"}))
        slot = (await cursor_of(node.hands.store, job))["slot"]
        await node.times.set(slot + SECOND)
        await node.now()
        await node.times.set(BEGIN + SECOND)
        assert await put_right(node.hands.store) == 0
        assert (await cursor_of(node.hands.store, job))["slot"] == slot + 10 * MINUTE

    async def test_a_paused_one_waits_for_its_resume(self, node: Fired) -> None:
        (job,) = await node.hands.create(spec(schedule=EACH_TEN))
        await a_moment_ahead(node)
        await node.times.advance(AHEAD)
        await node.hands.store.pause_job(1, job.id)
        await node.times.advance(-AHEAD)
        assert await put_right(node.hands.store) == 1
        await node.orders()
        await node.until(node.times.now + MINUTE)
        assert max(slot for slot in node.slots if slot <= node.times.now) <= BEGIN + MINUTE
        await node.hands.store.resume_job(1, job.id)
        await node.until(node.times.now + 20 * SECOND)
        assert node.times.now - node.slots[-1] <= 10 * SECOND


class TestRetries:
    """They come as long after now as they were to come after the try that ended in that future."""

    POLICY: ClassVar = {"retry": {"attempts": 3, "backoff": "5s"}}

    async def comes(self, node: Fired, job: JobView) -> int:
        (ready_at,) = [row["ready_at"] for row in await node.hands.live(job.id) if row["tries"]]
        return int(ready_at)

    @pytest.fixture(params=["recurring", "one-off", "by hand"])
    async def run(self, node: Fired, request: pytest.FixtureRequest) -> ClaimedRun:
        """Begun when it was due; then the clock is ahead."""
        schedule = {"recurring": EACH_TEN, "one-off": {"in": "10s"}, "by hand": {"cron": "0 0 1 1 *"}}[request.param]
        (job,) = await node.hands.create(spec(schedule=schedule, policy=self.POLICY))
        if request.param == "by hand":
            await node.hands.store.run_job(1, job.id)
        await node.times.set(BEGIN + 10 * SECOND)
        (run,) = (await node.hands.claim()).runs
        await node.times.set(BEGIN + AHEAD)
        return run

    @pytest.fixture
    async def job(self, node: Fired, run: ClaimedRun) -> JobView:
        await node.hands.finish(run, outcome=FAILED)
        return await node.hands.store.get_job(1, run.job_id)

    async def test_one_that_waits(self, node: Fired, job: JobView) -> None:
        await node.times.set(BEGIN + 20 * SECOND)
        await put_right(node.hands.store)
        comes = await self.comes(node, job)
        assert BEGIN + 23 * SECOND < comes <= BEGIN + 27 * SECOND
        await put_right(node.hands.store)
        assert await self.comes(node, job) == comes, "once"

    async def test_one_of_a_paused_job(self, node: Fired, job: JobView) -> None:
        await node.hands.store.pause_job(1, job.id)
        await node.times.set(BEGIN + 20 * SECOND)
        await put_right(node.hands.store)
        await node.hands.store.resume_job(1, job.id)
        assert BEGIN + 23 * SECOND < await self.comes(node, job) <= BEGIN + 27 * SECOND

    async def test_one_whose_try_ends_when_the_clock_is_right_again(self, node: Fired, run: ClaimedRun) -> None:
        """It is not recorded as having ended before it began."""
        late = node.hands.ended(run, FAILED, now=node.times.now)
        await node.times.set(BEGIN + 20 * SECOND)
        await put_right(node.hands.store)
        await node.hands.store.finish("n1", [late])
        job = await node.hands.store.get_job(1, run.job_id)
        assert BEGIN + 23 * SECOND < await self.comes(node, job) <= BEGIN + 27 * SECOND

    async def test_what_was_tried_early_waits_for_its_own_time(self, node: Fired) -> None:
        (job,) = await node.hands.create(spec(schedule={"in": "10m"}, policy=self.POLICY))
        await node.times.set(BEGIN + AHEAD)
        (run,) = (await node.hands.claim()).runs
        await node.hands.finish(run, outcome=FAILED)
        await node.times.set(BEGIN + SECOND)
        await put_right(node.hands.store)
        assert await self.comes(node, job) == BEGIN + 10 * MINUTE - 2 * SECOND
        await node.until(BEGIN + 10 * MINUTE, MINUTE)
        assert node.slots == [BEGIN + 10 * MINUTE]

    async def test_so_it_does_if_it_is_given_back(self, node: Fired) -> None:
        (job,) = await node.hands.create(spec(schedule={"in": "10m"}, policy=self.POLICY))
        await node.times.set(BEGIN + AHEAD)
        (run,) = (await node.hands.claim()).runs
        await node.hands.finish(run, outcome=FAILED)
        await node.times.advance(10 * SECOND)
        (again,) = (await node.hands.claim()).runs
        await node.times.set(BEGIN + SECOND)
        await node.hands.store.give_back("n1", [(again.id, again.token)])
        assert await self.comes(node, job) == BEGIN + 10 * MINUTE - 2 * SECOND

    async def test_one_that_was_to_wait_for_long_does(self, node: Fired) -> None:
        policy = {"retry": {"attempts": 3, "backoff": "10m", "max": "1h"}}
        (job,) = await node.hands.create(spec(schedule={"in": "10s"}, policy=policy))
        await node.times.set(BEGIN + 10 * SECOND)
        (run,) = (await node.hands.claim()).runs
        await node.hands.finish(run, outcome=FAILED)
        before = await self.comes(node, job)
        await put_right(node.hands.store)
        assert await self.comes(node, job) == before

    async def test_many_are_looked_at_in_portions(self, node: Fired, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("onthedot.store.jobs.waiting_ahead.LOOKED_AT", 3)
        monkeypatch.setattr("onthedot.store.jobs.waiting_ahead.AT_ONCE", 2)
        jobs = await node.hands.create(*[spec(schedule={"in": "10s"}, policy=self.POLICY) for _ in range(8)])
        await node.times.set(BEGIN + AHEAD)
        await node.hands.finish(*(await node.hands.claim()).runs, outcome=FAILED)
        await node.times.set(BEGIN + 20 * SECOND)
        await put_right(node.hands.store)
        assert max([await self.comes(node, job) for job in jobs]) <= BEGIN + 27 * SECOND


class TestReleased:
    """What need not wait any more was made ready at a time that has not come."""

    async def test_by_a_resume(self, node: Fired) -> None:
        (job,) = await node.hands.create(spec(schedule={"in": "10s"}))
        await node.hands.store.run_job(1, job.id)
        await node.hands.sql("UPDATE runs SET parked = 'paused', resume_at = due_at, ready_at = 9223372036854775807")
        await node.times.set(BEGIN + AHEAD)
        await node.hands.sql(f"UPDATE runs SET parked = NULL, resume_at = NULL, ready_at = {node.times.now}")
        await node.times.set(BEGIN + SECOND)
        await put_right(node.hands.store)
        ready = {row["kind"]: row["ready_at"] for row in await node.hands.live(job.id)}
        assert ready["manual"] == BEGIN + SECOND

    async def test_by_the_end_of_who_held_the_lane(self, node: Fired) -> None:
        (job,) = await node.hands.create(spec(schedule={"cron": "0 0 1 1 *"}, policy={"overlap": "queue"}))
        await node.hands.store.run_job(1, job.id)
        await node.hands.store.run_job(1, job.id)
        (holder,) = (await node.hands.claim()).runs
        assert (await node.hands.claim()).runs == []
        await node.times.set(BEGIN + AHEAD)
        await node.hands.finish(holder)
        await node.times.set(BEGIN + SECOND)
        assert (await node.hands.claim()).runs == []
        await put_right(node.hands.store)
        assert len((await node.hands.claim()).runs) == 1


class TestLanes:
    async def test_who_waits_for_the_lane_waits_for_its_time_and_is_nobodys_older(self, node: Fired) -> None:
        """Each 10 s, one after the other. The slot of that future waited for its lane, and is due only then."""
        policy = {"overlap": "queue"}
        (job,) = await node.hands.create(spec(schedule=EACH_TEN, policy=policy))
        await node.times.set(BEGIN + 10 * SECOND)
        (holder,) = (await node.hands.claim()).runs
        await node.times.set(BEGIN + AHEAD)
        assert (await node.hands.claim()).runs == []
        (waits,) = [row for row in await node.hands.live(job.id) if row["parked"] == "lane"]
        await node.times.set(BEGIN + 11 * SECOND)
        assert await put_right(node.hands.store) == 1
        (after,) = [row for row in await node.hands.live(job.id) if row["id"] == waits["id"]]
        assert (after["parked"], after["ready_at"]) == (None, waits["slot"])
        await node.hands.finish(holder)
        await node.until(BEGIN + AHEAD + MINUTE, 5 * SECOND)
        assert waits["slot"] in node.slots
        assert set(slots(BEGIN + 20 * SECOND, node.times.now)) <= set(node.slots)


def _named(old: JobSpec) -> JobSpec:
    return spec(schedule=EACH_TEN, name="other")


class TestWhatIsLeftAlone:
    @pytest.mark.parametrize("schedule", [EACH_TEN, {"every": "10s"}])
    async def test_a_job_that_was_told_when_it_begins(self, node: Fired, schedule: dict[str, str]) -> None:
        await node.times.advance(AHEAD)
        (job,) = await node.hands.create(spec(schedule=schedule))
        await node.times.set(BEGIN)
        assert await put_right(node.hands.store) == 0
        assert (await node.hands.store.get_job(1, job.id)).next_run == job.next_run

    async def test_what_a_node_had_in_its_hands(self, node: Fired) -> None:
        """Its row stays: were the slot put into the queue anew, its token would be given a second time."""
        (job,) = await node.hands.create(spec(schedule=EACH_TEN))
        await node.times.set(BEGIN + AHEAD + 9 * SECOND)
        await node.now()
        await node.now()
        (held,) = node.held
        await node.hands.store.pause_job(1, job.id)
        await node.orders()
        await node.hands.store.resume_job(1, job.id)
        await node.times.set(BEGIN + SECOND)
        assert await put_right(node.hands.store) == 1
        (row,) = [row for row in await node.hands.ledger(job.id) if row["id"] == held]
        assert (row["status"], row["token"]) == ("skipped", 1)
        await node.until(BEGIN + AHEAD + MINUTE, 5 * SECOND)
        assert BEGIN + AHEAD + 10 * SECOND not in node.slots

    async def test_a_run_cancelled_far_ahead(self, node: Fired) -> None:
        (job,) = await node.hands.create(spec(schedule={"cron": "0 0 1 1 *"}))
        (run,) = await node.hands.live(job.id)
        await node.hands.store.cancel_run(1, run["id"])
        before = await node.hands.live(job.id)
        assert await node.hands.store.floors_ahead() == []
        assert await put_right(node.hands.store) == 0
        assert [dict(row) for row in await node.hands.live(job.id)] == [dict(row) for row in before]

    async def test_what_a_node_holds_ahead_as_always(self, node: Fired) -> None:
        (job,) = await node.hands.create(spec(schedule={"every": "2s"}))
        await node.hands.one()
        assert await put_right(node.hands.store) == 0
        assert (await node.hands.store.poll_orders("n1")).orders == []
        await node.hands.check()
        assert job.id

    async def test_a_one_off_that_fired_early_stays_fired(self, node: Fired) -> None:
        (job,) = await node.hands.create(spec(schedule={"in": "10m"}))
        await node.times.advance(AHEAD)
        await node.now()
        await node.times.set(BEGIN + SECOND)
        assert await put_right(node.hands.store) == 0
        await node.until(BEGIN + 15 * MINUTE, MINUTE)
        assert node.slots == [BEGIN + 10 * MINUTE]
        assert (await node.hands.store.get_job(1, job.id)).state == "ended"

    async def test_many_jobs_are_looked_at_in_portions(self, node: Fired, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("onthedot.store.jobs.floor_watch.LOOKED_AT", 10)
        monkeypatch.setattr("onthedot.store.jobs.floor_watch.AT_ONCE", 3)
        for _ in range(25):
            await node.hands.create(spec(schedule=EACH_TEN))
        await node.until(BEGIN + 10 * SECOND, 10 * SECOND)
        await node.times.advance(AHEAD)
        await node.now()
        await node.times.set(BEGIN + 11 * SECOND)
        assert len(await node.hands.store.floors_ahead(100)) == 25
        assert (await node.hands.store.put_floors_right())[0] == 10
        assert await put_right(node.hands.store) == 15


class TestChangedInThatFuture:
    """The schedule was changed while the clock was ahead: what had been given up by then is of another schedule."""

    @pytest.fixture
    async def job(self, node: Fired) -> JobView:
        """Each 7 s; a range of it given up by a clock that was ahead, then each 2 s, told to begin in that future."""
        (job,) = await node.hands.create(spec(schedule={"every": "7s"}))
        await node.times.advance(AHEAD)
        await node.now()
        changed = await node.hands.store.update_job(1, job.id, lambda _: spec(schedule={"every": "2s"}))
        assert changed.next_run is not None
        return job

    @staticmethod
    async def given_up(node: Fired, job: JobView) -> list[tuple[int, int | None, int | None]]:
        rows = [row for row in await node.hands.ledger(job.id) if row["status"] == "skipped"]
        return [(row["slot"], row["until_slot"], row["slots"]) for row in rows]

    async def test_another_change_begins_now(self, node: Fired, job: JobView) -> None:
        await node.times.set(BEGIN + MINUTE)
        await node.hands.store.update_job(1, job.id, lambda _: spec(schedule={"every": "3s"}))
        await node.hands.check()
        assert (await cursor_of(node.hands.store, job))["slot"] == node.times.now + 3 * SECOND
        assert await self.given_up(node, job) == [(BEGIN + 7 * SECOND, BEGIN + MINUTE, None)]

    async def test_so_it_does_after_a_one_off(self, node: Fired, job: JobView) -> None:
        at = format_instant(node.times.now + 10 * MINUTE)
        await node.hands.store.update_job(1, job.id, lambda _: spec(schedule={"at": at}))
        await node.times.set(BEGIN + MINUTE)
        await node.hands.store.update_job(1, job.id, lambda _: spec(schedule={"every": "3s"}))
        await node.hands.check()
        assert (await cursor_of(node.hands.store, job))["slot"] == node.times.now + 3 * SECOND

    async def test_what_is_left_of_its_range_is_not_counted_by_the_new_one(self, node: Fired, job: JobView) -> None:
        await node.times.set(BEGIN + 2 * AHEAD)
        await node.now()
        await node.times.set(BEGIN + MINUTE)
        assert await put_right(node.hands.store) == 1
        await node.hands.check()
        assert await self.given_up(node, job) == [(BEGIN + 7 * SECOND, BEGIN + MINUTE, None)]
        assert (await cursor_of(node.hands.store, job))["slot"] == BEGIN + AHEAD + 2 * SECOND, "as its answer said"

    async def test_nor_does_it_give_the_new_one_more_than_its_count(self, node: Fired) -> None:
        (job,) = await node.hands.create(spec(schedule={"every": "7s"}))
        await node.times.advance(AHEAD)
        await node.now()
        await node.hands.store.update_job(1, job.id, lambda _: spec(schedule={"cron": "*/2 * * * * *", "count": 30}))
        await node.until(node.times.now + 10 * SECOND)
        await node.times.advance(20 * SECOND)
        await node.now()
        await node.times.set(BEGIN + MINUTE)
        assert await put_right(node.hands.store) == 1
        await node.orders()
        await node.until(BEGIN + AHEAD + 2 * MINUTE, 5 * SECOND)
        ledger = [row for row in await node.hands.ledger(job.id) if row["slot"] > BEGIN + AHEAD]
        assert sum(row["slots"] or 1 for row in ledger) == 30

    async def test_what_was_given_up_at_that_very_slot_is_one(self, node: Fired, job: JobView) -> None:
        await node.times.set(BEGIN + 7 * SECOND)
        assert await put_right(node.hands.store) == 1
        assert await self.given_up(node, job) == [(BEGIN + 7 * SECOND, None, 1)]
        assert await put_right(node.hands.store) == 0


class TestHeld:
    async def test_what_was_taken_for_that_future_goes_back_and_fires_then(self, node: Fired) -> None:
        (job,) = await node.hands.create(spec(schedule=EACH_TEN))
        await node.times.set(BEGIN + AHEAD + 9 * SECOND)
        await node.now()
        await node.now()
        held = list(node.held)
        assert held == [f"{job.id}-{BEGIN + AHEAD + 10 * SECOND}"]
        await node.times.set(BEGIN + SECOND)
        await put_right(node.hands.store)
        await node.orders()
        assert not node.held
        await node.hands.check()
        await node.until(BEGIN + AHEAD + MINUTE, 5 * SECOND)
        assert sorted(node.slots) == sorted(set(node.slots))
        assert set(slots(BEGIN + 10 * SECOND, node.times.now)) <= set(node.slots)


class TestSetBackByLittle:
    """By so little that nobody looks: nodes hold runs ahead for as long."""

    async def test_a_range_that_ends_ahead_keeps_its_slots_from_a_new_schedule(self, node: Fired) -> None:
        (job,) = await node.hands.create(spec(schedule={"every": "1s"}))
        await node.times.set(BEGIN + 10 * SECOND)
        await node.now()
        assert any(row["until_slot"] == BEGIN + 9 * SECOND for row in await node.hands.ledger(job.id))
        await node.times.set(BEGIN + 8 * SECOND - 1)
        await node.hands.store.update_job(1, job.id, lambda _: spec(schedule={"cron": "* * * * * *"}))
        await node.hands.check()
        assert (await cursor_of(node.hands.store, job))["slot"] > BEGIN + 10 * SECOND
