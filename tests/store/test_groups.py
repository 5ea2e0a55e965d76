"""Concurrency groups: never more at once than may, the oldest first, nobody waits while there is room."""

from __future__ import annotations

import asyncio

import pytest

from onthedot.model.duration import Duration
from onthedot.model.instant import NEVER
from onthedot.model.policy import Concurrency
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.store import NewJob, Store, TurnedAway
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, Hands, at, every, node_info, spec

MINUTE = 60_000


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


def db(limit: int, group: str = "db") -> Concurrency:
    return Concurrency(group=group, limit=limit)


async def due(hands: Hands, times: Times, count: int, **policy: object) -> list[int]:
    """So many one-off jobs that are due, each a millisecond after the one before."""
    jobs = [await hands.job(at(times.now + 1000 + n), **policy) for n in range(count)]
    await times.advance(2000)
    return jobs


def jobs_of(runs: list[ClaimedRun]) -> list[int]:
    return [run.job_id for run in runs]


async def waiting(hands: Hands) -> list[int]:
    return [row["job_id"] for row in await hands.live() if row["parked"] == "group"]


class TestLimit:
    async def test_so_many_at_once_over_all_jobs_the_oldest_first(self, hands: Hands, times: Times):
        jobs = await due(hands, times, 5, concurrency=db(2))
        claim = await hands.claim()
        assert jobs_of(claim.runs) == jobs[:2]
        assert await waiting(hands) == jobs[2:]
        assert (await hands.claim()).runs == [], "nobody looks at them again"
        assert (await hands.finish(claim.runs[1])).called == 1
        (third,) = (await hands.claim()).runs
        assert third.job_id == jobs[2]
        await hands.finish(claim.runs[0], third)
        assert jobs_of((await hands.claim()).runs) == jobs[3:]
        await hands.check()

    async def test_over_all_nodes(self, hands: Hands, times: Times):
        jobs = await due(hands, times, 4, concurrency=db(3))
        others = Hands(hands.store, "n2")
        first = (await hands.claim(limit=2)).runs
        second = (await others.claim()).runs
        assert (jobs_of(first), jobs_of(second)) == (jobs[:2], jobs[2:3])
        await others.finish(*second)
        assert jobs_of((await hands.claim()).runs) == jobs[3:]

    async def test_it_is_not_claimed_ahead_and_counts_from_its_claim_on(self, hands: Hands, times: Times):
        await hands.job(at(START + 1500), concurrency=db(1))
        claim = await hands.claim()
        assert (claim.runs, claim.next_ready) == ([], START + 1500)

    async def test_waiting_is_no_attempt(self, hands: Hands, times: Times):
        jobs = await due(hands, times, 2, concurrency=db(1))
        await hands.claim()
        (row,) = await hands.live(jobs[1])
        assert (row["state"], row["token"], row["tries"], row["ready_at"]) == ("pending", 0, 0, NEVER)
        assert (row["waiting"], row["waiting_since"], row["due_at"]) == ("group", times.now, START + 1001)

    async def test_others_are_not_held_up(self, hands: Hands, times: Times):
        """A claim of one, with a hundred of a full group before the others."""
        await due(hands, times, 1, concurrency=db(1))
        await hands.claim()
        await due(hands, times, 100, concurrency=db(1))
        (other,) = await due(hands, times, 1)
        assert jobs_of((await hands.claim(limit=1)).runs) == [other]

    async def test_tenants_have_their_own(self, hands: Hands, times: Times):
        theirs = NewJob(tenant=2, spec=spec(at(START + 1000), concurrency=db(1)))
        (_made,) = await hands.store.create_jobs([theirs])
        await due(hands, times, 2, concurrency=db(1))
        claimed = (await hands.claim()).runs
        assert [run.tenant for run in claimed] == [2, 1]
        assert [view.running for view in await hands.store.list_groups(2)] == [1]

    async def test_max_running_is_for_one_job_alone(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE), max_running=2)
        other = await hands.job(every(MINUTE), max_running=2)
        runs = []
        for n in (1, 2, 3):
            await times.set(START + n * MINUTE)
            runs += (await hands.claim()).runs
        assert sorted(jobs_of(runs)) == [job, job, other, other]
        assert await waiting(hands) == [job, other]
        await hands.finish(next(run for run in runs if run.job_id == job))
        assert jobs_of((await hands.claim()).runs) == [job]
        await hands.check()

    async def test_the_smallest_limit_that_a_job_names_counts(self, hands: Hands, times: Times):
        (small,) = await hands.create(spec(every(MINUTE), concurrency=db(1)))
        jobs = await due(hands, times, 3, concurrency=db(3))
        assert jobs_of((await hands.claim()).runs) == jobs[:1]
        await hands.store.delete_job(1, small.id)
        assert jobs_of((await hands.claim()).runs) == jobs[1:]

    async def test_a_cursor_goes_on_while_its_run_waits(self, hands: Hands, times: Times):
        await due(hands, times, 1, concurrency=db(1))
        (holder,) = (await hands.claim()).runs
        job = await hands.job(every(MINUTE), concurrency=db(1))
        await times.advance(MINUTE)
        assert (await hands.claim()).runs == []
        assert [(row["parked"], bool(row["cursor"])) for row in await hands.live(job)] == [
            ("group", False),
            (None, True),
        ]
        await hands.check()
        await times.advance(MINUTE)
        assert (await hands.claim()).runs == []
        await hands.finish(holder)
        assert [run.slot for run in (await hands.claim()).runs] == [times.now - MINUTE]
        await hands.check()


