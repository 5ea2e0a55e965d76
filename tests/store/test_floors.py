"""From where on a job goes on: slots decided far ahead of their time neither fire again nor silence the rest."""

from __future__ import annotations

from functools import partial

import pytest

from onthedot.model.job import JobSpec
from onthedot.model.schedule import Schedule
from onthedot.plan import timetable_of
from onthedot.store import Store
from tests.store.conftest import START, Times
from tests.store.given import DAY, cursor_of, history_of, spec
from tests.store.hands import Hands

YEARLY = {"cron": "0 0 1 1 *"}
EACH_SECOND = {"cron": "* * * * * *"}
SECOND = 1000


@pytest.fixture
def hands(store: Store) -> Hands:
    return Hands(store)


def next_slot(schedule: dict[str, str], after: int) -> int:
    slot = timetable_of(spec(schedule=schedule), after).next_after(after)
    assert slot is not None
    return slot


async def yearly_without_the_next(hands: Hands) -> tuple[int, int]:
    """A job of each January whose next run was cancelled; the job and that slot."""
    (job,) = await hands.create(spec(key="j", schedule=YEARLY))
    january = next_slot(YEARLY, START)
    await hands.store.cancel_run(1, f"{job.id}-{january}")
    return job.id, january


async def edited(hands: Hands, job_id: int, verb: str, **fields: object) -> None:
    new = spec(key="j", **fields)
    if verb == "update":
        await hands.store.update_job(1, job_id, lambda _: new)
    else:
        await hands.store.put_job(1, "j", lambda _: new)


class TestCancelledAhead:
    @pytest.mark.parametrize("verb", ["update", "put"])
    async def test_another_schedule_fires_at_once(self, hands: Hands, times: Times, verb: str) -> None:
        job_id, january = await yearly_without_the_next(hands)
        await edited(hands, job_id, verb, schedule=EACH_SECOND)
        assert (await hands.store.get_job(1, job_id)).next_run is not None
        await times.advance(SECOND)
        claimed = await hands.claim()
        assert claimed.runs[0].slot == START + SECOND
        await hands.check()
        assert january > START + 40 * DAY

    async def test_a_changed_jobs_file_too(self, hands: Hands, times: Times) -> None:
        await hands.store.sync_jobs(1, "f", [spec(key="j", schedule=YEARLY)], prune=True)
        job = await hands.store.get_job_by_key(1, "j")
        await hands.store.cancel_run(1, f"{job.id}-{next_slot(YEARLY, START)}")
        await hands.store.sync_jobs(1, "f", [spec(key="j", schedule=EACH_SECOND)], prune=True)
        assert (await cursor_of(hands.store, job))["slot"] == START + SECOND

    async def test_the_cancelled_slot_itself_stays_cancelled(self, hands: Hands, times: Times) -> None:
        """Another target, a pause, a resume: the schedule is the same, and so is what was cancelled of it."""
        job_id, january = await yearly_without_the_next(hands)
        following = next_slot(YEARLY, january)
        await edited(hands, job_id, "update", schedule=YEARLY, name="new")
        await hands.store.pause_job(1, job_id)
        await hands.store.resume_job(1, job_id)
        (cursor,) = [row for row in await hands.live(job_id) if row["cursor"]]
        assert cursor["slot"] == following
        await times.set(january + 1)
        assert (await hands.claim()).runs == []
        await hands.check()

    async def test_a_schedule_that_has_it_too_passes_it_over(self, hands: Hands, times: Times) -> None:
        job_id, january = await yearly_without_the_next(hands)
        await edited(hands, job_id, "update", schedule=EACH_SECOND)
        await times.set(january - 2 * SECOND)
        fired: list[int] = []
        for _ in range(5):
            for run in (await hands.claim()).runs:
                fired.append(run.slot)
                await hands.finish(run)
            await hands.check()
            await times.advance(SECOND)
        assert january not in fired
        assert {january - SECOND, january + SECOND} <= set(fired)
        (row,) = [row for row in await hands.ledger(job_id) if row["slot"] == january]
        assert row["status"] == "cancelled"

    @pytest.mark.parametrize("overlap", ["allow", "skip"])
    async def test_an_outage_over_it_does_not_cover_it_twice(self, hands: Hands, times: Times, overlap: str) -> None:
        job_id, january = await yearly_without_the_next(hands)
        await edited(hands, job_id, "update", schedule=EACH_SECOND, policy={"overlap": overlap})
        await times.set(january - 10 * SECOND)
        (run,) = (await hands.claim()).runs[:1]
        await hands.finish(run)
        await times.set(january + 10 * SECOND)
        await hands.claim()
        await hands.check()

    @pytest.mark.parametrize("by", ["pause", "edit", "delete"])
    async def test_a_gap_over_it_does_not_cover_it_twice(self, hands: Hands, times: Times, by: str) -> None:
        job_id, january = await yearly_without_the_next(hands)
        await edited(hands, job_id, "update", schedule=EACH_SECOND)
        await times.set(january + 10 * SECOND)
        if by == "pause":
            await hands.store.pause_job(1, job_id)
            await hands.store.resume_job(1, job_id)
        elif by == "edit":
            await edited(hands, job_id, "update", schedule={"cron": "*/2 * * * * *"})
        else:
            await hands.store.delete_job(1, job_id)
        await hands.check()
        assert [row["status"] for row in await hands.ledger(job_id) if row["slot"] == january] == ["cancelled"]

    async def test_cancelling_one_after_the_other_leaves_no_trap(self, hands: Hands, times: Times) -> None:
        (job,) = await hands.create(spec(schedule=EACH_SECOND))
        for second in range(1, 6):
            await hands.store.cancel_run(1, f"{job.id}-{START + second * SECOND}")
        await edited(hands, job.id, "update", schedule={"cron": "*/2 * * * * *"})
        (cursor,) = [row for row in await hands.live(job.id) if row["cursor"]]
        assert cursor["slot"] == START + 6 * SECOND
        await hands.store.cancel_run(1, cursor["id"])
        await times.set(START + 7 * SECOND)
        assert (await hands.one()).slot == START + 8 * SECOND
        await hands.check()

    async def test_a_one_off_that_goes_back_to_a_cancelled_instant_is_not_fired(
        self, hands: Hands, times: Times
    ) -> None:
        (job,) = await hands.create(spec(schedule={"at": "2023-11-20T00:00:00Z"}))
        (run,) = await hands.live(job.id)
        await hands.store.cancel_run(1, run["id"])
        for at in ("2023-11-21T00:00:00Z", "2023-11-22T00:00:00Z", "2023-11-20T00:00:00Z"):
            new = spec(schedule={"at": at})
            await hands.store.update_job(1, job.id, partial(_becomes, new))
            await hands.check()
        assert await hands.live(job.id) == []
        assert (await hands.store.get_job(1, job.id)).state == "ended"


