"""Orders, what a node gives back, cancel."""

from __future__ import annotations

import msgspec
import pytest

from onthedot.errors import Conflict, NotFound
from onthedot.store import LetterFilter, Store
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, Hands, at, every, spec

MINUTE = 60_000


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


def fence(run):
    return (run.id, run.token)


class TestGiveBack:
    async def test_the_same_run_with_the_same_token_and_no_try(self, hands: Hands):
        await hands.job(at(START + 1500))
        run = await hands.one()
        await hands.store.give_back("n1", [fence(run)])
        (row,) = await hands.live()
        assert (row["state"], row["token"], row["tries"], row["losses"]) == ("pending", 1, 0, 0)
        assert row["ready_at"] == START, "never before now"
        again = await hands.one()
        assert (again.id, again.token) == (run.id, 2)
        await hands.check()

    async def test_only_what_is_its_own(self, hands: Hands):
        await hands.job()
        run = await hands.one()
        await hands.store.give_back("n2", [fence(run)])
        await hands.store.give_back("n1", [(run.id, 9)])
        await hands.store.give_back("n1", [])
        assert [row["state"] for row in await hands.live()] == ["running"]

    async def test_a_recurring_run_is_not_the_cursor_again(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE))
        await times.advance(MINUTE)
        run = await hands.one()
        await hands.store.give_back("n1", [fence(run)])
        assert [bool(row["cursor"]) for row in await hands.live(job)] == [False, True]
        assert (await hands.one()).id == run.id
        await hands.check()

    async def test_a_one_off_is(self, hands: Hands):
        """So that an edit finds it and moves it."""
        job = await hands.job(at(START + 1500))
        await hands.store.give_back("n1", [fence(await hands.one())])
        assert [bool(row["cursor"]) for row in await hands.live()] == [True]
        await hands.store.update_job(1, job, lambda _: spec(at(START + 60_000)))
        assert [row["slot"] for row in await hands.live()] == [START + 60_000]
        await hands.check()

    async def test_of_a_deleted_job_it_is_cancelled(self, hands: Hands):
        job = await hands.job(every(1000))
        run = await hands.one()
        await hands.store.delete_job(1, job)
        assert [order.what for order in (await hands.store.poll_orders("n1")).orders] == ["recall"]
        await hands.store.give_back("n1", [fence(run)])
        assert (run.id, "cancelled") in [(row["id"], row["status"]) for row in await hands.ledger()]
        assert await hands.live() == []
        await hands.check()

    async def test_of_another_schedule_it_is_cancelled(self, hands: Hands):
        job = await hands.job(every(1000))
        run = await hands.one()
        await hands.store.update_job(1, job, lambda _: spec(every(7000)))
        await hands.store.give_back("n1", [fence(run)])
        (row,) = await hands.ledger(job)
        assert (row["id"], row["status"], row["reason"]) == (run.id, "cancelled", "rescheduled")
        await hands.check()

    async def test_of_the_same_schedule_it_fires_with_the_new_target(self, hands: Hands):
        job = await hands.job(every(1000))
        run = await hands.one()
        await hands.store.update_job(1, job, lambda old: msgspec.structs.replace(old, params={"a": 1}))
        await hands.store.give_back("n1", [fence(run)])
        again = next(each for each in (await hands.claim()).runs if each.id == run.id)
        assert (again.spec.params, again.version) == ({"a": 1}, 2)
        await hands.check()

    async def test_of_a_paused_job_it_is_skipped(self, hands: Hands):
        job = await hands.job(every(1000))
        run = await hands.one()
        await hands.store.pause_job(1, job)
        await hands.store.give_back("n1", [fence(run)])
        (row,) = await hands.ledger(job)
        assert (row["id"], row["status"], row["reason"]) == (run.id, "skipped", "paused")
        await hands.check()

    async def test_a_paused_one_off_waits_for_the_resume(self, hands: Hands, times: Times):
        job = await hands.job(at(START + 1500))
        run = await hands.one()
        await hands.store.pause_job(1, job)
        await hands.store.give_back("n1", [fence(run)])
        assert (await hands.claim()).runs == []
        await hands.check()
        await times.advance(MINUTE)
        await hands.store.resume_job(1, job)
        assert (await hands.one()).id == run.id
        await hands.check()

    async def test_a_paused_job_s_retry_waits_for_the_resume(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE))
        await times.advance(MINUTE)
        await hands.finish(await hands.one(), outcome=FAILED)
        await times.advance(5000)
        run = await hands.one()
        await hands.store.pause_job(1, job)
        await hands.store.give_back("n1", [fence(run)])
        assert [row["parked"] for row in await hands.live(job)] == ["paused", "paused"]
        await hands.check()

    async def test_it_frees_its_lane(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE), overlap="queue")
        await times.advance(MINUTE)
        run = await hands.one()
        await times.advance(MINUTE)
        await hands.claim()
        await hands.store.give_back("n1", [fence(run)])
        assert [row["parked"] for row in await hands.live(job)] == [None, None, None]
        await hands.check()