class TestFreed:
    async def held(self, hands: Hands, times: Times, **policy: object) -> tuple[ClaimedRun, int]:
        """One that runs, and a job whose run waits for it."""
        jobs = await due(hands, times, 2, concurrency=db(1), **policy)
        (run,) = (await hands.claim()).runs
        assert run.job_id == jobs[0]
        return run, jobs[1]

    async def next_is(self, hands: Hands, job: int) -> None:
        assert jobs_of((await hands.claim()).runs) == [job]
        await hands.check()

    async def test_by_a_retry(self, hands: Hands, times: Times):
        run, job = await self.held(hands, times)
        await hands.finish(run, outcome=FAILED)
        await self.next_is(hands, job)
        await times.advance(5000)
        assert (await hands.claim()).runs == [], "the retry waits, too"

    async def test_by_giving_it_back_and_the_older_one_comes_first(self, hands: Hands, times: Times):
        run, _job = await self.held(hands, times)
        await hands.store.give_back(hands.node, [(run.id, run.token)])
        await self.next_is(hands, run.job_id)

    async def test_by_the_loss_of_its_node_and_not_before(self, hands: Hands, times: Times):
        await hands.store.register(node_info("n1"))
        run, job = await self.held(hands, times)
        other = Hands(hands.store, "n2")
        await hands.store.register(node_info("n2"))
        assert (await other.claim()).runs == []
        await hands.store.reclaim()
        assert (await other.claim()).runs == [], "nobody has declared it lost"
        assert await hands.store.declare_lost("n1", 0)
        assert (await other.claim()).runs == [], "it is lost, and its runs are still its own"
        await hands.store.reclaim()
        (again,) = (await other.claim()).runs
        assert again.id == run.id
        await other.finish(again)
        await self.next_is(other, job)

    async def test_by_the_end_of_a_run_whose_job_is_deleted(self, hands: Hands, times: Times):
        run, job = await self.held(hands, times)
        await hands.store.delete_job(1, run.job_id)
        assert (await hands.claim()).runs == []
        await hands.finish(run)
        await self.next_is(hands, job)

    async def test_by_a_callback_and_not_by_the_acceptance(self, hands: Hands, times: Times):
        run, job = await self.held(hands, times, completion="callback")
        await hands.finish(run)
        assert (await hands.claim()).runs == [], "it goes on, without a node"
        await hands.store.complete(run.id, 1, Outcome(kind="ok"))
        await self.next_is(hands, job)

    async def test_by_cancelling_one_that_waits_for_its_callback(self, hands: Hands, times: Times):
        run, job = await self.held(hands, times, completion="callback")
        await hands.finish(run)
        await hands.store.cancel_run(1, run.id)
        await self.next_is(hands, job)

    async def test_by_turning_it_away(self, hands: Hands, times: Times):
        run, job = await self.held(hands, times)
        away = TurnedAway(run_id=run.id, token=run.token, version=run.version, requires="webhook@http://example.com")
        await hands.store.wait_for_destinations(hands.node, [away])
        await self.next_is(hands, job)
        assert (await hands.claim(offers=[away.requires])).runs == [], "it waits for its group now"
        assert (await hands.store.get_run(1, run.id)).waiting == "group"

    async def test_the_place_of_one_that_was_called_and_cancelled_is_the_next_ones(self, hands: Hands, times: Times):
        jobs = await due(hands, times, 3, concurrency=db(1))
        (run,) = (await hands.claim()).runs
        await hands.finish(run)
        called = await hands.live(jobs[1])
        await hands.store.cancel_run(1, called[0]["id"])
        await self.next_is(hands, jobs[2])

    @pytest.mark.parametrize("verb", ["pause_job", "delete_job"])
    async def test_or_paused_or_deleted(self, hands: Hands, times: Times, verb: str):
        jobs = await due(hands, times, 3, concurrency=db(1))
        (run,) = (await hands.claim()).runs
        await hands.finish(run)
        await getattr(hands.store, verb)(1, jobs[1])
        await self.next_is(hands, jobs[2])

    async def test_a_called_run_keeps_its_place_for_a_while(self, hands: Hands, times: Times):
        """No node offers what it requires. Then the next one comes."""
        jobs = await due(hands, times, 2, concurrency=db(1))
        (run,) = (await hands.claim()).runs
        await hands.sql(f"UPDATE runs SET requires = 'function:x' WHERE job_id = {jobs[1]}")
        await hands.finish(run)
        (late,) = await due(hands, times, 1, concurrency=db(1))
        assert (await hands.claim()).runs == []
        assert await hands.store.watch_groups() == 0
        await times.advance(5000)
        assert await hands.store.watch_groups() == 1
        await self.next_is(hands, late)


