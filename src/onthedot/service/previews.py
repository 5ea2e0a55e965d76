"""Fire times of a schedule, and why a job did or did not fire at an instant."""

from __future__ import annotations

from onthedot.errors import Invalid
from onthedot.model.actor import actor_words
from onthedot.model.chains import LONGEST_CHAIN
from onthedot.model.group import MAX_RUNNING
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.model.job import JobRecord
from onthedot.model.preview import Explanation, Preview
from onthedot.model.run import RunView
from onthedot.model.schedule import Schedule
from onthedot.plan import timetable_of
from onthedot.plan.times import seed_of
from onthedot.service.base import ServiceBase
from onthedot.store import RunFilter
from onthedot.timing import check_schedule, compile_schedule, describe, remarks

__all__ = ["SKIPPED", "PreviewVerbs", "preview_schedule"]

MOST = 1000
FEW = 5  # found while the loop waits: some milliseconds, whatever the schedule says
NEAREST = 50
"""Runs before an instant among which the range row that covers it is looked for: those by hand may lie between."""


def preview_schedule(schedule: Schedule, *, now: int, after: str | None = None, count: int = 10) -> Preview:
    """Pure: the command line previews without a server."""
    if not 1 <= count <= MOST:
        raise Invalid.one("count", "out of range", given=count, accepted=f"1 to {MOST}")
    start = now
    if after is not None:
        parsed = parse_rfc3339(after)
        if parsed is None:
            raise Invalid.one(
                "after", "not a valid timestamp", given=after, accepted="RFC 3339, such as 2026-03-28T00:00:00Z"
            )
        start = parsed
    check_schedule(schedule, now=start, changed=True)
    times = compile_schedule(schedule, anchor=start)
    fires: list[int] = []
    upcoming = times.next_after(start)
    most = count if schedule.count is None else min(count, schedule.count)
    while upcoming is not None and len(fires) < most:
        fires.append(upcoming)
        upcoming = times.next_after(upcoming)
    return Preview(
        fires=[format_instant(fire) for fire in fires],
        description=describe(schedule),
        remarks=list(remarks(schedule, fires)),
    )


class PreviewVerbs(ServiceBase):
    async def preview(self, schedule: Schedule, after: str | None = None, count: int = 10) -> Preview:
        now, schedule = await self.time.now(), schedule.in_default_zone(self.settings.default_tz)
        if count <= FEW:
            return preview_schedule(schedule, now=now, after=after, count=count)
        return await self.aside.run(preview_schedule, schedule, now=now, after=after, count=count)

    async def explain(self, tenant: int, job_id: int, at: str) -> Explanation:
        """Why the job fired, did not fire, or will fire at `at`."""
        moment = parse_rfc3339(at)
        if moment is None:
            raise Invalid.one(
                "at", "not a valid timestamp", given=at, accepted="RFC 3339, such as 2026-03-28T03:00:00Z"
            )
        job = await self.store.get_record(tenant, job_id)
        times = timetable_of(job.spec, job.anchor_at)
        run = await self._covering(tenant, job_id, moment)
        cursor = await self.store.cursor_slot(tenant, job_id)
        before, after = times.latest_until(moment - 1), times.next_after(moment)
        return Explanation(
            at=format_instant(moment),
            slot=times.is_slot(moment),
            because=_because(job, run, cursor, slot=times.is_slot(moment), moment=moment, now=await self.time.now()),
            previous=None if before is None else format_instant(before),
            next=None if after is None else format_instant(after),
            run=run,
            on_success=job.spec.on_success or [],
            on_failure=job.spec.on_failure or [],
            on_finish=job.spec.on_finish or [],
        )

    async def _covering(self, tenant: int, job_id: int, moment: int) -> RunView | None:
        """The ledger's entry for the instant: a run of its own, or the range row of slots not fired."""
        at = format_instant(moment)
        page = await self.store.list_runs(tenant, RunFilter(job_id=job_id, until=moment, limit=NEAREST))
        for run in page.items:
            if run.scheduled_for == at or (run.until is not None and run.until >= at):
                return run
        return None


def _because(job: JobRecord, run: RunView | None, cursor: int | None, *, slot: bool, moment: int, now: int) -> str:
    if run is not None and run.reason == "skipped" and run.status == "SKIPPED":
        said = run.outcome or {}
        return f"skipped by {actor_words(said.get('actor'), said.get('actor_kind')) or 'a user'}"
    if run is not None and run.status == "SKIPPED":
        return f"skipped: {SKIPPED.get(run.reason or '', run.reason)}"
    if run is not None and run.waiting == "group":
        limit = (
            "max_running" if run.waiting_for == MAX_RUNNING else f"the limit of the concurrency group {run.waiting_for}"
        )
        return f"run {run.id}: {run.status}, because of {limit}; it has waited since {run.waiting_since}"
    if run is not None:
        return f"run {run.id}: {run.status}"
    if not slot:
        return f"the schedule does not fire at this instant ({describe(job.spec.schedule, seed_of(job.spec))})"
    if moment > now and cursor is not None and moment < cursor:
        return f"it will not fire: the job continues at {format_instant(cursor)}"
    if moment > now:
        return "it will fire" if job.state == "active" else f"it would fire, but the job is {job.state}"
    if moment < job.anchor_at:
        return "the current schedule was set later; earlier slots do not count"
    return "no record: it is older than the retention period, or is waiting to be claimed"


SKIPPED = {
    "coalesced": "several slots were missed, and catch_up runs only the latest",
    "overlap": "the previous run had not finished, and overlap is skip",
    "late": "it was too late for the catch_up policy",
    "paused": "the job was paused",
    "excluded": "the schedule excludes this instant",
    "deleted": "the job was deleted",
    "restored": "the store was restored from an older backup, and the slot may have fired before that",
    "chain_too_long": f"it would have been run {LONGEST_CHAIN + 1} of a chain, and a chain has at most {LONGEST_CHAIN}",
}
