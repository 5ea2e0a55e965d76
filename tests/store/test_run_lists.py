"""Runs as people see them: live and history as one list."""

from __future__ import annotations

import msgspec
import pytest

from onthedot.errors import Invalid, NotFound
from onthedot.model.duration import Duration
from onthedot.model.instant import format_instant
from onthedot.store import RunFilter, Store
from onthedot.store.runs import run_page
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, OK, REFUSED, Hands, at, every, spec

MINUTE = 60_000


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


async def pages(hands: Hands, limit: int, **wanted) -> list[str]:
    seen: list[str] = []
    cursor = None
    while True:
        page = await hands.store.list_runs(1, RunFilter(limit=limit, cursor=cursor, **wanted))
        assert len(page.items) <= limit
        seen += [run.id for run in page.items]
        cursor = page.next
        if cursor is None:
            return seen


class TestStatus:
    async def test_pending_until_it_is_due_then_executing(self, hands: Hands, times: Times):
        job = await hands.job(at(START + 1500))
        name = f"{job}-{START + 1500}"
        assert (await hands.store.get_run(1, name)).status == "PENDING"
        await hands.one()
        held = await hands.store.get_run(1, name)
        assert (held.status, held.node, held.attempt) == ("PENDING", "n1", 1)
        await times.advance(1500)
        assert (await hands.store.get_run(1, name)).status == "EXECUTING"

    async def test_begun_is_executing(self, hands: Hands):
        await hands.job(at(START + 1500), delivery="at_most_once")
        run = await hands.one()
        await hands.store.begin("n1", [(run.id, run.token)])
        assert (await hands.store.get_run(1, run.id)).status == "EXECUTING"

    async def test_what_is_not_yet_due_comes_only_when_pending_is_asked_for(self, hands: Hands, times: Times):
        await hands.create(spec(at(START + 1500)), spec(at(START + 600_000)))
        await hands.one()
        assert await hands.runs() == []
        assert len(await hands.runs(status="PENDING")) == 2
        assert await hands.runs(status="EXECUTING") == []
        await times.advance(1500)
        assert [run.status for run in await hands.runs()] == ["EXECUTING"]
        assert len(await hands.runs(status="PENDING")) == 1
        assert len(await hands.runs(status="EXECUTING")) == 1

    async def test_a_waiting_retry_is_pending_and_listed(self, hands: Hands, times: Times):
        await hands.job()
        run = await hands.one()
        await times.advance(1000)
        await hands.finish(run, outcome=FAILED)
        (listed,) = await hands.runs()
        assert (listed.status, listed.tries, listed.error) == ("PENDING", 1, "boom")
        assert [attempt.outcome for attempt in listed.attempts] == ["error"]


class TestLists:
    async def made(self, hands: Hands, times: Times) -> dict[str, str]:
        """One run of each status, a minute apart."""
        names = {}
        for n, what in enumerate(("DONE", "FAILED", "CANCELLED", "EXECUTING", "PENDING")):
            job = await hands.job(at(START + n * MINUTE + 100))
            names[what] = f"{job}-{START + n * MINUTE + 100}"
            if what == "CANCELLED":
                await hands.store.cancel_run(1, names[what])
            elif what != "PENDING":
                run = await hands.one()
                if what != "EXECUTING":
                    await hands.finish(run, outcome=REFUSED if what == "FAILED" else OK)
            await times.set(START + (n + 1) * MINUTE)
        return names

    async def test_newest_first_live_and_history_together(self, hands: Hands, times: Times):
        names = await self.made(hands, times)
        expected = [names[s] for s in ("PENDING", "EXECUTING", "CANCELLED", "FAILED", "DONE")]
        assert [run.id for run in await hands.runs()] == expected
        for limit in (1, 2, 3):
            assert await pages(hands, limit) == expected

    async def test_by_status(self, hands: Hands, times: Times):
        names = await self.made(hands, times)
        for status, name in names.items():
            assert [run.id for run in await hands.runs(status=status)] == [name]
        assert await hands.runs(status="SKIPPED") == []

    async def test_by_job(self, hands: Hands, times: Times):
        names = await self.made(hands, times)
        for status, name in names.items():
            job = int(name.partition("-")[0])
            assert [run.id for run in await hands.runs(job_id=job)] == [name]
            assert [run.id for run in await hands.runs(job_id=job, status=status)] == [name]
            other = "DONE" if status != "DONE" else "FAILED"
            assert await hands.runs(job_id=job, status=other) == []

    async def test_since_and_until(self, hands: Hands, times: Times):
        names = await self.made(hands, times)
        since = await hands.runs(since=START + 3 * MINUTE + 100)
        assert [run.id for run in since] == [names["PENDING"], names["EXECUTING"]]
        until = await hands.runs(until=START + MINUTE + 100)
        assert [run.id for run in until] == [names["FAILED"], names["DONE"]]
        both = await hands.runs(since=START + MINUTE, until=START + 2 * MINUTE + 100)
        assert [run.id for run in both] == [names["CANCELLED"], names["FAILED"]]

    async def test_not_another_tenant_s(self, hands: Hands, times: Times):
        names = await self.made(hands, times)
        assert (await hands.store.list_runs(2, RunFilter())).items == []
        with pytest.raises(NotFound):
            await hands.store.get_run(2, names["DONE"])
        with pytest.raises(NotFound):
            await hands.store.run_logs(2, names["DONE"])

    async def test_pending_of_every_kind_in_one_order(self, hands: Hands):
        """Cursors that are due at their slot are found by one index, all others by another."""
        specs = [spec(at(START + n * MINUTE), jitter=Duration(n % 2 * MINUTE)) for n in range(1, 13)]
        jobs = [view.id for view in await hands.create(*specs)]
        for job in jobs[::5]:
            await hands.store.pause_job(1, job)
        manual = (await hands.store.run_job(1, jobs[0])).id
        expected = [f"{job}-{START + n * MINUTE}" for n, job in enumerate(jobs, start=1)][::-1]
        for limit in (1, 3, 50):
            assert await pages(hands, limit, status="PENDING") == [*expected, manual]
            assert await pages(hands, limit, status="PENDING", since=START + 5 * MINUTE) == expected[:8]
            assert await pages(hands, limit, status="PENDING", job_id=jobs[0]) == [expected[-1], manual]

    async def test_many_runs_of_one_slot_page_well(self, hands: Hands):
        job = await hands.job(every(MINUTE))
        ids = [(await hands.store.run_job(1, job)).id for _ in range(7)]
        assert await pages(hands, 2) == sorted(ids, reverse=True)

    async def test_a_cursor_of_another_question_is_refused(self, hands: Hands, times: Times):
        await self.made(hands, times)
        page = await hands.store.list_runs(1, RunFilter(limit=1))
        with pytest.raises(Invalid, match="different list"):
            await hands.store.list_runs(1, RunFilter(limit=1, cursor=page.next, status="DONE"))
        with pytest.raises(Invalid, match="not a valid cursor"):
            await hands.store.list_runs(1, RunFilter(cursor="x"))
        with pytest.raises(Invalid, match="out of range"):
            await hands.store.list_runs(1, RunFilter(limit=501))