class TestEdits:
    async def test_a_higher_limit_takes_effect_at_once(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE), max_running=1)
        for n in (1, 2, 3):
            await times.set(START + n * MINUTE)
            await hands.claim()
        await hands.store.update_job(1, job, lambda old: spec(every(MINUTE), max_running=2))
        assert len((await hands.claim()).runs) == 1
        await hands.store.update_job(1, job, lambda old: spec(every(MINUTE)))
        assert len((await hands.claim()).runs) == 1
        await hands.check()

    async def test_a_lower_one_stops_nobody(self, hands: Hands, times: Times):
        jobs = await due(hands, times, 4, concurrency=db(3))
        runs = (await hands.claim()).runs
        lower = spec(at(START + 10 * MINUTE), concurrency=db(1))
        await hands.store.update_job(1, jobs[3], lambda old: lower)
        await due(hands, times, 1, concurrency=db(3))
        await hands.finish(runs[0])
        await hands.finish(runs[1])
        assert (await hands.claim()).runs == [], "one is still running, and one may"
        await hands.finish(runs[2])
        assert len((await hands.claim()).runs) == 1

    async def test_what_is_running_counts_where_its_job_says_now(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE))
        await times.set(START + MINUTE)
        run = await hands.one()
        await hands.store.update_job(1, job, lambda old: spec(every(MINUTE), concurrency=db(1)))
        (other,) = await due(hands, times, 1, concurrency=db(1))
        assert (await hands.claim()).runs == []
        assert (await hands.finish(run)).called == 1, "its end is told to the group"
        assert jobs_of((await hands.claim()).runs) == [other]
        await hands.check()

    async def test_another_group(self, hands: Hands, times: Times):
        _run, job = await TestFreed().held(hands, times)
        there = (await hands.store.get_job(1, job)).schedule
        await hands.store.update_job(1, job, lambda old: spec(there, concurrency=db(1, "other")))
        assert jobs_of((await hands.claim()).runs) == [job]
        await hands.check()

    async def test_a_file_of_jobs(self, hands: Hands, times: Times):
        specs = [spec(every(MINUTE), key=f"k{n}", concurrency=db(1)) for n in range(3)]
        await hands.store.sync_jobs(1, "f", specs, prune=True)
        await times.set(START + MINUTE)
        assert len((await hands.claim()).runs) == 1
        raised = [spec(every(MINUTE), key=f"k{n}", concurrency=db(3)) for n in range(3)]
        await hands.store.sync_jobs(1, "f", raised, prune=True)
        assert len((await hands.claim()).runs) == 2
        await hands.check()


