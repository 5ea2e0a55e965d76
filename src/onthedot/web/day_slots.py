"""The firings of one day of a job, each with what became of it and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta

import msgspec

from onthedot.errors import Invalid
from onthedot.model.run import RunView
from onthedot.model.slots import ExplainedSlot
from onthedot.timing.zones import from_local, zone

__all__ = ["DaySlot", "day_bounds", "day_slots", "read_day", "with_reasons"]

SHOWN = 40
ENDED = ("DONE", "FAILED", "CANCELLED")
"""Of these the slot tells no reason; the run does, unless it is done."""
REASON = 300
"""Characters of the reason of a run."""


class DaySlot(msgspec.Struct, frozen=True, kw_only=True):
    """`fill`: it was not done and can be run now. `skip`: it is to come and can be left out."""

    at: str
    local: str
    because: str
    status: str | None
    run_id: str | None
    fill: bool
    skip: bool


def read_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Invalid.one("day", "not a valid date", given=text[:50], accepted="a date such as 2026-03-28") from None


def day_bounds(day: date, tz: str) -> tuple[int, int]:
    """The first and the last millisecond of a day in a zone."""
    start, end = (from_local(tz, datetime.combine(each, time())) or 0 for each in (day, day + timedelta(days=1)))
    return start, end - 1


def day_slots(slots: Sequence[ExplainedSlot], tz: str) -> tuple[list[DaySlot], int]:
    """In their order; of very many those that need a look, and how many are left out."""
    rows = [_row(slot, tz) for slot in reversed(slots)]
    if len(rows) <= SHOWN:
        return rows, 0
    chosen = [row for row in rows if row.status != "DONE"] or rows
    return chosen[:SHOWN], len(rows) - len(chosen[:SHOWN])


def with_reasons(rows: Sequence[DaySlot], runs: Iterable[RunView]) -> list[DaySlot]:
    """Why those that failed or were cancelled did, as their runs tell it."""
    told = {run.id: _in_one_line(run.error or run.reason or "") for run in runs}
    return [msgspec.structs.replace(row, because=row.because or told.get(row.run_id or "", "")) for row in rows]


def _in_one_line(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= REASON else line[: REASON - 1] + "…"


def _row(slot: ExplainedSlot, tz: str) -> DaySlot:
    local = datetime.fromisoformat(slot.slot).astimezone(zone(tz))
    undone = slot.status in ("missing", "skipped") or slot.outcome in ("FAILED", "CANCELLED")
    skipped_ahead = slot.status == "skipped" and slot.reason == "skipped"
    return DaySlot(
        at=slot.slot,
        local=f"{local:%H:%M:%S}",
        because="" if slot.run_id is not None and slot.outcome in ENDED else slot.because,
        status=slot.outcome or {"skipped": "SKIPPED", "planned": "PENDING"}.get(slot.status),
        run_id=slot.run_id,
        fill=undone and slot.count is None and not skipped_ahead,
        skip=slot.status == "planned",
    )