def _becomes(new: JobSpec, _: JobSpec) -> JobSpec:
    return new


class TestHeldAhead:
    async def test_an_edit_begins_now_and_passes_over_what_a_node_holds(self, hands: Hands, times: Times) -> None:
        (job,) = await hands.create(spec(schedule={"every": "2s"}))
        held = await hands.one()
        assert held.slot == START + 2 * SECOND
        await hands.store.update_job(1, job.id, lambda _: spec(schedule={"every": "1s"}))
        assert (await cursor_of(hands.store, job))["slot"] == START + SECOND
        await hands.store.give_back("n1", [(held.id, held.token)])
        await hands.check()
        slots = sorted(run.slot for run in (await hands.claim()).runs)
        assert slots == [START + SECOND, START + 2 * SECOND]
        assert (await cursor_of(hands.store, job))["slot"] == START + 3 * SECOND
        await hands.check()


class TestDelete:
    async def test_what_was_due_and_not_claimed_has_its_row(self, hands: Hands, times: Times) -> None:
        (job,) = await hands.create(spec(schedule={"every": "1m"}))
        await times.advance(5 * 60_000)
        await hands.store.delete_job(1, job.id)
        ledger = await history_of(hands.store, job)
        assert [(row["slot"], row["until_slot"], row["slots"], row["status"], row["reason"]) for row in ledger] == [
            (START + 60_000, None, None, "cancelled", "deleted"),
            (START + 120_000, START + 300_000, 4, "skipped", "deleted"),
        ]

    async def test_a_paused_job_says_why(self, hands: Hands, times: Times) -> None:
        (job,) = await hands.create(spec(schedule={"every": "1m"}))
        await hands.store.pause_job(1, job.id)
        await times.advance(3 * 60_000)
        await hands.store.delete_job(1, job.id)
        assert [row["reason"] for row in await history_of(hands.store, job)] == ["deleted", "paused"]

    async def test_removed_from_its_file(self, hands: Hands, times: Times) -> None:
        await hands.store.sync_jobs(1, "f", [spec(key="j", schedule={"every": "1m"})], prune=True)
        job = await hands.store.get_job_by_key(1, "j")
        await times.advance(3 * 60_000)
        await hands.store.sync_jobs(1, "f", [], prune=True)
        assert [row["slots"] for row in await history_of(hands.store, job)] == [None, 2]


def test_the_schedules_are_what_the_tests_take_them_for() -> None:
    assert next_slot(YEARLY, START) == 1_704_067_200_000
    assert Schedule(cron="* * * * * *").cron is not None
