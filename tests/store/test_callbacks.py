"""Runs that are completed by a callback, on both databases: rule by rule."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onthedot.errors import Conflict, NotFound
from onthedot.model.duration import Duration
from onthedot.model.node import NodeLoad
from onthedot.model.policy import Retry
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.model.schedule import Schedule
from onthedot.plan import Standing
from onthedot.store import Completed, RunFilter, Store
from onthedot.store.driver import Row
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, Hands, at, every, node_info, spec

SECOND, MINUTE = 1000, 60_000
WITHIN = 10 * MINUTE
LOAD = NodeLoad(held=0, running=0, lateness_ms=None, draining=False)
ACCEPTED = Outcome(kind="ok", detail={"status_code": 202, "response": "queued"})
DONE = Outcome(kind="ok", detail={"result": {"rows": 3}})
BAD = Outcome(kind="error", retryable=True, error="no rows")
FINAL = Outcome(kind="error", retryable=False, error="never")


@pytest.fixture
async def hands(store: Store, times: Times) -> Hands:
    await store.register(node_info("n1"))
    return Hands(store, "n1")


async def sent(hands: Hands, times: Times, schedule: Schedule | None = None, **more: Any) -> ClaimedRun:
    """A run of this node whose call is on its way."""
    schedule = schedule or at(times.now + SECOND)
    policy = {"completion": "callback", "completion_timeout": Duration(WITHIN), **more}
    await hands.create(spec(schedule, **policy))
    await times.advance(SECOND if schedule.every is None else schedule.every)
    return await hands.one()


async def waiting(hands: Hands, times: Times, schedule: Schedule | None = None, **more: Any) -> ClaimedRun:
    """A run whose call was accepted."""
    run = await sent(hands, times, schedule, **more)
    report = await hands.finish(run, outcome=ACCEPTED)
    assert (report.recorded, report.refused) == (1, [])
    return run


async def the_run(hands: Hands, run: ClaimedRun) -> Row:
    (row,) = await hands.sql(f"SELECT * FROM runs WHERE id = '{run.id}'")
    return row


async def complete(hands: Hands, run: ClaimedRun, outcome: Outcome = DONE, *, of: int = 1) -> Completed:
    answer = await hands.store.complete(run.id, of, outcome)
    await hands.check()
    return answer


async def lose(hands: Hands) -> None:
    (row,) = await hands.sql(f"SELECT beat FROM nodes WHERE id = '{hands.node}'")
    assert await hands.store.declare_lost(hands.node, row["beat"])
    await hands.store.reclaim()
    await hands.check()


async def again(hands: Hands, times: Times, ms: int = 2000) -> ClaimedRun:
    """The next try, at another node."""
    await times.advance(ms)
    (run,) = (await Hands(hands.store, "n2").claim()).runs
    return run


class TestAcceptance:
    async def test_it_waits_without_a_node(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        row = await the_run(hands, run)
        assert (row["state"], row["node"], row["open"], row["token"]) == ("running", None, "callback", run.token)
        assert row["open_until"] == times.now + WITHIN
        view = await hands.store.get_run(1, run.id)
        assert (view.status, view.waiting, view.node, view.tries) == ("EXECUTING", "callback", None, 0)
        assert view.started_at is not None
        assert (view.waiting_since, view.waiting_for) == (view.started_at, None)
        await hands.check()

    async def test_asked_again_because_the_answer_was_lost_nothing_changes(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        until = (await the_run(hands, run))["open_until"]
        await times.advance(SECOND)
        report = await hands.finish(run, outcome=ACCEPTED, started_at=times.now - SECOND)
        assert (report.recorded, report.refused, report.repeated) == (0, [], [run.id])
        assert (await the_run(hands, run))["open_until"] == until

    async def test_another_node_can_not_accept_it(self, hands: Hands, times: Times):
        run = await sent(hands, times)
        report = await Hands(hands.store, "n2").finish(run, outcome=ACCEPTED)
        assert report.refused == [run.id]
        assert (await the_run(hands, run))["node"] == "n1"

    async def test_a_cancel_that_its_node_had_not_read_is_carried_out(self, hands: Hands, times: Times):
        run = await sent(hands, times)
        await hands.store.cancel_run(1, run.id)
        await hands.finish(run, outcome=ACCEPTED)
        assert (await hands.store.beat("n1", LOAD)).orphans
        await hands.store.reclaim()
        view = await hands.store.get_run(1, run.id)
        assert (view.status, view.error) == ("CANCELLED", "cancelled; the receiver may still be working")

    async def test_lists_show_it_and_nobody_adopts_it(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        (found,) = (await hands.store.list_runs(1, RunFilter(status="EXECUTING"))).items
        assert (found.id, found.waiting) == (run.id, "callback")
        assert not (await hands.store.beat("n1", LOAD)).adoptable
        assert await hands.store.adopt("n1", ["webhook"], level=9, limit=10) == []


class TestComplete:
    async def test_done(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        await times.advance(5 * SECOND)
        answer = await complete(hands, run)
        assert (answer.standing, answer.run.status, answer.run.result) == (Standing.CURRENT, "DONE", {"rows": 3})
        assert answer.run.outcome == {"kind": "ok", "status_code": 202, "response": "queued"}
        assert (answer.run.duration_ms, answer.run.lateness_ms, answer.run.tries) == (5 * SECOND, 1, 1)
        (attempt,) = answer.run.attempts
        assert (attempt.attempt, attempt.node, attempt.outcome) == (run.token, "n1", "ok")

    async def test_failed_is_tried_again(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        answer = await complete(hands, run, BAD)
        assert (answer.run.status, answer.run.tries, answer.run.error) == ("PENDING", 1, "no rows")
        assert answer.run.waiting is None
        second = await again(hands, times)
        assert (second.id, second.token, second.tries) == (run.id, 2, 1)

    async def test_failed_for_good(self, hands: Hands, times: Times):
        answer = await complete(hands, await waiting(hands, times), FINAL)
        assert (answer.run.status, answer.run.reason, answer.run.error) == ("FAILED", "not_retryable", "never")
        assert len((await hands.store.list_dead(1)).items) == 1

    async def test_the_last_try_that_fails_is_a_dead_letter(self, hands: Hands, times: Times):
        run = await waiting(hands, times, retry=Retry(attempts=1))
        answer = await complete(hands, run, BAD)
        assert (answer.run.status, answer.run.reason) == ("FAILED", "attempts")

    async def test_before_its_acceptance_is_recorded(self, hands: Hands, times: Times):
        run = await sent(hands, times)
        assert (await complete(hands, run)).run.status == "DONE"
        report = await hands.finish(run, outcome=ACCEPTED)
        assert (report.refused, report.repeated) == ([], [run.id]), "a silent repeat"

    async def test_failed_before_its_acceptance_is_recorded(self, hands: Hands, times: Times):
        run = await sent(hands, times)
        assert (await complete(hands, run, BAD)).run.status == "PENDING"
        report = await hands.finish(run, outcome=ACCEPTED)
        assert (report.refused, report.repeated) == ([], [run.id])
        second = await again(hands, times)
        assert second.tries == 1
        report = await hands.finish(run, outcome=ACCEPTED)
        assert report.repeated == [run.id], "also while the next try is under way"

    async def test_after_its_node_was_lost(self, hands: Hands, times: Times):
        run = await sent(hands, times)
        await lose(hands)
        assert (await hands.store.get_run(1, run.id)).status == "PENDING"
        assert (await complete(hands, run)).run.status == "DONE"
        assert (await hands.ledger())[0]["losses"] == 1

    async def test_while_another_node_sends_the_same_try_again(self, hands: Hands, times: Times):
        run = await sent(hands, times)
        await lose(hands)
        second = await again(hands, times, 0)
        assert (await complete(hands, run)).run.status == "DONE"
        report = await Hands(hands.store, "n2").finish(second, outcome=ACCEPTED)
        assert (report.refused, report.repeated) == ([], [run.id])

    @pytest.mark.parametrize("outcome", [FAILED, Outcome(kind="timeout", retryable=True, error="timed out after 3 s")])
    async def test_of_an_earlier_try_that_was_never_accepted(self, hands: Hands, times: Times, outcome: Outcome):
        run = await sent(hands, times)
        await hands.finish(run, outcome=outcome)
        answer = await complete(hands, run)
        assert (answer.standing, answer.run.status, answer.run.tries) == (Standing.EARLIER, "DONE", 1)
        assert [attempt.outcome for attempt in answer.run.attempts] == [outcome.kind, "ok"]

    async def test_of_an_earlier_try_while_the_next_one_waits(self, hands: Hands, times: Times):
        run = await sent(hands, times)
        await hands.finish(run, outcome=FAILED)
        second = await again(hands, times)
        await Hands(hands.store, "n2").finish(second, outcome=ACCEPTED)
        assert (await complete(hands, run)).run.status == "DONE"
        late = await complete(hands, run, of=2)
        assert late.standing is Standing.OVER, "the try after it ended otherwise"

    async def test_that_an_earlier_try_failed_leaves_it_to_the_later_one(self, hands: Hands, times: Times):
        run = await sent(hands, times)
        await hands.finish(run, outcome=FAILED)
        assert (await complete(hands, run, BAD)).written is None, "it is tried again anyway"
        second = await again(hands, times)
        await Hands(hands.store, "n2").finish(second, outcome=ACCEPTED)
        assert (await complete(hands, run, FINAL)).written is None
        assert (await hands.store.get_run(1, run.id)).waiting == "callback"

    async def test_that_an_earlier_try_failed_for_good_ends_what_is_not_sent_again_yet(
        self, hands: Hands, times: Times
    ):
        run = await sent(hands, times)
        await hands.finish(run, outcome=FAILED)
        answer = await complete(hands, run, FINAL)
        assert (answer.run.status, answer.run.reason) == ("FAILED", "not_retryable")

    async def test_a_try_that_never_was(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        assert (await complete(hands, run, of=2)).standing is Standing.OVER

    async def test_a_run_that_never_was(self, hands: Hands):
        with pytest.raises(NotFound):
            await hands.store.complete(f"77-{START}", 1, DONE)

    async def test_two_at_once_count_as_one(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        answers = await asyncio.gather(*(hands.store.complete(run.id, 1, DONE) for _ in range(8)))
        assert sorted(answer.standing.value for answer in answers) == ["current"] + ["repeat"] * 7
        assert len(await hands.ledger()) == 1
        await hands.check()

    async def test_a_recurring_job_counts_it(self, hands: Hands, times: Times):
        run = await waiting(hands, times, every(MINUTE))
        await complete(hands, run)
        job = await hands.store.get_job(1, run.job_id)
        assert (job.stats.runs, job.stats.failures, job.stats.last_run_id) == (1, 0, run.id)

    async def test_a_large_result_needs_keep_result(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        answer = await complete(hands, run, Outcome(kind="ok", detail={"result": "x" * 5000}))
        assert answer.run.result is None
        assert answer.run.outcome is not None
        assert "keep_result" in answer.run.outcome["result_note"]


class TestRepeat:
    async def test_of_what_is_over(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        first = await complete(hands, run)
        answer = await complete(hands, run, FINAL)
        assert (answer.standing, answer.written, answer.run) == (Standing.REPEAT, None, first.run)

    async def test_of_a_try_that_was_followed_by_another(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        await complete(hands, run, BAD)
        second = await again(hands, times)
        answer = await complete(hands, run, BAD)
        assert (answer.standing, answer.run.tries) == (Standing.REPEAT, 1)
        await Hands(hands.store, "n2").finish(second, outcome=ACCEPTED)
        assert (await complete(hands, run, DONE)).run.waiting == "callback"
        assert (await complete(hands, run, DONE, of=2)).run.status == "DONE"


class TestRefused:
    async def log_of(self, hands: Hands, run: ClaimedRun) -> str:
        return await hands.store.run_logs(1, run.id) or ""

    async def test_after_its_time_was_up(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        await times.advance(WITHIN)
        await hands.store.reclaim()
        answer = await complete(hands, run)
        assert (answer.standing, answer.run.status) == (Standing.OVER, "PENDING"), "the next try decides"
        assert "a callback for try 1 was refused" in await self.log_of(hands, run)

    async def test_after_it_was_cancelled(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        await hands.store.cancel_run(1, run.id)
        answer = await complete(hands, run)
        assert (answer.standing, answer.run.status) == (Standing.OVER, "CANCELLED")
        assert "a callback for try 1 was refused" in await self.log_of(hands, run)


class TestOverdue:
    async def test_too_late_is_tried_again(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        await times.advance(WITHIN - 1)
        assert not (await hands.store.beat("n1", LOAD)).orphans
        await times.advance(1)
        assert (await hands.store.beat("n1", LOAD)).orphans
        assert await hands.store.reclaim() == 1
        view = await hands.store.get_run(1, run.id)
        assert (view.status, view.tries, view.losses) == ("PENDING", 1, 0)
        assert view.error == "accepted, but not completed within 10m"
        second = await again(hands, times)
        assert (second.id, second.tries) == (run.id, 1)
        await hands.check()

    async def test_the_last_try_is_a_dead_letter(self, hands: Hands, times: Times):
        run = await waiting(hands, times, retry=Retry(attempts=1))
        await times.advance(WITHIN)
        await hands.store.reclaim()
        view = await hands.store.get_run(1, run.id)
        assert (view.status, view.reason, view.duration_ms) == ("FAILED", "attempts", WITHIN)

    async def test_of_a_job_that_is_gone(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        await hands.store.delete_job(1, run.job_id)
        assert (await hands.store.get_run(1, run.id)).waiting == "callback", "a delete leaves it alone"
        await times.advance(WITHIN)
        await hands.store.reclaim()
        view = await hands.store.get_run(1, run.id)
        assert (view.status, view.reason, view.tries) == ("CANCELLED", "the job was deleted", 1), "it had tries left"
        assert view.attempts[0].error == "accepted, but not completed in time"
        assert (await hands.store.list_dead(1)).items == []

    async def test_told_to_have_failed_after_its_job_is_gone(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        await hands.store.delete_job(1, run.job_id)
        done = await hands.store.complete(run.id, 1, Outcome(kind="error", retryable=True, error="no"))
        assert (done.run.status, done.run.reason) == ("CANCELLED", "the job was deleted")


class TestAtMostOnce:
    async def begun(self, hands: Hands, times: Times) -> ClaimedRun:
        run = await sent(hands, times, delivery="at_most_once")
        assert await hands.store.begin("n1", [(run.id, run.token)]) == {run.id}
        return run

    async def test_lost_after_begin_it_waits_for_its_callback(self, hands: Hands, times: Times):
        run = await self.begun(hands, times)
        begun_at = times.now
        await times.advance(6 * SECOND)
        await lose(hands)
        row = await the_run(hands, run)
        assert (row["open"], row["node"], row["open_until"]) == ("callback", None, begun_at + WITHIN)
        assert (await complete(hands, run)).run.status == "DONE"

    async def test_and_then_nobody_knows(self, hands: Hands, times: Times):
        run = await self.begun(hands, times)
        await times.advance(6 * SECOND)
        await lose(hands)
        await times.advance(WITHIN - 6 * SECOND)
        await hands.store.reclaim()
        view = await hands.store.get_run(1, run.id)
        assert (view.status, view.reason, view.outcome) == ("FAILED", "unknown", {"kind": "unknown"})
        await hands.check()

    async def test_its_node_that_was_only_frozen_may_still_say_that_it_was_accepted(self, hands: Hands, times: Times):
        run = await self.begun(hands, times)
        until = times.now + WITHIN
        await times.advance(6 * SECOND)
        await lose(hands)
        assert (await hands.finish(run, outcome=ACCEPTED)).refused == []
        assert (await the_run(hands, run))["open_until"] == until
        await times.advance(WITHIN)
        await hands.store.reclaim()
        assert (await hands.store.get_run(1, run.id)).reason == "at_most_once", "it was accepted, and took too long"

    async def test_lost_before_begin_it_is_sent_by_another(self, hands: Hands, times: Times):
        run = await sent(hands, times, delivery="at_most_once")
        await lose(hands)
        assert (await again(hands, times, 0)).id == run.id

    async def test_interrupted_it_waits_as_well(self, hands: Hands, times: Times):
        run = await self.begun(hands, times)
        await times.advance(SECOND)
        await hands.finish(run, outcome=Outcome(kind="interrupted", error="the node stopped"))
        assert (await the_run(hands, run))["open_until"] == times.now - SECOND + WITHIN
        assert (await complete(hands, run)).run.status == "DONE"

    async def test_a_failure_is_final(self, hands: Hands, times: Times):
        run = await self.begun(hands, times)
        await hands.finish(run, outcome=ACCEPTED)
        assert (await complete(hands, run, BAD)).run.reason == "at_most_once"


class TestVerbs:
    async def test_cancel_ends_it_at_once(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        view = await hands.store.cancel_run(1, run.id)
        assert (view.status, view.reason) == ("CANCELLED", "cancelled")
        assert view.error == "cancelled; the receiver may still be working"
        with pytest.raises(Conflict):
            await hands.store.cancel_run(1, run.id)
        await hands.check()

    async def test_pause_and_edit_leave_it_alone(self, hands: Hands, times: Times):
        run = await waiting(hands, times, every(MINUTE))
        before = await the_run(hands, run)
        await hands.store.pause_job(1, run.job_id)
        await hands.store.update_job(1, run.job_id, lambda old: spec(every(2 * MINUTE)))
        after = await the_run(hands, run)
        names = ("state", "node", "open", "open_until", "token", "work", "orders", "requires", "at_most_once")
        assert [after[name] for name in names] == [before[name] for name in names]
        assert (await complete(hands, run)).run.status == "DONE"

    async def test_a_run_that_fails_while_its_job_is_paused_waits_for_the_resume(self, hands: Hands, times: Times):
        run = await waiting(hands, times, every(MINUTE))
        await hands.store.pause_job(1, run.job_id)
        assert (await complete(hands, run, BAD)).run.reason == "paused"


class TestLanes:
    async def test_the_lane_stays_taken_and_is_released_by_the_callback(self, hands: Hands, times: Times):
        run = await waiting(hands, times, every(MINUTE), overlap="queue")
        await times.advance(MINUTE)
        assert (await hands.claim()).runs == []
        assert [row["parked"] for row in await hands.live() if row["id"] != run.id and not row["cursor"]] == ["lane"]
        assert (await complete(hands, run)).laned
        (following,) = (await hands.claim()).runs
        assert following.slot == run.slot + MINUTE
        await hands.check()

    async def test_and_by_its_time_being_up(self, hands: Hands, times: Times):
        await waiting(hands, times, every(MINUTE), overlap="queue", retry=Retry(attempts=1))
        await times.advance(MINUTE)
        assert (await hands.claim()).runs == []
        await times.advance(WITHIN)
        await hands.store.reclaim()
        assert len((await hands.claim()).runs) == 1
        await hands.check()

    async def test_a_newer_run_replaces_it(self, hands: Hands, times: Times):
        run = await waiting(hands, times, every(MINUTE), overlap="replace")
        await times.advance(MINUTE)
        assert (await hands.claim()).runs == []
        assert (await hands.store.beat("n1", LOAD)).orphans
        await hands.store.reclaim()
        view = await hands.store.get_run(1, run.id)
        assert (view.status, view.reason) == ("CANCELLED", "replaced")
        (following,) = (await hands.claim()).runs
        assert following.slot == run.slot + MINUTE

    async def test_a_queued_run_follows_one_whose_node_died(self, hands: Hands, times: Times):
        run = await waiting(hands, times, every(MINUTE), overlap="queue")
        await lose(hands)
        assert (await the_run(hands, run))["open"] == "callback", "it has no node that it could lose"
        other = Hands(hands.store, "n2")
        await times.advance(MINUTE)
        assert (await other.claim()).runs == []
        await complete(other, run)
        (following,) = (await other.claim()).runs
        assert following.slot == run.slot + MINUTE
        await hands.check()


class TestProgress:
    async def test_it_shows(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        until = (await the_run(hands, run))["open_until"]
        await hands.store.set_progress(run.id, 1, {"percent": 40, "message": "rows"})
        view = await hands.store.get_run(1, run.id)
        assert view.progress is not None
        assert (view.progress["percent"], view.progress["message"]) == (40, "rows")
        assert view.progress["at"].startswith("2023-11-14T22:13:21")
        assert (await the_run(hands, run))["open_until"] == until, "it extends nothing"

    async def test_a_retry_begins_without(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        await hands.store.set_progress(run.id, 1, {"percent": 40})
        assert (await complete(hands, run, BAD)).run.progress is None
        with pytest.raises(Conflict):
            await hands.store.set_progress(run.id, 1, {"percent": 50})

    async def test_not_of_what_is_over_or_never_was(self, hands: Hands, times: Times):
        run = await waiting(hands, times)
        await complete(hands, run)
        with pytest.raises(Conflict):
            await hands.store.set_progress(run.id, 1, {"percent": 50})
        with pytest.raises(NotFound):
            await hands.store.set_progress(f"77-{START}", 1, {"percent": 50})


async def test_the_secret_is_made_once(store: Store):
    made = await asyncio.gather(*(store.callback_secret(f"{n:064x}") for n in range(8)))
    assert len(set(made)) == 1
    assert await store.callback_secret("another") == made[0]