class TestTogether:
    async def running(self, hands: Hands, times: Times, overlap: str) -> tuple[ClaimedRun, int]:
        """Somebody has the group, and a job that may not overlap has a slot that waits for it."""
        (_,) = await due(hands, times, 1, concurrency=db(1))
        (holder,) = (await hands.claim()).runs
        job = await hands.job(every(MINUTE), overlap=overlap, concurrency=db(1))
        await times.advance(MINUTE)
        assert (await hands.claim()).runs == []
        await times.advance(MINUTE)
        return holder, job

    async def test_skip(self, hands: Hands, times: Times):
        holder, job = await self.running(hands, times, "skip")
        assert (await hands.claim()).skipped == 1
        await hands.finish(holder)
        (run,) = (await hands.claim()).runs
        assert (run.job_id, run.slot) == (job, times.now - MINUTE)
        await hands.check()

    async def test_queue(self, hands: Hands, times: Times):
        holder, job = await self.running(hands, times, "queue")
        assert (await hands.claim()).runs == []
        assert [row["parked"] for row in await hands.live(job)] == ["group", "lane", None]
        await hands.finish(holder)
        await hands.store.watch_ledger()
        (run,) = (await hands.claim()).runs
        assert run.slot == times.now - MINUTE
        await hands.finish(run)
        assert (await hands.one()).slot == times.now
        await hands.check()

    async def test_replace(self, hands: Hands, times: Times):
        holder, job = await self.running(hands, times, "replace")
        assert (await hands.claim()).runs == []
        assert [row["reason"] for row in await hands.ledger(job)] == ["overlap"]
        await hands.finish(holder)
        assert (await hands.one()).slot == times.now
        await hands.check()

    async def test_expiry_ends_the_wait(self, hands: Hands, times: Times):
        jobs = await due(hands, times, 2, concurrency=db(1), expires_in=Duration(3000))
        (run,) = (await hands.claim()).runs
        assert await hands.store.watch_groups() == 0
        await times.advance(5000)
        assert await hands.store.watch_groups() == 1
        assert (await hands.claim()).runs == []
        (entry,) = await hands.ledger(jobs[1])
        assert (entry["status"], entry["reason"], entry["tries"]) == ("skipped", "late", 0)
        await hands.finish(run)
        await hands.check()

    async def test_by_hand_backfill_and_redrive_obey(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE), max_running=1)
        await times.set(START + 5 * MINUTE)
        run = await hands.one()
        await hands.store.run_job(1, job)
        asked = await hands.store.backfill_job(1, job, start=START + 1, end=START + 4 * MINUTE, force=True)
        await times.advance(100)
        assert (await hands.claim()).runs == []
        kinds = [run.kind]
        for _ in range(len(asked) + 1):
            await hands.finish(run)
            run = await hands.one()
            kinds.append(run.kind)
        assert kinds[0] == "scheduled"
        assert sorted(kinds[1:]) == [*["backfill"] * 4, "manual"], "one after the other"
        await hands.finish(run)
        assert (await hands.claim()).runs == []
        await hands.check()


class TestTold:
    async def test_a_run_says_what_it_waits_for(self, hands: Hands, times: Times):
        run, job = await TestFreed().held(hands, times)
        (row,) = await hands.live(job)
        view = await hands.store.get_run(1, row["id"])
        assert (view.status, view.waiting, view.waiting_for) == ("PENDING", "group", "db")
        assert view.waiting_since is not None
        await hands.finish(run)
        await hands.claim()
        assert (await hands.store.get_run(1, row["id"])).waiting is None

    async def test_groups_are_listed(self, hands: Hands, times: Times):
        assert await hands.store.list_groups(1) == []
        await TestFreed().held(hands, times)
        await hands.job(every(MINUTE), max_running=4)
        await hands.job(every(MINUTE), concurrency=db(7))
        alone, named = await hands.store.list_groups(1)
        assert (alone.group, alone.limit, alone.running, alone.waiting) == (None, 4, 0, 0)
        assert alone.job_id is not None
        assert (named.group, named.job_id, named.limit, named.highest_limit) == ("db", None, 1, 7)
        assert (named.running, named.waiting) == (1, 1)
        assert await hands.store.count_waiting_for_groups() == (1, times.now)

    async def test_max_running_is_named(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE), max_running=1)
        for n in (1, 2):
            await times.set(START + n * MINUTE)
            await hands.claim()
        shown = [run.waiting_for for run in await hands.runs(job_id=job) if run.waiting]
        assert shown == ["max_running"]


async def test_many_who_claim_and_finish_at_once(hands: Hands, times: Times):
    """Four nodes, two groups. Nobody gets stuck, nobody gets too many, and all ends."""
    await due(hands, times, 40, concurrency=db(3))
    await due(hands, times, 40, concurrency=db(2, "other"))
    most: dict[str, int] = {}

    async def node(name: str) -> None:
        mine = Hands(hands.store, name)
        for _ in range(400):
            runs = (await mine.claim(limit=4)).runs
            rows = await hands.sql(
                "SELECT group_key, count(*) AS n FROM runs WHERE state = 'running' GROUP BY group_key"
            )
            for row in rows:
                most[row["group_key"]] = max(most.get(row["group_key"], 0), row["n"])
            if runs:
                await mine.finish(*runs)
            elif not await hands.live():
                return

    await asyncio.wait_for(asyncio.gather(*(node(f"n{n}") for n in range(4))), 60)
    assert await hands.live() == []
    assert most["1/db"] <= 3
    assert most["1/other"] <= 2
    await hands.check()


async def test_the_backlog_counts_who_was_called(hands: Hands, times: Times):
    """It waits for its group, and not for a destination: the look from kind to kind must not stay at it."""
    run, _ = await TestFreed().held(hands, times)
    await hands.finish(run)
    assert (await hands.store.backlog()).due == 1
