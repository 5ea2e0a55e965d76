"""What a change would do to the firings of jobs, before it is made."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from onthedot.errors import Invalid, NotFound
from onthedot.model.change_plan import (
    ChangePlan,
    MovedFiring,
    PlannedChange,
    PlannedJob,
    PlannedMinute,
    PlanRequest,
)
from onthedot.model.decoding import convert, to_builtins
from onthedot.model.duration import DAY, HOUR, MINUTE
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.model.job import JobRecord, JobSpec
from onthedot.model.upcoming import Forecast
from onthedot.plan import NOTHING_TAKEN, SlotDifference, ToCome, compare, free, on_edit, opening, to_come
from onthedot.service.forecast import ForecastVerbs, by_minute
from onthedot.service.jobs import JobVerbs
from onthedot.service.merge_patch import patched
from onthedot.service.sync import SyncVerbs
from onthedot.store import SlotState
from onthedot.store.jobs.rows import keep_secrets, keep_zone

__all__ = ["ChangePlanVerbs"]

LONGEST = 3.0
SHOWN = 5
BUSY_HOURS = 24


class _Change(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is, with where it stands, and as it would be. None: it is not there."""

    job: JobRecord | None
    state: SlotState | None
    spec: JobSpec | None


class ChangePlanVerbs(JobVerbs, SyncVerbs, ForecastVerbs):
    async def plan_changes(self, tenant: int, asked: PlanRequest, *, busy: bool = True) -> ChangePlan:
        """Changes nothing. busy=False: without the busiest minutes, for which all jobs are computed."""
        now = await self.time.now()
        changes = await (self._of_list if asked.jobs is not None or asked.removed else self._of_one)(tenant, asked)
        until, more = now + asked.days * DAY, Counter[int]()
        compared = await self.aside.collect(_compared(changes, now, until, more))
        expected = await self.forecast(tenant, BUSY_HOURS) if busy else None
        return ChangePlan(
            since=format_instant(now),
            until=format_instant(until),
            complete=len(compared) == len(changes) and (expected is None or expected.complete),
            jobs=compared,
            busiest=[] if expected is None else _busiest(expected, more),
        )

    async def _of_one(self, tenant: int, asked: PlanRequest) -> list[_Change]:
        if (asked.spec is None) == (asked.patch is None):
            raise Invalid.one("spec", "exactly one of spec, patch and jobs is required", accepted="a job, or a patch")
        job = await self._found(tenant, asked)
        if asked.spec is not None:
            spec = asked.spec if job is None else keep_secrets(asked.spec, job.spec)
            if spec.key is None and asked.key is not None:  # as in a PUT by key
                spec = msgspec.structs.replace(spec, key=asked.key)
        elif job is None:
            raise Invalid.one("patch", "needs the id or key of a job", accepted="id or key")
        else:
            spec = keep_secrets(convert(patched(to_builtins(job.spec), asked.patch or {}), JobSpec), job.spec)
        await self.check_job(tenant, spec, None if job is None else job.id)
        return [await self._change(tenant, job, self.zoned(spec, None if job is None else job.spec))]

    async def _of_list(self, tenant: int, asked: PlanRequest) -> list[_Change]:
        for name in ("id", "key", "spec", "patch"):
            if getattr(asked, name) is not None:
                raise Invalid.one(name, "can't be combined with jobs", accepted="jobs, or one job")
        specs = asked.jobs or []
        await self.aside.collect(self._file_checks(tenant, specs, await self.time.now()))
        await self.check_scripts(tenant, *(spec.target for spec in specs))
        changes: list[_Change] = []
        for spec in specs:
            job = None if spec.key is None else await self._by_key(tenant, spec.key)
            zoned = keep_zone(spec, None if job is None else job.spec, self.settings.default_tz)
            changes.append(await self._change(tenant, job, zoned if job is None else keep_secrets(zoned, job.spec)))
        for place, key in enumerate(asked.removed or []):
            job = await self._by_key(tenant, key)
            if job is None:
                raise Invalid.one(f"removed[{place}]", "no such job", given=key, accepted="the key of a job")
            changes.append(await self._change(tenant, job, None))
        return changes

    async def _found(self, tenant: int, asked: PlanRequest) -> JobRecord | None:
        if asked.id is not None and asked.key is not None:
            raise Invalid.one("key", "can't be combined with id", given=asked.key, accepted="id or key")
        if asked.id is not None:
            return await self.store.get_record(tenant, asked.id)
        key = asked.key if asked.key is not None else asked.spec.key if asked.spec is not None else None
        job = None if key is None else await self._by_key(tenant, key)
        if job is None and asked.key is not None:
            raise NotFound(f"job {asked.key[:200]!r} not found")
        return job

    async def _by_key(self, tenant: int, key: str) -> JobRecord | None:
        try:
            found = await self.store.get_job_by_key(tenant, key)
        except NotFound:
            return None
        return await self.store.get_record(tenant, found.id)

    async def _change(self, tenant: int, job: JobRecord | None, spec: JobSpec | None) -> _Change:
        state = None if job is None else await self.store.slot_state(tenant, job.id)
        return _Change(job=job, state=state, spec=spec)


