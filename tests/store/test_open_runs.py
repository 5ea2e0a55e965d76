"""Open runs: work that goes on without a node, on both databases."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onthedot.model.duration import Duration
from onthedot.model.level import LEVEL
from onthedot.model.node import NodeLoad
from onthedot.model.policy import Retry
from onthedot.model.run import ClaimedRun
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget
from onthedot.model.work import Work
from onthedot.plan.outcome import OVERDUE_MS
from onthedot.store import Adopted, RunFilter, StartedWork, Store
from onthedot.store.driver import Row
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, OK, Hands, at, every, node_info, spec

HERE = "webhook@here"
SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
LOAD = NodeLoad(held=0, running=0, lateness_ms=None, draining=False)


@pytest.fixture
async def first(store: Store, times: Times) -> Hands:
    await store.register(node_info("n1"))
    await store.register(node_info("n2"))
    return Hands(store, "n1")


@pytest.fixture
def second(store: Store) -> Hands:
    return Hands(store, "n2")


def started(run: ClaimedRun, *, within_ms: int | None = HOUR) -> StartedWork:
    target = {"type": "webhook", "url": "http://example.com/"}
    work = Work(target=target, try_number=run.tries + 1, place="here", started_at=START, lateness_ms=3)
    return StartedWork(run_id=run.id, token=run.token, work=work, capability=HERE, within_ms=within_ms)


async def begun(
    hands: Hands, times: Times, schedule: Schedule | None = None, *, within_ms: int | None = HOUR, **more: Any
) -> ClaimedRun:
    """A run of this node whose work has been started."""
    schedule = schedule or at(START + SECOND)
    await hands.create(spec(schedule, **more))
    await times.advance(SECOND if schedule.every is None else schedule.every)
    run = await hands.one()
    assert await hands.store.begin_work(hands.node, [started(run, within_ms=within_ms)]) == {run.id}
    return run


async def detached(hands: Hands, times: Times, schedule: Schedule | None = None, **more: Any) -> ClaimedRun:
    run = await begun(hands, times, schedule, **more)
    assert await hands.store.detach(hands.node, [(run.id, run.token, HOUR)]) == {run.id}
    return run


async def adopt(hands: Hands, *capabilities: str, limit: int = 10, level: int = LEVEL) -> list[Adopted]:
    return await hands.store.adopt(hands.node, capabilities or [HERE], level=level, limit=limit)


async def adopted(hands: Hands) -> Adopted:
    (found,) = await adopt(hands)
    return found


async def lose(hands: Hands) -> None:
    """The node is gone, and somebody notices."""
    (row,) = await hands.sql(f"SELECT beat FROM nodes WHERE id = '{hands.node}'")
    assert await hands.store.declare_lost(hands.node, row["beat"])
    await hands.store.reclaim()


async def the_run(hands: Hands, run: ClaimedRun) -> Row:
    (row,) = await hands.sql(f"SELECT * FROM runs WHERE id = '{run.id}'")
    return row


class TestReach:
    async def test_work_that_no_live_node_reaches_is_counted(self, first: Hands, times: Times):
        run = await detached(first, times)
        assert (await first.store.backlog()).unreached == {HERE: 1}
        await first.store.register(node_info("n3", offers=[HERE]))
        assert (await first.store.backlog()).unreached == {}
        await first.store.declare_lost("n3", 0)
        assert (await first.store.backlog()).unreached == {HERE: 1}
        (found,) = await adopt(first)
        assert (found.run.id, (await first.store.backlog()).unreached) == (run.id, {}), "somebody has it"


class TestBegin:
    async def test_work_is_recorded_before_it_is_started(self, first: Hands, times: Times):
        run = await begun(first, times)
        row = await the_run(first, run)
        assert (row["begun_at"], row["requires"], row["open_until"]) == (times.now, HERE, times.now + HOUR)
        assert row["open"] is None
        assert Work(
            target=dict(started(run).work.target), try_number=1, place="here", started_at=START, lateness_ms=3
        ) == (started(run).work)

    async def test_only_its_node_may_begin(self, first: Hands, second: Hands, times: Times):
        run = await begun(first, times)
        assert await second.store.begin_work("n2", [started(run)]) == set()

    async def test_not_what_shall_stop(self, first: Hands, times: Times):
        await first.create(spec(at(START + SECOND)))
        await times.advance(SECOND)
        run = await first.one()
        await first.store.cancel_run(1, run.id)
        assert await first.store.begin_work("n1", [started(run)]) == set()
        assert (await the_run(first, run))["work"] is None

    async def test_asked_again_it_is_the_same_answer(self, first: Hands, times: Times):
        run = await begun(first, times)
        before = await the_run(first, run)
        await times.advance(SECOND)
        assert await first.store.begin_work("n1", [started(run)]) == {run.id}
        assert (await the_run(first, run))["begun_at"] == before["begun_at"]


class TestDetach:
    async def test_it_goes_on_without_a_node(self, first: Hands, times: Times):
        run = await detached(first, times)
        row = await the_run(first, run)
        assert (row["state"], row["node"], row["open"], row["token"]) == ("running", None, "adopt", run.token)
        assert row["open_until"] == times.now + HOUR
        assert await first.store.held("n1") == []
        await first.check()

    async def test_only_its_owner_detaches(self, first: Hands, times: Times):
        run = await begun(first, times)
        assert await first.store.detach("n2", [(run.id, run.token, HOUR)]) == set()
        assert await first.store.detach("n1", [(run.id, run.token + 1, HOUR)]) == set()
        assert (await the_run(first, run))["node"] == "n1"

    async def test_what_never_said_what_it_started_is_not_detached(self, first: Hands, times: Times):
        await first.create(spec(at(START + SECOND)))
        await times.advance(SECOND)
        run = await first.one()
        assert await first.store.detach("n1", [(run.id, run.token, HOUR)]) == set()
        assert (await the_run(first, run))["node"] == "n1"

    async def test_asked_again_it_is_the_same_answer(self, first: Hands, second: Hands, times: Times):
        run = await detached(first, times)
        assert await first.store.detach("n1", [(run.id, run.token, HOUR)]) == {run.id}
        await adopted(second)
        assert await first.store.detach("n1", [(run.id, run.token, HOUR)]) == set(), "it is another's now"

    async def test_the_node_that_detached_it_can_not_finish_it(self, first: Hands, times: Times):
        run = await detached(first, times)
        assert (await first.finish(run)).refused == [run.id]
        await first.check()

    async def test_it_is_no_orphan(self, first: Hands, times: Times):
        run = await detached(first, times)
        assert await first.store.reclaim() == 0
        beat = await first.store.beat("n1", LOAD)
        assert (beat.orphans, beat.adoptable) == (False, True)
        assert (await the_run(first, run))["losses"] == 0


class TestLost:
    async def test_work_that_goes_on_is_open_and_not_pending(self, first: Hands, second: Hands, times: Times):
        run = await begun(first, times)
        await lose(first)
        row = await the_run(second, run)
        assert (row["state"], row["open"], row["node"], row["tries"], row["losses"]) == ("running", "adopt", None, 0, 0)
        assert row["open_until"] == times.now + HOUR, "as it was said when it began"
        assert (await second.claim()).runs == []
        await second.check()

    async def test_any_number_of_dead_nodes_is_no_poison(self, first: Hands, times: Times):
        run = await begun(first, times)
        await lose(first)
        for number in range(5):
            await first.store.register(node_info(f"m{number}"))
            hands = Hands(first.store, f"m{number}")
            assert (await adopted(hands)).run.losses == 0
            await lose(hands)
        assert (await the_run(first, run))["token"] == run.token + 5
        assert await first.ledger() == []

    async def test_at_most_once_is_not_given_up_either(self, first: Hands, second: Hands, times: Times):
        await begun(first, times, delivery="at_most_once")
        await lose(first)
        assert (await adopted(second)).run.spec.policy.delivery == "at_most_once"

    async def test_what_had_started_nothing_is_lost_as_ever(self, first: Hands, second: Hands, times: Times):
        await first.create(spec(at(START + SECOND)))
        await times.advance(2 * SECOND)
        await first.one()
        await lose(first)
        assert (await second.one()).losses == 1

    async def test_a_node_that_was_fenced_out_changes_nothing(self, first: Hands, second: Hands, times: Times):
        run = await begun(first, times)
        await lose(first)
        assert (await first.finish(run)).refused == [run.id]
        found = await adopted(second)
        assert (await first.finish(run)).refused == [run.id]
        assert (await second.finish(found.run)).recorded == 1

    async def test_a_recall_that_nobody_read_is_no_order_any_more(self, first: Hands, second: Hands, times: Times):
        run = await begun(first, times, every(MINUTE))
        await first.store.pause_job(1, run.job_id)
        assert (await the_run(first, run))["orders"] == "recall"
        await lose(first)
        assert (await adopted(second)).order is None


class TestAdopt:
    async def test_it_is_the_other_node_s(self, first: Hands, second: Hands, times: Times):
        run = await detached(first, times)
        await times.advance(MINUTE)
        found = await adopted(second)
        assert (found.run.id, found.run.token, found.run.tries, found.run.losses) == (run.id, run.token + 1, 0, 0)
        assert found.work == started(run).work
        assert found.left_ms == HOUR - MINUTE
        assert found.run.spec.target == run.spec.target
        row = await the_run(second, run)
        assert (row["node"], row["open"], row["begun_at"]) == ("n2", None, START + SECOND)
        assert await second.store.held("n2") == [(run.id, run.token + 1)]
        assert not (await second.store.beat("n2", LOAD)).adoptable
        await second.check()

    async def test_once(self, first: Hands, second: Hands, times: Times):
        await detached(first, times)
        assert len(await adopt(second)) == 1
        assert await adopt(first) == []
        assert await adopt(second) == []

    async def test_only_who_reaches_its_place(self, first: Hands, second: Hands, times: Times):
        await detached(first, times)
        assert await adopt(second, "webhook", "webhook@there") == []
        assert len(await adopt(second, "webhook@there", HERE)) == 1

    async def test_not_by_older_code(self, first: Hands, second: Hands, times: Times):
        await detached(first, times)
        assert await adopt(second, level=0) == []

    async def test_not_by_a_lost_node(self, first: Hands, second: Hands, times: Times):
        await detached(first, times)
        await lose(second)
        assert await adopt(second) == []

    async def test_no_more_than_there_is_room_for(self, first: Hands, second: Hands, times: Times):
        await first.create(*(spec(at(START + SECOND)) for _ in range(5)))
        await times.advance(SECOND)
        runs = (await first.claim()).runs
        await first.store.begin_work("n1", [started(run) for run in runs])
        await first.store.detach("n1", [(run.id, run.token, HOUR) for run in runs])
        assert len(await adopt(second, limit=2)) == 2
        assert len(await adopt(second)) == 3
        assert await adopt(second, limit=0) == []

    async def test_it_ends_like_any_other(self, first: Hands, second: Hands, times: Times):
        run = await detached(first, times)
        found = await adopted(second)
        assert (await second.finish(found.run)).recorded == 1
        (row,) = await second.ledger()
        assert (row["id"], row["status"], row["tries"], row["node"]) == (run.id, "done", 1, "n2")
        assert (await second.store.get_job(1, run.job_id)).state == "ended"

    async def test_a_try_that_failed_is_forgotten_with_its_work(self, first: Hands, second: Hands, times: Times):
        run = await detached(first, times)
        found = await adopted(second)
        await second.finish(found.run, outcome=FAILED)
        row = await the_run(second, run)
        assert (row["state"], row["tries"], row["work"], row["open_until"]) == ("pending", 1, None, None)
        assert row["requires"] == "webhook", "any node may try it again"
        await second.check()

    async def test_it_can_be_detached_again(self, first: Hands, second: Hands, times: Times):
        await detached(first, times)
        found = await adopted(second)
        assert await second.store.detach("n2", [(found.run.id, found.run.token, MINUTE)]) == {found.run.id}
        assert (await adopted(first)).left_ms == MINUTE


class TestUsers:
    async def test_a_cancel_is_kept_until_somebody_can_carry_it_out(self, first: Hands, second: Hands, times: Times):
        run = await detached(first, times)
        assert (await first.store.cancel_run(1, run.id)).status == "EXECUTING"
        found = await adopted(second)
        assert found.order is not None
        assert (found.order.what, found.order.token) == ("cancel", run.token + 1)
        (order,) = (await second.store.poll_orders("n2")).orders
        assert order.what == "cancel"

    @pytest.mark.parametrize("how", ["lost", "detached"])
    async def test_a_cancel_that_its_node_had_not_read_is_kept(
        self, first: Hands, second: Hands, times: Times, how: str
    ):
        run = await begun(first, times)
        await first.store.cancel_run(1, run.id)
        if how == "lost":
            await lose(first)
        else:
            await first.store.detach("n1", [(run.id, run.token, HOUR)])
        found = await adopted(second)
        assert found.order is not None
        assert found.order.what == "cancel"

    async def test_pause_and_edit_leave_it_alone(self, first: Hands, second: Hands, times: Times):
        run = await detached(first, times, every(MINUTE))
        before = dict(await the_run(first, run))
        await first.store.pause_job(1, run.job_id)
        other = WebhookTarget(url="http://example.com/other")
        await first.store.update_job(
            1, run.job_id, lambda _: spec(every(MINUTE), target=other, delivery="at_most_once")
        )
        assert dict(await the_run(first, run)) == before
        found = await adopted(second)
        assert found.run.spec.target == run.spec.target, "as it was started"

    async def test_a_deleted_job_s_run_ends_and_is_not_tried_again(self, first: Hands, second: Hands, times: Times):
        run = await detached(first, times, retry=Retry(attempts=5))
        await first.store.delete_job(1, run.job_id)
        assert (await the_run(first, run))["open"] == "adopt"
        found = await adopted(second)
        assert found.run.spec.target == run.spec.target
        assert (await second.finish(found.run, outcome=FAILED)).recorded == 1
        (row,) = await second.ledger()
        assert (row["status"], row["reason"], row["tries"]) == ("cancelled", "the job was deleted", 1)
        assert await second.live() == []

    async def test_it_is_shown_as_executing(self, first: Hands, times: Times):
        run = await detached(first, times)
        other = await begun(first, times, at(START + 2 * SECOND))
        view = await first.store.get_run(1, run.id)
        assert (view.status, view.node) == ("EXECUTING", None)
        for wanted in (RunFilter(status="EXECUTING"), RunFilter()):
            assert {each.id for each in (await first.store.list_runs(1, wanted)).items} == {run.id, other.id}
        for job in (run, other):
            (only,) = (await first.store.list_runs(1, RunFilter(status="EXECUTING", job_id=job.job_id))).items
            assert only.id == job.id
        assert (await first.store.stats(1)).running == 2

    async def test_page_by_page(self, first: Hands, times: Times):
        runs = [await detached(first, times, at(START + n * SECOND)) for n in (1, 2, 3)]
        wanted, seen = RunFilter(status="EXECUTING", limit=1), list[str]()
        for _ in runs:
            page = await first.store.list_runs(1, wanted)
            seen += [each.id for each in page.items]
            wanted = RunFilter(status="EXECUTING", limit=1, cursor=page.next)
        assert seen == [run.id for run in reversed(runs)]


class TestLanes:
    async def test_the_lane_stays_taken(self, first: Hands, second: Hands, times: Times):
        run = await detached(first, times, every(MINUTE), overlap="queue")
        await times.advance(MINUTE)
        assert (await second.claim()).runs == []
        found = await adopted(second)
        assert (await second.claim()).runs == []
        await second.finish(found.run)
        (next_one,) = (await second.claim()).runs
        assert next_one.slot == run.slot + MINUTE
        await second.check()

    async def test_who_replaces_it_waits_for_the_adopter(self, first: Hands, second: Hands, times: Times):
        run = await detached(first, times, every(MINUTE), overlap="replace")
        await times.advance(MINUTE)
        assert (await second.claim()).runs == []
        found = await adopted(second)
        assert found.order is not None
        assert found.order.by == f"{run.job_id}-{run.slot + MINUTE}"

    async def test_an_end_for_lack_of_time_frees_it(self, first: Hands, second: Hands, times: Times):
        await detached(first, times, every(MINUTE), overlap="queue", retry=Retry(attempts=1))
        await times.advance(2 * MINUTE)
        await second.claim()
        await times.advance(HOUR + OVERDUE_MS)
        assert await second.store.reclaim() == 1
        assert len((await second.claim()).runs) == 1


class TestOverdue:
    async def test_an_adopter_is_told_that_its_time_is_up(self, first: Hands, second: Hands, times: Times):
        await detached(first, times)
        await times.advance(HOUR)
        assert await second.store.reclaim() == 0, "somebody may still reach it"
        assert (await adopted(second)).left_ms == 0

    async def test_nobody_reached_it_and_it_is_tried_again(self, first: Hands, second: Hands, times: Times):
        retry = Retry(attempts=2, backoff=Duration(SECOND))
        run = await detached(first, times, retry=retry)
        await times.advance(HOUR + OVERDUE_MS - 1)
        assert not (await second.store.beat("n2", LOAD)).orphans
        await times.advance(1)
        assert (await second.store.beat("n2", LOAD)).orphans
        assert await second.store.reclaim() == 1
        row = await the_run(second, run)
        assert (row["state"], row["tries"], row["losses"], row["work"]) == ("pending", 1, 0, None)
        assert times.now < row["ready_at"] < times.now + 2 * SECOND
        await second.check()
        await times.advance(2 * SECOND)
        (again,) = (await second.claim()).runs
        (attempt,) = again.attempts
        assert (attempt.outcome, attempt.node, attempt.started_at) == ("timeout", "", START)

    async def test_the_last_try_is_a_dead_letter(self, first: Hands, second: Hands, times: Times):
        run = await detached(first, times, retry=Retry(attempts=1))
        await times.advance(HOUR + OVERDUE_MS)
        assert await second.store.reclaim() == 1
        (row,) = await second.ledger()
        assert (row["id"], row["status"], row["reason"], row["tries"]) == (run.id, "failed", "attempts", 1)
        assert (row["started_at"], row["lateness_ms"], row["node"]) == (START, 3, None)
        assert row["duration_ms"] == times.now - START
        (letter,) = (await second.store.list_dead(1)).items
        assert letter.id == run.id
        assert await second.store.reclaim() == 0

    async def test_at_most_once_is_unknown(self, first: Hands, second: Hands, times: Times):
        await detached(first, times, delivery="at_most_once")
        await times.advance(HOUR + OVERDUE_MS)
        await second.store.reclaim()
        (row,) = await second.ledger()
        assert (row["status"], row["reason"]) == ("failed", "unknown")

    async def test_a_cancelled_one_is_cancelled(self, first: Hands, second: Hands, times: Times):
        run = await detached(first, times)
        await first.store.cancel_run(1, run.id)
        await times.advance(HOUR + OVERDUE_MS)
        await second.store.reclaim()
        (row,) = await second.ledger()
        assert (row["status"], row["reason"]) == ("cancelled", "cancelled")
        assert "may still be running" in row["error"]

    async def test_of_a_job_that_is_gone_nothing_is_tried_again(self, first: Hands, second: Hands, times: Times):
        run = await detached(first, times, retry=Retry(attempts=5))
        await first.store.delete_job(1, run.job_id)
        await times.advance(HOUR + OVERDUE_MS)
        assert await second.store.reclaim() == 1
        (row,) = await second.ledger()
        assert (row["status"], row["reason"]) == ("cancelled", "the job was deleted")
        assert await second.live() == []

    async def test_what_an_adopter_has_is_its_own(self, first: Hands, second: Hands, times: Times):
        await detached(first, times)
        found = await adopted(second)
        await times.advance(2 * HOUR)
        assert await first.store.reclaim() == 0
        assert (await second.finish(found.run, outcome=OK)).recorded == 1

    async def test_without_a_time_out_it_goes_on_for_ever(self, first: Hands, second: Hands, times: Times):
        run = await begun(first, times, within_ms=None)
        await lose(first)
        await times.advance(1000 * HOUR)
        assert await second.store.reclaim() == 0
        assert (await the_run(second, run))["open"] == "adopt"
        assert (await adopted(second)).left_ms is None


class TestTogether:
    async def test_two_that_adopt_at_once_get_different_runs(self, first: Hands, second: Hands, times: Times):
        await first.create(*(spec(at(START + SECOND)) for _ in range(40)))
        await times.advance(SECOND)
        runs = (await first.claim()).runs
        await first.store.begin_work("n1", [started(run) for run in runs])
        await first.store.detach("n1", [(run.id, run.token, HOUR) for run in runs])
        found = await asyncio.gather(*(adopt(hands, limit=10) for hands in (first, second) * 3))
        ids = [each.run.id for some in found for each in some]
        assert len(ids) == len(set(ids)) <= 40
        assert len(ids) + len(await adopt(first, limit=40)) == 40

    async def test_it_is_adopted_or_ended_but_not_both(self, first: Hands, second: Hands, times: Times):
        run = await detached(first, times, retry=Retry(attempts=1))
        await times.advance(HOUR + OVERDUE_MS)
        found, ended = await asyncio.gather(adopt(second), first.store.reclaim())
        assert len(found) + ended == 1
        assert [row["id"] for row in (*await first.live(), *await first.ledger())] == [run.id]


async def test_a_try_lives_until_its_end_is_recorded(first: Hands, second: Hands, times: Times):
    """What it started is not to be removed before, whoever has it."""
    run = await detached(first, times)
    asked = [(run.id, 1), (run.id, 2), ("99-1000", 1)]
    assert await first.store.living(asked) == {(run.id, 1)}
    found = await adopted(second)
    assert found.run.work == found.work
    assert await first.store.living(asked) == {(run.id, 1)}
    await second.finish(found.run)
    assert await first.store.living(asked) == set()
    assert await first.store.living([]) == set()
