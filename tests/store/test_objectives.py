"""The lateness objective: counted by day, and exact at any time."""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.model.duration import DAY, Duration
from onthedot.model.objective import Objective, window_starts
from onthedot.store import Store
from tests.store.conftest import Times
from tests.store.hands import Hands, every, spec

HOUR = 3_600_000
OBJECTIVE = Objective(late=Duration(1000), percent=90)


async def runs(hands: Hands, times: Times, *latenesses: int, **more: Any) -> None:
    for lateness in latenesses:
        await times.advance(HOUR)
        await hands.finish(await hands.one(), lateness_ms=lateness, **more)


async def test_the_report_counts_runs_on_time_and_days_are_counted_once(store: Store, times: Times):
    hands = Hands(store)
    plain = spec(every(HOUR))
    (job,) = await hands.create(msgspec.structs.replace(plain, objective=OBJECTIVE))
    empty = await store.objective_report(job.id, OBJECTIVE)
    assert (empty.runs, empty.percent, empty.met, empty.budget_left, empty.burn) == (0, None, True, None, None)
    await runs(hands, times, *([5] * 18), 1000, 1001)
    report = await store.objective_report(job.id, OBJECTIVE)
    assert (report.runs, report.on_time, report.percent, report.met) == (20, 19, 95.0, True)
    assert (report.budget_left, report.burn) == (50.0, 0.5)
    await runs(hands, times, *([5] * 10), *([9000] * 10))
    before = await store.objective_report(job.id, OBJECTIVE)
    assert (before.runs, before.on_time, before.met) == (40, 29, False)
    assert before.budget_left is not None
    assert before.budget_left < 0
    while await store.count_objectives():
        pass
    counted = await hands.sql("SELECT * FROM objective_days WHERE runs > 0 ORDER BY day")
    assert sum(row["runs"] for row in counted) > 0
    assert all(row["day"] % DAY == 0 for row in counted)
    assert await store.objective_report(job.id, OBJECTIVE) == before
    other = Objective(late=Duration(10_000), percent=90)
    assert (await store.objective_report(job.id, other)).on_time == 40
    assert window_starts(times.now) % DAY == 0


async def test_a_job_without_an_objective_is_not_counted(store: Store, times: Times):
    hands = Hands(store)
    await hands.job(every(HOUR))
    await runs(hands, times, 5)
    await times.advance(3 * DAY)
    assert await store.count_objectives() == 0
