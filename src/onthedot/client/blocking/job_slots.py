"""The slots of a job: what became of them, backfill, skips."""

from __future__ import annotations

from onthedot.client.blocking.area import BlockingArea
from onthedot.model.job import JobView
from onthedot.model.preview import Explanation
from onthedot.model.series import RunSeries
from onthedot.model.slots import ExplainedSlots, JobCalendar
from onthedot.model.upcoming_slots import UpcomingSlots

__all__ = ["BlockingJobSlots"]


class BlockingJobSlots(BlockingArea):
    def backfill_job(
        self,
        job_id: int,
        start: str,
        end: str,
        *,
        force: bool = False,
        if_match: int | None = None,
        idempotency_key: str | None = None,
    ) -> list[str]:
        return self._run(
            self._async.backfill_job(
                job_id, start, end, force=force, if_match=if_match, idempotency_key=idempotency_key
            )
        )

    def slots_to_backfill(self, job_id: int, start: str, end: str, *, force: bool = False) -> list[str]:
        return self._run(self._async.slots_to_backfill(job_id, start, end, force=force))

    def explain(self, job_id: int, at: str) -> Explanation:
        return self._run(self._async.explain(job_id, at))

    def explain_slots(self, job_id: int, since: str, until: str | None = None, *, limit: int = 1000) -> ExplainedSlots:
        return self._run(self._async.explain_slots(job_id, since, until, limit=limit))

    def calendar(
        self, job_id: int, *, since: str | None = None, until: str | None = None, tz: str | None = None
    ) -> JobCalendar:
        return self._run(self._async.calendar(job_id, since=since, until=until, tz=tz))

    def run_series(self, job_id: int, *, limit: int = 100) -> RunSeries:
        return self._run(self._async.run_series(job_id, limit=limit))

    def upcoming_slots(self, job_id: int, *, count: int = 10) -> UpcomingSlots:
        return self._run(self._async.upcoming_slots(job_id, count=count))

    def skip_slot(
        self, job_id: int, slot: str, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        return self._run(self._async.skip_slot(job_id, slot, if_match=if_match, idempotency_key=idempotency_key))

    def unskip_slot(
        self, job_id: int, slot: str, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        return self._run(self._async.unskip_slot(job_id, slot, if_match=if_match, idempotency_key=idempotency_key))