class TestOne:
    async def test_a_range_says_what_it_stands_for(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE), key="k")
        await times.advance(5 * MINUTE)
        await hands.claim()
        view = await hands.store.get_run(1, f"{job}-{START + MINUTE}")
        assert (view.status, view.reason, view.slots, view.key) == ("SKIPPED", "coalesced", 4, "k")
        assert view.until == format_instant(START + 4 * MINUTE)
        assert view.attempts == []

    async def test_times_and_numbers(self, hands: Hands, times: Times):
        await hands.job(at(START + 1000))
        run = await hands.one()
        await hands.finish(run, started_at=START + 1001, finished_at=START + 1033, lateness_ms=1, duration_ms=32)
        view = await hands.store.get_run(1, run.id)
        assert (view.scheduled_for, view.due_at) == (format_instant(START + 1000),) * 2
        assert (view.started_at, view.finished_at) == (format_instant(START + 1001), format_instant(START + 1033))
        assert (view.lateness_ms, view.duration_ms, view.attempt, view.tries) == (1, 32, 1, 1)

    async def test_the_ledger_outlives_the_job(self, hands: Hands):
        job = await hands.job(key="k")
        run = await hands.one()
        await hands.finish(run)
        await hands.store.delete_job(1, job)
        view = await hands.store.get_run(1, run.id)
        assert (view.status, view.key) == ("DONE", None)
        assert len(await hands.runs(job_id=job)) == 1

    async def test_no_log(self, hands: Hands):
        await hands.job()
        run = await hands.one()
        assert await hands.store.run_logs(1, run.id) is None
        with pytest.raises(NotFound):
            await hands.store.run_logs(1, "77-1700000000000")


class TestNarrowFilters:
    """Filters that no index serves: with all that a page may look at, and with pages that look at two."""

    async def made(self, hands: Hands, times: Times) -> dict[str, str]:
        names = {}
        for n, what in enumerate(("done", "failed", "refused", "waiting")):
            job = await hands.job(at(START + n * MINUTE + 100))
            await times.set(START + n * MINUTE + (5000 if what == "refused" else 100))
            run = await hands.one()
            late = 5000 if what == "refused" else 3
            outcome = {"done": OK, "failed": msgspec.structs.replace(REFUSED, error="Disk FULL")}.get(what, REFUSED)
            if what == "waiting":
                outcome = FAILED  # and is tried again
            await hands.finish(run, outcome=outcome, lateness_ms=late)
            names[what] = f"{job}-{START + n * MINUTE + 100}"
        return names

    @pytest.mark.parametrize("scanned", [2000, 2])
    async def test_by_each(self, hands: Hands, times: Times, monkeypatch, scanned):
        names = await self.made(hands, times)
        monkeypatch.setattr(run_page, "SCANNED_RUNS", scanned)
        await hands.store.run_job(1, int(names["done"].partition("-")[0]))
        (manual,) = await pages(hands, 1, trigger="manual")
        assert "-m" in manual
        for wanted, expected in (
            ({"q": "disk full"}, ["failed"]),
            ({"q": "BOOM"}, ["waiting"]),
            ({"q": "disk", "status": "FAILED"}, ["failed"]),
            ({"q": "disk", "status": "DONE"}, []),
            ({"late": True}, ["refused"]),
            ({"late": False, "status": "FAILED"}, ["failed"]),
            ({"node": "n1"}, ["refused", "failed", "done"]),
            ({"node": "n2"}, []),
            ({"trigger": "schedule"}, ["waiting", "refused", "failed", "done"]),
            ({"trigger": "chain"}, []),
            ({"status": "DONE"}, ["done"]),
            ({"status": "DONE", "job_id": int(names["failed"].partition("-")[0])}, []),
        ):
            for limit in (1, 50):
                assert await pages(hands, limit, **wanted) == [names[each] for each in expected], (wanted, limit)

    async def test_a_page_that_found_too_few_goes_on_where_it_stopped(self, hands: Hands, times: Times, monkeypatch):
        names = await self.made(hands, times)
        monkeypatch.setattr(run_page, "SCANNED_RUNS", 1)
        first = await hands.store.list_runs(1, RunFilter(status="DONE"))
        assert (first.items, first.next is None) == ([], False)
        assert await pages(hands, 50, status="DONE") == [names["done"]]
