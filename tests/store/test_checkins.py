"""Jobs that run elsewhere and report, on both databases: rule by rule."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onthedot.model.duration import Duration
from onthedot.model.node import NodeLoad
from onthedot.model.run import ClaimedRun
from onthedot.model.schedule import Schedule
from onthedot.model.targets.checkin import CheckinTarget
from onthedot.store import CheckIn, Store
from onthedot.store.runs.checkins import PingedJob
from tests.store.conftest import Times
from tests.store.hands import Hands, every, node_info

SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
GRACE = 5 * MINUTE
LOAD = NodeLoad(held=0, running=0, lateness_ms=None, draining=False)
HOURLY = Schedule(cron="0 * * * *")
OK, START, FAIL = CheckIn(signal="success"), CheckIn(signal="start"), CheckIn(signal="fail")


@pytest.fixture
async def hands(store: Store, times: Times) -> Hands:
    await times.set(1_700_002_800_000)  # 23:00:00 UTC, on the hour
    await store.register(node_info("n1", offers=["checkin"]))
    return Hands(store, "n1")


async def job(hands: Hands, schedule: Schedule = HOURLY, **policy: Any) -> int:
    return await hands.job(schedule, target=CheckinTarget(grace=Duration(GRACE)), **policy)


async def claimed(hands: Hands) -> ClaimedRun:
    (run,) = (await hands.claim(offers=["checkin"])).runs
    return run


async def opened(hands: Hands, times: Times, wait: int = HOUR) -> ClaimedRun:
    """The next slot has come, and its run waits for the report."""
    await times.advance(wait)
    run = await claimed(hands)
    report = await hands.finish(run)
    assert (report.recorded, report.refused) == (1, [])
    return run


async def told(hands: Hands, job_id: int, what: CheckIn = OK) -> PingedJob:
    done = await hands.store.check_in(job_id, what)
    assert done is not None
    await hands.check()
    return done


async def look(hands: Hands) -> None:
    """What a node does each second."""
    await hands.store.reclaim()
    await hands.check()


async def open_until(hands: Hands, run: ClaimedRun) -> int:
    (row,) = await hands.sql(f"SELECT open, open_until, node FROM runs WHERE id = '{run.id}'")
    assert (row["open"], row["node"]) == ("callback", None)
    return int(row["open_until"])


async def test_a_report_in_time_ends_the_run(hands: Hands, times: Times):
    job_id = await job(hands)
    run = await opened(hands, times)
    assert await open_until(hands, run) == run.slot + GRACE
    (view,) = await hands.runs(status="EXECUTING")
    assert (view.waiting, view.waiting_since is None) == ("check-in", False)
    await times.advance(MINUTE)
    done = await told(hands, job_id, CheckIn(signal="success", body="12 files\n"))
    assert [item.id for item in done.ended] == [run.id]
    assert done.ping.run_id == run.id
    ended = await hands.store.get_run(1, run.id)
    assert (ended.status, ended.tries, ended.duration_ms) == ("DONE", 1, None)
    assert await hands.store.run_logs(1, run.id) == "12 files\n"


async def test_none_in_time_is_a_missed_run(hands: Hands, times: Times):
    job_id = await job(hands)
    run = await opened(hands, times)
    await times.advance(GRACE - 1)
    await look(hands)
    assert await open_until(hands, run) == run.slot + GRACE
    await times.advance(1)
    await look(hands)
    ended = await hands.store.get_run(1, run.id)
    assert (ended.status, ended.error) == ("FAILED", "missed: no check-in within 5m")
    assert ended.outcome is not None
    assert ended.outcome["missed"] is True
    view = await hands.store.get_job(1, job_id)
    assert (view.stats.runs, view.stats.failures, view.stats.last_status) == (1, 1, "FAILED")
    assert [row["id"] for row in await hands.live(job_id)] != [run.id], "it is not tried again"


async def test_one_that_comes_after_that_is_late_and_changes_nothing(hands: Hands, times: Times):
    job_id = await job(hands)
    run = await opened(hands, times)
    await times.advance(GRACE)
    await look(hands)
    await times.advance(2 * MINUTE)
    done = await told(hands, job_id)
    assert (done.ended, done.ping.run_id, done.ping.late_for) == ([], None, run.id)
    assert (await hands.store.get_run(1, run.id)).status == "FAILED"
    assert "came 420 s after the slot" in (await hands.store.run_logs(1, run.id) or "")


async def test_start_gives_it_the_grace_time_once_more_and_measures_it(hands: Hands, times: Times):
    job_id = await job(hands)
    run = await opened(hands, times)
    await times.advance(4 * MINUTE)
    await told(hands, job_id, START)
    assert await open_until(hands, run) == run.slot + 4 * MINUTE + GRACE
    (view,) = await hands.runs(status="EXECUTING")
    assert (view.waiting, view.progress and view.progress["message"]) == (None, "started")
    await times.advance(3 * MINUTE)
    await look(hands)
    await told(hands, job_id)
    ended = await hands.store.get_run(1, run.id)
    assert (ended.status, ended.duration_ms) == ("DONE", 3 * MINUTE)


async def test_started_and_never_ended_is_missed(hands: Hands, times: Times):
    job_id = await job(hands)
    run = await opened(hands, times)
    await told(hands, job_id, START)
    await times.advance(GRACE)
    await look(hands)
    assert (await hands.store.get_run(1, run.id)).error == "missed: started, but no success reported within 5m"
    again = await opened(hands, times, HOUR - GRACE)
    await times.advance(MINUTE)
    await told(hands, job_id)
    assert (await hands.store.get_run(1, again.id)).duration_ms is None, "the old start is no measure of this run"


@pytest.mark.parametrize(
    ("what", "error"),
    [
        (CheckIn(signal="fail", body="disk full\n"), "disk full"),
        (FAIL, "the job reported a failure"),
        (CheckIn(signal="fail", exit_status=3), "exit status 3"),
    ],
)
async def test_a_failure_ends_it_with_what_the_job_says(hands: Hands, times: Times, what: CheckIn, error: str):
    job_id = await job(hands)
    run = await opened(hands, times)
    await told(hands, job_id, what)
    ended = await hands.store.get_run(1, run.id)
    assert (ended.status, ended.error, ended.tries) == ("FAILED", error, 1)
    await times.advance(GRACE)
    await look(hands)
    assert len(await hands.ledger(job_id)) == 1


async def test_log_changes_nothing_but_the_log(hands: Hands, times: Times):
    job_id = await job(hands)
    run = await opened(hands, times)
    await told(hands, job_id, CheckIn(signal="log", body="half way"))
    assert await open_until(hands, run) == run.slot + GRACE
    await told(hands, job_id, CheckIn(signal="success", body="done"))
    assert await hands.store.run_logs(1, run.id) == "half way\ndone\n"


async def test_an_early_report_does_not_count_for_a_slot_of_a_cron_expression(hands: Hands, times: Times):
    job_id = await job(hands)
    await times.advance(HOUR - MINUTE)
    done = await told(hands, job_id)
    assert (done.ended, done.ping.run_id, done.ping.late_for) == ([], None, None)
    run = await opened(hands, times, MINUTE)
    await times.advance(GRACE)
    await look(hands)
    assert (await hands.store.get_run(1, run.id)).status == "FAILED"


async def test_with_every_the_time_counts_from_the_last_success(hands: Hands, times: Times):
    job_id = await job(hands, every(HOUR))
    await times.advance(HOUR // 2)
    await told(hands, job_id)
    run = await opened(hands, times, HOUR // 2)
    await times.advance(GRACE)
    await look(hands)
    assert await open_until(hands, run) == run.slot + HOUR // 2 + GRACE, "an interval and the grace time after it"
    await times.advance(HOUR // 2)
    await look(hands)
    assert (await hands.store.get_run(1, run.id)).error == "missed: no check-in within 5m"


async def test_a_report_counts_for_every_run_that_waits(hands: Hands, times: Times):
    job_id = await job(hands, Schedule(cron="* * * * *"))
    runs = [await opened(hands, times, MINUTE) for _ in range(3)]
    done = await told(hands, job_id)
    assert sorted(item.id for item in done.ended) == sorted(run.id for run in runs)
    assert {row["status"] for row in await hands.ledger(job_id)} == {"done"}


async def test_one_that_comes_before_the_run_is_recorded_as_open_ends_it(hands: Hands, times: Times):
    """The node holds it; what that node says afterwards is a repeat."""
    job_id = await job(hands)
    await times.advance(HOUR)
    run = await claimed(hands)
    done = await told(hands, job_id)
    assert [item.id for item in done.ended] == [run.id]
    report = await hands.finish(run)
    assert (report.recorded, report.refused, report.repeated) == (0, [], [run.id])
    assert (await hands.store.get_run(1, run.id)).status == "DONE"


async def test_one_that_comes_while_no_node_is_there_counts_when_one_comes(hands: Hands, times: Times):
    job_id = await job(hands)
    await times.advance(HOUR + MINUTE)
    assert (await told(hands, job_id)).ended == []
    await times.advance(2 * MINUTE)
    run = await claimed(hands)
    await hands.finish(run)
    await look(hands)
    assert (await hands.store.get_run(1, run.id)).status == "DONE"


async def test_a_run_that_was_open_when_its_node_died_is_reported_all_the_same(hands: Hands, times: Times):
    job_id = await job(hands)
    run = await opened(hands, times)
    await hands.store.leave("n1")
    await told(hands, job_id)
    assert (await hands.store.get_run(1, run.id)).status == "DONE"


async def test_many_reports_at_once_end_it_once_and_are_all_kept(hands: Hands, times: Times):
    job_id = await job(hands)
    run = await opened(hands, times)
    done = await asyncio.gather(*(hands.store.check_in(job_id, OK) for _ in range(8)))
    assert [len(each.ended) for each in done if each].count(1) == 1
    assert len(await hands.store.recent_pings(job_id)) == 8
    assert [row["id"] for row in await hands.ledger(job_id)] == [run.id]


async def test_who_does_not_report_and_who_is_gone_is_told_nothing(hands: Hands, times: Times):
    other = await hands.job(HOURLY)
    assert await hands.store.check_in(other, OK) is None
    job_id = await job(hands)
    await told(hands, job_id)
    assert (await hands.store.last_pings([job_id, other])).keys() == {job_id}
    await hands.store.delete_job(1, job_id)
    assert await hands.store.check_in(job_id, OK) is None
