"""What became of the slots of a job in a time range, one by one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from onthedot.errors import Invalid
from onthedot.model.duration import DAY
from onthedot.model.instant import format_instant
from onthedot.model.job import JobRecord
from onthedot.model.slots import ExplainedSlot, ExplainedSlots
from onthedot.plan import to_come
from onthedot.service.base import ServiceBase
from onthedot.service.previews import SKIPPED
from onthedot.store import SlotEntry, SlotState
from onthedot.timing.zones import EARLIEST, LATEST

__all__ = ["MOST_SLOTS", "SlotVerbs", "check_range"]

MOST_SLOTS = 1000
ENTRIES = 5000
WEEK = 7 * DAY


class SlotVerbs(ServiceBase):
    async def explain_slots(
        self, tenant: int, job_id: int, since: int | None, until: int | None, limit: int = MOST_SLOTS
    ) -> ExplainedSlots:
        """The newest first. `next` is the end of the range that is left, or None."""
        job = await self.store.get_record(tenant, job_id)
        if until is None:
            until = (await self.time.now() + DAY) if since is None else since + WEEK
        since = until - WEEK if since is None else since
        check_range(since, until)
        state, entries, complete = await self.store.slot_entries(tenant, job_id, since, until, ENTRIES)
        low = since if complete else min(entry.slot for entry in entries if entry.slot >= since) + 1
        told = _Told(job, state, entries, until, self.settings.retention)
        items = await self.aside.collect(told.between(low, until, limit + 1))
        left = until if complete else low - 1
        if len(items) > limit:
            items, left, complete = items[:limit], told.slots[limit], False
        return ExplainedSlots(
            job_id=job_id,
            since=format_instant(since),
            until=format_instant(until),
            items=items,
            next=None if complete or left < since else format_instant(left),
        )


def check_range(since: int, until: int, days: int | None = None) -> None:
    low, high = EARLIEST + 3 * DAY, LATEST - 3 * DAY
    for name, at in (("since", since), ("until", until)):
        if not low <= at <= high:
            accepted = f"{format_instant(low)} to {format_instant(high)}"
            raise Invalid.one(name, "out of range", given=format_instant(at), accepted=accepted)
    if until < since or (days is not None and until - since > days * DAY):
        wide = "" if days is None else f", at most {days} days later"
        raise Invalid.one(
            "until", "out of range", given=format_instant(until), accepted=f"not before {format_instant(since)}{wide}"
        )


class _Told:
    """Slots of a job with what is known of them. `slots`: those told so far."""

    def __init__(
        self, job: JobRecord, state: SlotState, entries: Sequence[SlotEntry], until: int, retention: int
    ) -> None:
        self.slots: list[int] = []
        self._job, self._state, self._kept = job, state, state.now - retention
        self._ahead = to_come(job, state.cursor, state.taken, until)
        self._own: dict[int, SlotEntry] = {}
        self._ranges: list[SlotEntry] = []
        seen: set[str] = set()
        for live, each in [*((True, run) for run in state.live), *((False, entry) for entry in entries)]:
            if not each.by_schedule or each.id in seen:
                continue
            seen.add(each.id)
            if each.until is not None:
                self._ranges.append(each)
            elif each.slot not in self._own or (not live and self._better(each)):
                self._own[each.slot] = each

        self._ranges.sort(key=lambda span: span.slot)

    def _better(self, entry: SlotEntry) -> bool:
        """Of several runs of a slot the one that lives counts, then one that is done, then the last."""
        there = self._own[entry.slot]
        return there.status not in ("PENDING", "EXECUTING", "DONE") and (entry.status == "DONE" or entry.id > there.id)

    def between(self, low: int, high: int, limit: int) -> Iterator[ExplainedSlot]:
        """The newest first."""
        former = {span.slot for span in self._ranges if not self._current(span.slot)}
        known = sorted(slot for slot in {*self._own, *former} if low <= slot <= high)
        slot = self._of_schedule(high)
        while len(self.slots) < limit:
            at = max(low - 1 if slot is None else slot, known[-1] if known else low - 1)
            if at < low:
                return
            if known and known[-1] == at:
                known.pop()
            if slot == at:
                slot = self._of_schedule(at - 1)
            self.slots.append(at)
            yield self._tell(at)

    def _current(self, slot: int) -> bool:
        """Whether the present schedule was there when this was due."""
        return self._ahead.times.one_off or slot >= self._job.anchor_at

    def _of_schedule(self, until: int) -> int | None:
        slot = self._ahead.times.latest_until(min(until, self._ahead.last))
        return slot if slot is not None and self._current(slot) else None

    def _tell(self, slot: int) -> ExplainedSlot:
        entry = self._own.get(slot)
        if entry is not None:
            return self._entry(slot, entry)
        place = bisect_right(self._ranges, slot, key=lambda span: span.slot) - 1
        if place >= 0 and slot <= (self._ranges[place].until or 0):
            return self._range(slot, self._ranges[place])
        job, state = self._job, self._state
        if self._ahead.has(slot):
            return _planned(slot, "it will fire" if slot > state.now else "it is due and has not been claimed yet")
        if state.cursor is not None and slot >= state.cursor and job.state in ("paused", "quarantined"):
            because = f"the job is {job.state}" + (f": {job.pause_note or job.reason}" if _said(job) else "")
            return ExplainedSlot(
                slot=format_instant(slot), status="skipped", reason=job.state, because=f"skipped: {because}"
            )
        if slot > state.now and state.cursor is not None:
            because = f"it will not fire: the job continues at {format_instant(state.cursor)}"
            return ExplainedSlot(slot=format_instant(slot), status="skipped", because=because)
        old = slot < self._kept
        because = "no record: it is older than the retention period" if old else "no record of this slot"
        return ExplainedSlot(slot=format_instant(slot), status="missing", because=because)

    def _entry(self, slot: int, entry: SlotEntry) -> ExplainedSlot:
        if entry.status == "SKIPPED" or (entry.status == "CANCELLED" and not entry.began):
            reason = entry.reason if entry.status == "SKIPPED" else "cancelled"
            return ExplainedSlot(
                slot=format_instant(slot),
                status="skipped",
                run_id=entry.id,
                reason=reason,
                because=f"skipped: {SKIPPED.get(reason or '', reason)}",
            )
        if entry.status == "PENDING" and not entry.began:
            return _planned(slot, f"run {entry.id}: {entry.status}", entry.id)
        return ExplainedSlot(
            slot=format_instant(slot),
            status="fired",
            run_id=entry.id,
            outcome=entry.status,
            because=f"run {entry.id}: {entry.status}",
        )

    def _range(self, slot: int, span: SlotEntry) -> ExplainedSlot:
        former = not self._current(slot) and span.until is not None and span.until > slot
        return ExplainedSlot(
            slot=format_instant(slot),
            status="skipped",
            run_id=span.id,
            reason=span.reason,
            until=format_instant(span.until) if former and span.until is not None else None,
            count=span.count if former else None,
            because=f"skipped: {SKIPPED.get(span.reason or '', span.reason)}",
        )


def _said(job: JobRecord) -> bool:
    return bool(job.pause_note if job.state == "paused" else job.reason)


def _planned(slot: int, because: str, run_id: str | None = None) -> ExplainedSlot:
    return ExplainedSlot(slot=format_instant(slot), status="planned", because=because, run_id=run_id)
