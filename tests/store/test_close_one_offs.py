"""A one-off job has ended the moment its run has, for everybody who asks; its row says so some time later."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from onthedot.errors import NotFound
from onthedot.model.instant import format_instant
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.store import JobFilter, Store
from tests.store.conftest import START, Times
from tests.store.given import fetch
from tests.store.hands import FAILED, OK, REFUSED, Hands, at, every, spec

MINUTE = 60_000


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


async def fired(hands: Hands) -> ClaimedRun:
    """The only run of a job, gone; nobody has closed it."""
    await hands.create(spec(at(START + 1000), key="k"))
    run = await hands.one()
    await hands.finish(run)
    assert await rows(hands) == [("active", None)]
    return run


async def rows(hands: Hands) -> list[tuple[str, int | None]]:
    return [(row["state"], row["ended_at"]) for row in await hands.sql("SELECT * FROM jobs ORDER BY id")]


async def notes(hands: Hands) -> int:
    return sum(row["jobs"] for row in await fetch(hands.store, "SELECT jobs FROM endings"))


async def listed(hands: Hands, **wanted: Any) -> list[str]:
    return [job.state for job in (await hands.store.list_jobs(1, JobFilter(**wanted))).items]


class TestReading:
    async def test_a_job_reads_as_ended_at_once(self, hands: Hands):
        run = await fired(hands)
        store = hands.store
        assert (await store.get_job(1, run.job_id)).state == "ended"
        assert (await store.get_job_by_key(1, "k")).state == "ended"
        assert (await store.get_record(1, run.job_id)).state == "ended"
        assert await listed(hands) == ["ended"]
        assert await listed(hands, q="k") == ["ended"]
        assert await rows(hands) == [("active", None)], "nobody had to close anything for that"

    async def test_lists_by_state_are_right(self, hands: Hands):
        await fired(hands)
        await hands.create(spec(at(START + MINUTE)), spec(every(MINUTE)))
        assert await listed(hands, status="active") == ["active", "active"]
        assert await listed(hands, status="ended") == ["ended"]

        assert (await rows(hands))[0] == ("active", None), "and nobody had to close anything for that"

    @pytest.mark.parametrize(
        "by", [{}, {"q": "k"}, {"tag": "t"}, {"owner": "o"}, {"target": "webhook"}, {"schedule": "at"}]
    )
    async def test_by_whatever_they_are_listed(self, hands: Hands, by: dict[str, Any]):
        """Ended and closed, ended and not closed, active; all that a filter finds, page by page."""
        facts = {"tags": ("t",), "owner": "o"}
        jobs = [msgspec.structs.replace(spec(at(START + 1000), key=f"k{n}"), **facts) for n in range(4)]
        made = [job.id for job in await hands.create(*jobs)]
        first, second, *rest = sorted((await hands.claim()).runs, key=lambda run: run.job_id)
        await hands.finish(first)
        await hands.store.close_one_offs()
        await hands.finish(second, rest[0])
        ended, page = list[int](), JobFilter(status="ended", limit=1, **by)
        pages = 0
        while pages == 0 or page.cursor is not None:
            found = await hands.store.list_jobs(1, page)
            ended += [job.id for job in found.items]
            page = msgspec.structs.replace(page, cursor=found.next)
            pages += 1
        assert pages <= 4, "a list by words may end with an empty page"
        assert sorted(ended) == made[:3]
        (active,) = (await hands.store.list_jobs(1, JobFilter(status="active", **by))).items
        assert active.id == made[3]

    async def test_another_filter_still_holds(self, hands: Hands):
        await fired(hands)
        for other in ({"target": "command"}, {"schedule": "in"}, {"owner": "o"}, {"tag": "t"}, {"q": "x"}):
            assert await listed(hands, status="ended", **other) == []
        assert (await hands.store.list_jobs(2, JobFilter(status="ended"))).items == []

    async def test_one_that_was_noted_and_goes_on_is_not_among_them(self, hands: Hands):
        run = await fired(hands)
        await hands.store.update_job(1, run.job_id, lambda _: spec(at(START + MINUTE), key="k"))
        assert await notes(hands) == 1
        assert await listed(hands, status="ended") == []
        assert (await hands.store.stats(1)).jobs == {"active": 1}

    async def test_the_active_are_never_among_too_many_to_close(self, hands: Hands, monkeypatch: pytest.MonkeyPatch):
        """However many have just ended: what is over is not listed as active."""
        monkeypatch.setattr("onthedot.store.jobs.list_statements.NOTED", 0)
        await fired(hands)
        assert await listed(hands, status="active") == []
        assert await listed(hands, status="paused") == []
        assert await listed(hands, status="ended") == []

    async def test_totals_are_right(self, hands: Hands):
        await fired(hands)
        await hands.job(every(MINUTE))
        assert (await hands.store.stats(1)).jobs == {"active": 1, "ended": 1}

    async def test_one_that_waits_for_its_retry_goes_on(self, hands: Hands):
        job = await hands.job(at(START + 1000))
        await hands.finish(await hands.one(), outcome=FAILED)
        assert (await hands.store.get_job(1, job)).state == "active"
        await hands.store.close_one_offs()
        assert await rows(hands) == [("active", None)]


class TestSettling:
    async def test_rows_get_what_is_known(self, hands: Hands):
        await fired(hands)
        assert await hands.store.close_one_offs() == 1
        assert await rows(hands) == [("ended", START)]
        assert await notes(hands) == 0
        assert await hands.store.close_one_offs() == 0

    async def test_dead_letters_and_cancelled_ones_end_too(self, hands: Hands):
        dead, cancelled = await hands.job(at(START + 1000)), await hands.job(at(START + MINUTE))
        await hands.finish(await hands.one(), outcome=REFUSED)
        (waiting,) = await hands.live(cancelled)
        await hands.store.cancel_run(1, waiting["id"])
        assert (await hands.store.get_job(1, dead)).state == "ended"
        assert (await hands.store.get_job(1, cancelled)).state == "ended"
        await hands.store.close_one_offs()
        assert [state for state, _ in await rows(hands)] == ["ended", "ended"]

    async def test_as_many_at_a_time_as_asked_for(self, hands: Hands):
        await hands.create(*(spec(at(START + 1000)) for _ in range(5)))
        for run in (await hands.claim()).runs:
            await hands.finish(run)
        assert await hands.store.close_one_offs(most=2) == 2
        assert await notes(hands) == 3
        assert await hands.store.close_one_offs() == 3
        await hands.check()

    async def test_a_busy_node_closes_little(self, hands: Hands, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("onthedot.store.jobs.close_one_offs.AT_ONCE", 2)
        await hands.create(*(spec(at(START + 1000)) for _ in range(5)))
        for run in (await hands.claim(limit=5)).runs:
            await hands.finish(run)
        assert await hands.store.close_one_offs_in_passing() == 2, "all its room was needed a moment ago"
        assert await Store(hands.store.driver).close_one_offs_in_passing() == 3

    async def test_retention_finds_what_nobody_closed(self, hands: Hands, times: Times):
        run = await fired(hands)
        await times.advance(MINUTE)
        await hands.store.prune(times.now)
        with pytest.raises(NotFound):
            await hands.store.get_job(1, run.job_id)

    async def test_a_job_that_is_gone_is_no_trouble(self, hands: Hands):
        run = await fired(hands)
        await hands.store.delete_job(1, run.job_id)
        assert await hands.store.close_one_offs() == 1
        assert await rows(hands) == []

    async def test_a_job_that_got_another_time_goes_on(self, hands: Hands):
        run = await fired(hands)
        revived = await hands.store.update_job(1, run.job_id, lambda _: spec(at(START + MINUTE), key="k"))
        assert revived.state == "active"
        await hands.store.close_one_offs()
        assert (await hands.store.get_job(1, run.job_id)).state == "active"
        assert await rows(hands) == [("active", None)]
        await hands.check()

    async def test_changed_and_unchanged_ones_together(self, hands: Hands):
        """The unchanged end without a lock; of the changed, one waits for its next time."""
        jobs = await hands.create(*(spec(at(START + 1000), key=key) for key in "abc"))
        await hands.finish(*(await hands.claim()).runs)
        await hands.store.update_job(1, jobs[0].id, lambda _: spec(at(START + MINUTE), key="a"))
        await hands.store.update_job(1, jobs[1].id, lambda old: msgspec.structs.replace(old, params={"v": 2}))
        assert await hands.store.close_one_offs() == 3
        assert [state for state, _ in await rows(hands)] == ["active", "ended", "ended"]
        await hands.check()

    async def test_the_last_of_two_runs_ends_it(self, hands: Hands, times: Times):
        """A recurring job became a one-off while it ran: neither run alone is its end."""
        job = await hands.job(every(1000))
        await times.advance(1000)
        old = await hands.one()
        await hands.store.update_job(1, job, lambda _: spec(at(times.now + 500)))
        await times.advance(500)
        new = await hands.one()
        await hands.finish(new)
        await hands.store.close_one_offs()
        assert (await hands.store.get_job(1, job)).state == "active"
        await hands.finish(old)
        assert (await hands.store.get_job(1, job)).state == "ended"
        await hands.store.close_one_offs()
        assert [state for state, _ in await rows(hands)] == ["ended"]


class TestVerbs:
    async def test_there_is_nothing_to_pause_or_resume(self, hands: Hands):
        run = await fired(hands)
        assert (await hands.store.pause_job(1, run.job_id)).state == "ended"
        assert (await hands.store.resume_job(1, run.job_id)).state == "ended"

    async def test_an_edit_of_something_else_leaves_it_ended(self, hands: Hands):
        run = await fired(hands)
        edited = await hands.store.update_job(1, run.job_id, lambda old: msgspec.structs.replace(old, name="x"))
        assert (edited.state, edited.next_run) == ("ended", None)
        assert [state for state, _ in await rows(hands)] == ["ended"]
        await hands.check()

    async def test_it_can_be_run_by_hand(self, hands: Hands):
        run = await fired(hands)
        await hands.store.run_job(1, run.job_id)
        again = await hands.one()
        assert again.kind == "manual"
        assert (await hands.store.get_job(1, run.job_id)).state == "ended"
        await hands.finish(again)
        await hands.store.close_one_offs()
        assert [state for state, _ in await rows(hands)] == ["ended"]

    @pytest.mark.parametrize("outcome", [OK, REFUSED])
    async def test_a_manual_run_driven_again_before_the_firing_ends_nothing(
        self, hands: Hands, times: Times, outcome: Outcome
    ):
        """Its job was never changed and a redrive has ended, but not one of the firing: that still lies ahead."""
        job = await hands.job(at(START + 10 * MINUTE))
        await hands.store.run_job(1, job)
        await hands.finish(await hands.one(), outcome=REFUSED)
        assert len(await hands.store.redrive(1)) == 1
        await hands.finish(await hands.one(), outcome=outcome)
        await hands.store.close_one_offs()
        assert await rows(hands) == [("active", None)]
        await times.advance(5 * MINUTE)
        await hands.store.prune(times.now)
        view = await hands.store.get_job(1, job)
        assert (view.state, view.next_run) == ("active", format_instant(START + 10 * MINUTE))
        await times.advance(5 * MINUTE)
        run = await hands.one()
        assert (run.kind, run.slot) == ("scheduled", START + 10 * MINUTE)
        await hands.finish(run)
        await hands.store.close_one_offs()
        assert [state for state, _ in await rows(hands)] == ["ended"]
        await hands.check()

    async def test_what_is_driven_again_while_paused_waits_for_the_resume(self, hands: Hands, times: Times):
        """Paused while it ran, and driven again before it had ended: the job has not ended, and can be resumed."""
        job = await hands.job(at(START + 1000))
        await hands.finish(await hands.one(), outcome=REFUSED)
        await hands.store.update_job(1, job, lambda _: spec(at(START + 2000)))
        running = await hands.one()
        await hands.store.pause_job(1, job)
        (driven,) = await hands.store.redrive(1)
        assert (await hands.claim()).runs == []
        await hands.finish(running)
        await hands.store.close_one_offs()
        assert (await hands.store.get_job(1, job)).state == "paused"
        await times.advance(1)
        assert (await hands.claim()).runs == []
        await hands.store.resume_job(1, job)
        assert [run.id for run in (await hands.claim()).runs] == [driven]
        await hands.check()


class TestFinish:
    async def test_good_and_bad_in_one_batch(self, hands: Hands, times: Times):
        jobs = [await hands.job(at(START + 1000)) for _ in range(4)] + [await hands.job(every(1000))]
        await times.advance(1000)
        runs = {run.job_id: run for run in (await hands.claim()).runs}
        good, retried, dead, stolen, recurring = (runs[job] for job in jobs)
        stolen = msgspec.structs.replace(stolen, token=7)
        now = times.now
        results = [
            *(hands.ended(run, now=now) for run in (good, stolen, recurring)),
            hands.ended(retried, FAILED, now=now),
            hands.ended(dead, REFUSED, now=now),
        ]
        report = await hands.store.finish("n1", results)
        assert (report.recorded, report.refused, report.repeated) == (4, [stolen.id], [])
        again = await hands.store.finish("n1", results)
        assert (again.recorded, again.refused) == (0, [stolen.id])
        assert sorted(again.repeated) == sorted(run.id for run in (good, recurring, retried, dead))
        assert (await hands.store.get_job(1, jobs[4])).stats.runs == 1
        assert [(await hands.store.get_job(1, job)).state for job in jobs[:4]] == ["ended", "active", "ended", "active"]
        await hands.check()