class TestOrders:
    async def test_there_are_none(self, hands: Hands):
        await hands.job()
        await hands.claim()
        assert (await hands.store.poll_orders("n1")).orders == []

    async def test_a_pause_recalls_what_is_held_ahead(self, hands: Hands):
        job = await hands.job(every(1500))
        run = await hands.one()
        await hands.store.pause_job(1, job)
        (order,) = (await hands.store.poll_orders("n1")).orders
        assert (order.run_id, order.token, order.what) == (run.id, 1, "recall")
        assert (await hands.store.poll_orders("n2")).orders == []

    async def test_giving_back_does_not_undo_a_cancel(self, hands: Hands):
        job = await hands.job(at(START + 1500))
        run = await hands.one()
        await hands.store.cancel_run(1, run.id)
        await hands.store.give_back("n1", [fence(run)])
        assert (await hands.store.get_run(1, run.id)).status == "CANCELLED"
        assert (await hands.store.get_job(1, job)).state == "ended"
        assert (await hands.store.poll_orders("n1")).orders == []
        await hands.check()

    async def test_held(self, hands: Hands):
        await hands.create(spec(), spec())
        runs = (await hands.claim()).runs
        assert await hands.store.held("n1") == sorted(fence(run) for run in runs)
        await hands.finish(runs[0])
        assert await hands.store.held("n1") == [fence(runs[1])]
        assert await hands.store.held("n2") == []


class TestCancel:
    async def test_what_waits_is_cancelled_at_once(self, hands: Hands):
        job = await hands.job(at(START + 60_000))
        view = await hands.store.cancel_run(1, f"{job}-{START + 60_000}")
        assert (view.status, view.reason) == ("CANCELLED", "cancelled")
        assert (await hands.store.get_job(1, job)).state == "ended"
        assert await hands.live() == []
        await hands.check()

    async def test_the_cursor_of_a_recurring_job_makes_way_for_the_next(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE))
        await hands.store.cancel_run(1, f"{job}-{START + MINUTE}")
        (cursor,) = await hands.live(job)
        assert (cursor["slot"], bool(cursor["cursor"])) == (START + 2 * MINUTE, True)
        await hands.check()
        await times.advance(2 * MINUTE)
        assert (await hands.one()).slot == START + 2 * MINUTE

    async def test_the_last_slot_ends_the_job(self, hands: Hands):
        job = await hands.job(every(MINUTE, count=1))
        await hands.store.cancel_run(1, f"{job}-{START + MINUTE}")
        assert (await hands.store.get_job(1, job)).state == "ended"

    async def test_of_a_paused_job(self, hands: Hands):
        job = await hands.job(every(MINUTE))
        await hands.store.pause_job(1, job)
        await hands.store.cancel_run(1, f"{job}-{START + MINUTE}")
        assert [(row["slot"], row["parked"]) for row in await hands.live(job)] == [(START + 2 * MINUTE, "paused")]
        await hands.check()

    async def test_a_waiting_retry(self, hands: Hands):
        job = await hands.job()
        run = await hands.one()
        await hands.finish(run, outcome=FAILED)
        view = await hands.store.cancel_run(1, run.id)
        assert (view.status, view.tries, len(view.attempts)) == ("CANCELLED", 1, 1)
        assert (await hands.store.get_job(1, job)).state == "ended"
        await hands.check()

    async def test_what_runs_is_ordered_to_stop(self, hands: Hands, times: Times):
        await hands.job()
        run = await hands.one()
        await times.advance(2000)
        assert (await hands.store.cancel_run(1, run.id)).status == "EXECUTING"
        polled = await hands.store.poll_orders("n1")
        assert [(order.run_id, order.what) for order in polled.orders] == [(run.id, "cancel")]

    async def test_what_has_ended_stays(self, hands: Hands):
        await hands.job()
        run = await hands.one()
        await hands.finish(run)
        with pytest.raises(Conflict, match="has already ended: DONE"):
            await hands.store.cancel_run(1, run.id)

    @pytest.mark.parametrize("name", ["9-1700000000000", "x", "", "1-2-3", "99999999999999999999-1", "1-1-m", "1-１"])
    async def test_what_is_not_there(self, hands: Hands, name: str):
        with pytest.raises(NotFound):
            await hands.store.cancel_run(1, name)

    async def test_another_tenant_s_run_is_not_there(self, hands: Hands):
        job = await hands.job(at(START + 60_000))
        with pytest.raises(NotFound):
            await hands.store.cancel_run(2, f"{job}-{START + 60_000}")
        assert len(await hands.live()) == 1

    async def test_a_waiter_that_is_cancelled_lets_the_next_go(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE), overlap="queue")
        await times.advance(MINUTE)
        first = await hands.one()
        ids = [(await hands.store.run_job(1, job)).id for _ in range(2)]
        await hands.claim()
        await hands.finish(first)
        released = next(row["id"] for row in await hands.live(job) if row["kind"] == "manual" and not row["parked"])
        await hands.store.cancel_run(1, released)
        assert (await hands.one()).id in set(ids) - {released}
        await hands.check()