def _compared(changes: Sequence[_Change], now: int, until: int, more: Counter[int]) -> Iterator[PlannedJob]:
    """Each change, as long as there is time. What it adds to the starts of the next minutes is added to `more`."""
    end = time.monotonic() + LONGEST
    for change in changes:
        if time.monotonic() > end:
            return
        before, after = _before(change, until), _after(change, now, until)
        found = compare(before, after, now + 1, until)
        more.update(_minutes(after, now))
        more.subtract(_minutes(before, now))
        job, spec = change.job, change.spec or (change.job.spec if change.job is not None else None)
        yield PlannedJob(
            job_id=None if job is None else job.id,
            key=None if spec is None else spec.key,
            name=None if spec is None else spec.name,
            change="new" if job is None else "removed" if change.spec is None else _changed(found),
            before=0 if before is None else before.count(now + 1, until),
            after=0 if after is None else after.count(now + 1, until),
            added=len(found.added),
            moved=len(found.moved),
            removed=len(found.removed),
            compared_until=format_instant(found.until),
            first_added=[format_instant(slot) for slot in found.added[:SHOWN]],
            first_moved=[
                MovedFiring(before=format_instant(old), after=format_instant(new)) for old, new in found.moved[:SHOWN]
            ],
            first_removed=[format_instant(slot) for slot in found.removed[:SHOWN]],
        )


def _changed(found: SlotDifference) -> PlannedChange:
    return "changed" if found.added or found.moved or found.removed else "unchanged"


def _before(change: _Change, until: int) -> ToCome | None:
    if change.job is None or change.state is None:
        return None
    return to_come(change.job, change.state.cursor, change.state.taken, until)


def _after(change: _Change, now: int, until: int) -> ToCome | None:
    """As the edit, or the create, itself would decide."""
    job, state, spec = change.job, change.state, change.spec
    if spec is None:
        return None
    if job is None or state is None:
        new = opening(spec, now)
        made = JobRecord(
            id=0,
            tenant=0,
            spec=spec,
            version=1,
            state=new.state,
            anchor_at=new.anchor_at,
            claimed_slot=None,
            slots_used=0,
            created_at=now,
            updated_at=now,
        )
        return to_come(made, new.cursor_slot, NOTHING_TAKEN, until)
    edit = on_edit(job, state.cursor, spec, now, state.taken)
    edited = msgspec.structs.replace(
        job, spec=spec, state=edit.state, anchor_at=edit.anchor_at, slots_used=edit.slots_used
    )
    return to_come(edited, edit.cursor_slot, state.taken, until)


def _minutes(of: ToCome | None, now: int) -> Counter[int]:
    if of is None:
        return Counter()
    end = min(now + BUSY_HOURS * HOUR, of.last + 1)
    return Counter(by_minute(free(of.times, of.taken), max(now, of.first - 1), end))


def _busiest(expected: Forecast, more: Counter[int]) -> list[PlannedMinute]:
    first = (parse_rfc3339(expected.since) or 0) // MINUTE
    after = [max(0, starts + more[first + place]) for place, starts in enumerate(expected.starts)]
    busy = sorted((place for place in range(len(after)) if after[place]), key=lambda place: (-after[place], place))
    return [
        PlannedMinute(at=format_instant((first + place) * MINUTE), before=expected.starts[place], after=after[place])
        for place in busy[:SHOWN]
    ]
