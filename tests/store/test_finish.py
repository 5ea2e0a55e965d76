"""begin and finish: the ledger, retries, fences, what was recorded before, and what follows from it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from onthedot import telemetry
from onthedot.model.instant import NEVER
from onthedot.model.run import Outcome
from onthedot.plan import Dead
from onthedot.store import Store
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, OK, REFUSED, Hands, at, every, spec

MINUTE = 60_000


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


@pytest.fixture
def said():
    events: list[tuple[str, dict[str, Any]]] = []
    stop = telemetry.subscribe(lambda event: events.append((event.name, event.fields)))
    yield events
    stop()


class TestDone:
    async def test_it_leaves_runs_and_enters_the_ledger(self, hands: Hands):
        await hands.job()
        run = await hands.one()
        outcome = Outcome(kind="ok", detail={"status_code": 204})
        report = await hands.finish(run, outcome=outcome)
        assert (report.recorded, report.refused, report.repeated) == (1, [], [])
        assert await hands.live() == []
        (row,) = await hands.ledger()
        assert (row["id"], row["status"], row["token"], row["tries"], row["node"]) == (run.id, "done", 1, 1, "n1")
        view = await hands.store.get_run(1, run.id)
        assert view.outcome == {"kind": "ok", "status_code": 204}
        assert [(a.attempt, a.node, a.outcome) for a in view.attempts] == [(1, "n1", "ok")]
        await hands.check()

    async def test_statistics_of_a_recurring_job(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE))
        for outcome, duration in ((OK, 10), (OK, 20), (REFUSED, 60)):
            await times.advance(MINUTE)
            await hands.finish(await hands.one(), outcome=outcome, duration_ms=duration, lateness_ms=7)
        stats = (await hands.store.get_job(1, job)).stats
        assert (stats.runs, stats.failures, stats.avg_duration_ms, stats.last_duration_ms) == (3, 1, 30.0, 60)
        assert (stats.last_lateness_ms, stats.last_status) == (7, "FAILED")
        assert stats.last_run_id == f"{job}-{START + 3 * MINUTE}"

    async def test_several_runs_of_one_job_in_one_batch(self, hands: Hands):
        job = await hands.job(every(1000))
        runs = [*(await hands.claim()).runs, *(await hands.claim()).runs]
        assert (await hands.finish(*runs)).recorded == 2
        assert (await hands.store.get_job(1, job)).stats.runs == 2

    async def test_the_log_is_kept(self, hands: Hands):
        await hands.job()
        run = await hands.one()
        await hands.finish(run, log="hello\nworld\n")
        assert await hands.store.run_logs(1, run.id) == "hello\nworld\n"

    async def test_its_last_64_kb_over_all_attempts(self, hands: Hands, times: Times):
        await hands.job()
        run = await hands.one()
        await hands.finish(run, outcome=FAILED, log="a" * 70_000)
        await times.advance(10_000)
        await hands.finish(await hands.one(), log="b" * 100)
        log = await hands.store.run_logs(1, run.id)
        assert log == "a" * (65_536 - 100) + "b" * 100

    async def test_what_no_database_can_store_is_replaced(self, hands: Hands):
        await hands.job()
        run = await hands.one()
        await hands.finish(run, outcome=Outcome(kind="error", error="a\x00b\udc80"), log="x\x00y\ud800")
        assert (await hands.store.get_run(1, run.id)).error == "a\ufffdb?"
        assert await hands.store.run_logs(1, run.id) == "x\ufffdy?"

    @pytest.mark.parametrize("others", [0, 1], ids=["alone", "among others"])
    async def test_a_slot_that_is_in_the_ledger_already_is_an_alarm(self, hands: Hands, said, others: int):
        await hands.create(*(spec() for _ in range(1 + others)))
        runs = (await hands.claim()).runs
        await hands.sql(
            "INSERT INTO history (id, tenant, job_id, slot, kind, due_at, status, finished_at)"
            f" VALUES ('{runs[0].id}', 1, {runs[0].job_id}, {runs[0].slot}, 'scheduled', 1, 'done', 1)"
        )
        assert (await hands.finish(*runs)).recorded == 1 + others
        assert [fields for name, fields in said if name == "ledger.conflict"] == [{"run_id": runs[0].id}]
        assert await hands.live() == []
        assert len(await hands.sql("SELECT id FROM history")) == 1 + others


class TestRetry:
    async def test_it_is_pending_again_with_its_attempt(self, hands: Hands, times: Times):
        await hands.job()
        run = await hands.one()
        assert (await hands.finish(run, outcome=FAILED)).recorded == 1
        (row,) = await hands.live()
        assert (row["state"], row["node"], row["tries"], row["token"]) == ("pending", None, 1, 1)
        assert row["ready_at"] > times.now
        assert (await hands.claim()).runs == []
        await times.set(row["ready_at"])
        again = await hands.one()
        assert (again.token, again.tries, again.first_claimed_at) == (2, 1, START)
        assert [(a.attempt, a.outcome, a.error) for a in again.attempts] == [(1, "error", "boom")]
        await hands.check()

    async def test_the_third_failure_is_a_dead_letter(self, hands: Hands, times: Times):
        job = await hands.job()
        for _ in range(3):
            await hands.finish(await hands.one(), outcome=FAILED)
            await times.advance(10_000)
        (dead,) = (await hands.store.list_dead(1)).items
        assert (dead.status, dead.reason, dead.tries, dead.attempt) == ("FAILED", "attempts", 3, 3)
        assert [attempt.attempt for attempt in dead.attempts] == [1, 2, 3]
        assert (await hands.store.get_job(1, job)).state == "ended"
        await hands.check()

    async def test_what_can_not_succeed_is_one_at_once(self, hands: Hands):
        await hands.job()
        await hands.finish(await hands.one(), outcome=REFUSED)
        assert [run.reason for run in (await hands.store.list_dead(1)).items] == ["not_retryable"]

    async def test_the_last_20_attempts_stay(self, hands: Hands, times: Times):
        from onthedot.model.policy import Retry

        await hands.job(retry=Retry(attempts=30))
        for _ in range(30):
            await hands.finish(await hands.one(), outcome=FAILED)
            await times.advance(3_600_000)
        view = (await hands.runs())[0]
        assert [attempt.attempt for attempt in view.attempts] == list(range(11, 31))

    async def test_a_late_run_becomes_backlog(self, hands: Hands, times: Times):
        await hands.job()
        run = await hands.one()
        await times.advance(70_000)
        await hands.finish(run, outcome=FAILED)
        assert [bool(row["backlog"]) for row in await hands.live()] == [True]

    async def test_while_paused_it_is_parked(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE))
        await times.advance(MINUTE)
        run = await hands.one()
        await hands.store.pause_job(1, job)
        await hands.finish(run, outcome=FAILED)
        row = next(row for row in await hands.live(job) if row["id"] == run.id)
        assert (row["parked"], row["ready_at"]) == ("paused", NEVER)
        await times.advance(MINUTE)
        assert (await hands.claim()).runs == []
        await hands.store.resume_job(1, job)
        assert run.id in [again.id for again in (await hands.claim()).runs]
        await hands.check()

    async def test_but_not_what_was_run_by_hand(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE))
        await hands.store.pause_job(1, job)
        manual = await hands.store.run_job(1, job)
        await hands.finish(await hands.one(), outcome=FAILED)
        await times.advance(10_000)
        assert (await hands.one()).id == manual.id

    async def test_of_a_job_that_is_gone_it_ends(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE))
        await times.advance(MINUTE)
        run = await hands.one()
        await hands.store.delete_job(1, job)
        assert (await hands.finish(run, outcome=FAILED)).recorded == 1
        assert [row["status"] for row in await hands.ledger() if row["id"] == run.id] == ["cancelled"]
        await hands.check()

    @pytest.mark.parametrize("verb", ["cancel", "delete"])
    async def test_an_attempt_that_failed_meanwhile_is_told(self, hands: Hands, times: Times, verb: str):
        """The receiver has it; the ledger said that there had been no attempt at all."""
        job = await hands.job(every(MINUTE))
        await times.advance(MINUTE)
        run = await hands.one()
        await (hands.store.cancel_run(1, run.id) if verb == "cancel" else hands.store.delete_job(1, job))
        await hands.finish(run, outcome=FAILED, started_at=START + MINUTE, duration_ms=7)
        view = await hands.store.get_run(1, run.id)
        assert (view.status, view.tries, view.attempt, view.node) == ("CANCELLED", 1, run.token, "n1")
        assert (view.error, view.duration_ms, view.started_at is not None) == (FAILED.error, 7, True)
        assert [(attempt.attempt, attempt.outcome) for attempt in view.attempts] == [(run.token, "error")]
        await hands.check()

    async def test_dead_letters_of_a_deleted_job_are_none(self, hands: Hands, times: Times):
        """Nobody could drive it again, and it stood in the list for as long as the ledger is kept."""
        job = await hands.job(every(MINUTE), delivery="at_most_once")
        await times.advance(MINUTE)
        run = await hands.one()
        await hands.store.begin("n1", [(run.id, run.token)])
        await hands.store.delete_job(1, job)
        await hands.finish(run, outcome=FAILED)
        assert (await hands.store.get_run(1, run.id)).status == "FAILED"
        assert (await hands.store.list_dead(1)).items == []

    async def test_it_needs_what_the_job_asks_for_now(self, hands: Hands, times: Times):
        from onthedot.model.targets import CommandTarget

        job = await hands.job(every(MINUTE))
        await times.advance(MINUTE)
        run = await hands.one()
        await hands.store.update_job(1, job, lambda _: spec(every(MINUTE), target=CommandTarget(command="c")))
        await hands.finish(run, outcome=FAILED)
        assert {row["requires"] for row in await hands.live(job)} == {"command:c"}


class TestFence:
    async def test_another_node_is_refused(self, hands: Hands, said):
        await hands.job()
        run = await hands.one()
        report = await Hands(hands.store, "n2").finish(run)
        assert (report.recorded, report.refused) == (0, [run.id])
        assert ("run.refused", {"run_id": run.id}) in said
        assert [row["state"] for row in await hands.live()] == ["running"]

    async def test_an_old_token_is_refused(self, hands: Hands, times: Times):
        await hands.job()
        old = await hands.one()
        await hands.store.reclaim()
        new = await hands.one()
        assert (old.id, old.token, new.token) == (new.id, 1, 2)
        assert (await hands.finish(old, outcome=FAILED)).refused == [old.id]
        assert (await hands.finish(new)).recorded == 1
        assert (await hands.finish(old)).refused == [old.id]

    async def test_a_refused_one_off_does_not_end_its_job(self, hands: Hands):
        job = await hands.job()
        old = await hands.one()
        await hands.store.reclaim()
        assert (await hands.finish(old)).refused == [old.id]
        assert (await hands.store.get_job(1, job)).state == "active"
        await hands.check()

    async def test_the_others_of_its_batch_are_recorded(self, hands: Hands):
        await hands.create(spec(), spec(), spec())
        runs = (await hands.claim()).runs
        stale = msgspec.structs.replace(runs[1], token=9)
        report = await hands.finish(runs[0], stale, runs[2])
        assert (report.recorded, report.refused) == (2, [runs[1].id])
        assert len(await hands.ledger()) == 2
        await hands.check()

    async def test_the_same_again_is_silent(self, hands: Hands, said):
        """The answer to a COMMIT was lost; the node sends it once more."""
        await hands.create(spec(), spec(), spec(every(1000)))
        runs = (await hands.claim()).runs
        await hands.finish(runs[0])
        await hands.finish(runs[1], outcome=FAILED)
        again = await hands.finish(runs[0])
        assert (again.recorded, again.refused, again.repeated) == (0, [], [runs[0].id])
        retried = await hands.finish(runs[1], outcome=FAILED)
        assert (retried.recorded, retried.repeated) == (0, [runs[1].id])
        assert "run.refused" not in [name for name, _ in said]

    async def test_the_same_again_counts_nothing_twice(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE))
        await times.advance(MINUTE)
        run = await hands.one()
        await hands.finish(run)
        await hands.finish(run)
        assert (await hands.store.get_job(1, job)).stats.runs == 1


class TestEdits:
    async def test_a_one_off_that_got_a_new_time_while_it_ran_is_not_ended(self, hands: Hands):
        job = await hands.job(at(START + 1000))
        run = await hands.one()
        await hands.store.update_job(1, job, lambda _: spec(at(START + 60_000)))
        await hands.finish(run)
        assert (await hands.store.get_job(1, job)).state == "active"
        await hands.check()

    async def test_one_that_only_got_another_target_is(self, hands: Hands):
        job = await hands.job(at(START + 1000))
        run = await hands.one()
        await hands.store.update_job(1, job, lambda old: msgspec.structs.replace(old, tags=["x"]))
        await hands.finish(run)
        assert (await hands.store.get_job(1, job)).state == "ended"
        await hands.check()

    async def test_one_that_became_recurring_goes_on(self, hands: Hands):
        job = await hands.job(at(START + 1000))
        run = await hands.one()
        await hands.store.update_job(1, job, lambda _: spec(every(MINUTE)))
        await hands.finish(run)
        assert (await hands.store.get_job(1, job)).state == "active"
        await hands.check()

    async def test_a_manual_run_does_not_end_a_one_off(self, hands: Hands):
        job = await hands.job(at(START + 600_000))
        await hands.store.run_job(1, job)
        await hands.finish(await hands.one())
        assert (await hands.store.get_job(1, job)).state == "active"
        await hands.check()


class TestBegin:
    async def test_it_is_recorded_before_it_is_sent(self, hands: Hands, times: Times):
        await hands.job(delivery="at_most_once")
        run = await hands.one()
        assert await hands.store.begin("n1", [(run.id, run.token)]) == {run.id}
        assert [row["begun_at"] for row in await hands.live()] == [START]
        await times.advance(5)
        assert await hands.store.begin("n1", [(run.id, run.token)]) == {run.id}, "its answer was lost"
        assert [row["begun_at"] for row in await hands.live()] == [START]

    async def test_only_by_its_owner(self, hands: Hands):
        await hands.job(delivery="at_most_once")
        run = await hands.one()
        assert await hands.store.begin("n2", [(run.id, run.token)]) == set()
        assert await hands.store.begin("n1", [(run.id, 7)]) == set()
        assert await hands.store.begin("n1", []) == set()

    async def test_not_after_it_was_cancelled(self, hands: Hands):
        await hands.job(delivery="at_most_once")
        run = await hands.one()
        await hands.store.cancel_run(1, run.id)
        assert await hands.store.begin("n1", [(run.id, run.token)]) == set()

    async def test_a_failure_is_final(self, hands: Hands):
        await hands.job(delivery="at_most_once")
        run = await hands.one()
        finished = hands.ended(run, FAILED, now=START)
        assert isinstance(finished.decision, Dead)
        await hands.store.finish("n1", [finished])
        assert (await hands.store.get_run(1, run.id)).status == "FAILED"


async def test_nothing_is_no_work(hands: Hands):
    assert (await hands.store.finish("n1", [])).recorded == 0
