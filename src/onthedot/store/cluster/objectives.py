"""How jobs with a lateness objective stand. Days that are over are counted once, by the node that holds the duty; the
last two are counted when somebody asks."""

from __future__ import annotations

from onthedot.model.duration import DAY, HOUR
from onthedot.model.objective import Objective, ObjectiveReport, report_of, window_starts
from onthedot.store.driver import Transaction
from onthedot.store.jobs.rows import decode_spec
from onthedot.store.topic import Topic

__all__ = ["Objectives"]

JOBS_AT_ONCE = 500
DAYS_AT_ONCE = 100
"""Days of jobs that one look counts: each reads the history of one job and day."""
SETTLED = HOUR
"""A day is counted so long after its end: what ran at its end has ended by then."""


class Objectives(Topic):
    _objectives_after = 0

    async def count_objectives(self) -> int:
        """Count some of the days that are over and not counted yet. How many."""

        async def look(tx: Transaction) -> tuple[list[tuple[int, int, int, int, int]], int]:
            now = await tx.now()
            rows = await tx.rows("objective_jobs", self._objectives_after, JOBS_AT_ONCE)
            after = rows[-1]["id"] if len(rows) == JOBS_AT_ONCE else 0
            wanted = {row["id"]: decode_spec(row["spec"]).objective for row in rows}
            late = {job_id: each.late for job_id, each in wanted.items() if isinstance(each, Objective)}
            if not late:
                return [], after
            there = await tx.rows("counted_days", list(late), window_starts(now))
            known = {(row["job_id"], row["day"], row["late_ms"]) for row in there}
            counted = []
            for job_id, limit in late.items():
                for day in range(window_starts(now), _first_open_day(now), DAY):
                    if (job_id, day, limit) in known:
                        continue
                    row = await tx.row("count_on_time", job_id, day, day + DAY, limit)
                    assert row is not None
                    counted.append((job_id, day, int(limit), row["runs"], row["on_time"]))
                    if len(counted) >= DAYS_AT_ONCE:
                        return counted, self._objectives_after
            return counted, after

        counted, after = await self.driver.read(look)
        if counted:

            async def write(tx: Transaction) -> None:
                for each in counted:
                    await tx.execute("put_objective_day", *each)

            await self.driver.transact_slow(write)
        self._objectives_after = after
        return len(counted)

    async def objective_report(self, job_id: int, objective: Objective) -> ObjectiveReport:
        """How a job stands in the last 28 days."""

        async def body(tx: Transaction) -> ObjectiveReport:
            now, late = await tx.now(), int(objective.late)
            start, open_day = window_starts(now), _first_open_day(now)
            days = {row["day"]: row for row in await tx.rows("objective_days_of", job_id, start, late)}
            runs = sum(row["runs"] for row in days.values())
            on_time = sum(row["on_time"] for row in days.values())
            gaps = [(day, day + DAY) for day in range(start, open_day, DAY) if day not in days]
            for low, high in [*_joined(gaps), (open_day, now + 1)]:
                row = await tx.row("count_on_time", job_id, low, high, late)
                assert row is not None
                runs, on_time = runs + row["runs"], on_time + row["on_time"]
            last = await tx.row("count_on_time", job_id, now - DAY, now + 1, late)
            assert last is not None
            return report_of(objective, runs=runs, on_time=on_time, day_runs=last["runs"], day_on_time=last["on_time"])

        return await self.driver.read(body)


def _first_open_day(now: int) -> int:
    """The first day that may still get runs."""
    return now - SETTLED - (now - SETTLED) % DAY


def _joined(gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Days that follow each other as one span."""
    found: list[tuple[int, int]] = []
    for low, high in gaps:
        if found and found[-1][1] == low:
            found[-1] = found[-1][0], high
        else:
            found.append((low, high))
    return found