class TestRedrive:
    async def dead(self, hands: Hands, n: int = 1, **more) -> list[str]:
        await hands.create(*[spec(**more) for _ in range(n)])
        runs = (await hands.claim(1000)).runs
        await hands.finish(*runs, outcome=FAILED.__class__(kind="error", error="no"))
        return sorted(run.id for run in runs)

    async def test_a_new_run_takes_the_place_of_the_dead_letter(self, hands: Hands):
        (dead,) = await self.dead(hands)
        (new,) = await hands.store.redrive(1, LetterFilter(ids=[dead]))
        assert new.startswith(f"{dead}-r")
        assert (await hands.store.list_dead(1)).items == []
        (row,) = await hands.live()
        assert (row["parent"], row["kind"], bool(row["backlog"]), row["due_at"]) == (dead, "redrive", True, START)
        assert (await hands.store.get_run(1, dead)).status == "FAILED", "the ledger never changes"
        run = await hands.one()
        await hands.finish(run)
        assert (await hands.store.get_run(1, new)).status == "DONE"
        await hands.check()

    async def test_once(self, hands: Hands):
        (dead,) = await self.dead(hands)
        assert len(await hands.store.redrive(1)) == 1
        assert await hands.store.redrive(1, LetterFilter(ids=[dead])) == []

    async def test_all_of_a_job_or_all_there_are(self, hands: Hands):
        dead = await self.dead(hands, 4)
        job = int(dead[0].partition("-")[0])
        assert len(await hands.store.redrive(1, LetterFilter(job_id=job))) == 1
        assert len(await hands.store.redrive(1, limit=2)) == 2
        assert len(await hands.store.redrive(1)) == 1
        assert await hands.store.redrive(1) == []

    async def test_not_another_tenant_s(self, hands: Hands):
        await self.dead(hands)
        assert await hands.store.redrive(2) == []

    async def test_retry_of_one_run(self, hands: Hands):
        await hands.job()
        run = await hands.one()
        await hands.finish(run)
        view = await hands.store.retry_run(1, run.id)
        assert (view.status, view.kind) == ("PENDING", "redrive")
        assert (await hands.one()).id == view.id

    async def test_of_a_live_run_there_is_nothing_to_retry(self, hands: Hands):
        await hands.job()
        run = await hands.one()
        with pytest.raises(Conflict, match="has not ended"):
            await hands.store.retry_run(1, run.id)

    async def test_of_a_deleted_job_neither(self, hands: Hands):
        job = await hands.job()
        run = await hands.one()
        await hands.finish(run)
        await hands.store.delete_job(1, job)
        with pytest.raises(NotFound, match="its job was deleted"):
            await hands.store.retry_run(1, run.id)

    async def test_of_a_paused_job_it_waits_for_the_resume(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE))
        await times.advance(MINUTE)
        run = await hands.one()
        await hands.finish(run)
        await hands.store.pause_job(1, job)
        await hands.store.retry_run(1, run.id)
        assert (await hands.claim()).runs == []
        await hands.store.resume_job(1, job)
        assert [each.kind for each in (await hands.claim()).runs] == ["redrive"]
        await hands.check()

    async def test_dead_letters_come_in_pages(self, hands: Hands, times: Times):
        names = []
        for _ in range(5):
            names += await self.dead(hands)
            await times.advance(1000)
        seen: list[str] = []
        cursor = None
        while True:
            page = await hands.store.list_dead(1, limit=2, cursor=cursor)
            seen += [run.id for run in page.items]
            cursor = page.next
            if cursor is None:
                break
        assert seen == names[::-1]
        job = int(names[0].partition("-")[0])
        assert [run.id for run in (await hands.store.list_dead(1, LetterFilter(job_id=job))).items] == [names[0]]
