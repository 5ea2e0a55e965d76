"""What stands in the store about the slots of a job: each for itself, and counted."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.model.run import RunStatus
from onthedot.plan import Taken
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.taken_slots import taken_after
from onthedot.store.runs.views import live_status
from onthedot.store.topic import Topic

__all__ = ["EndedCount", "SlotCounts", "SlotEntry", "SlotRows", "SlotState"]

_QUARTER = 900_000
"""Runs are counted by quarters of an hour: where a day begins in any zone, a quarter does."""
_COUNTED = 50_000
"""Rows of the history that are counted, the newest: a tenth of a second."""


class SlotEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A run, live or ended; or a range of slots that were not fired, up to `until`."""

    id: str
    slot: int
    by_schedule: bool  # neither started by somebody nor by another job: it stands for a slot
    status: RunStatus
    began: bool
    reason: str | None = None
    until: int | None = None
    count: int | None = None


class SlotState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a job stands. `taken`: slots after the cursor that are decided already. `live`: without the cursor."""

    now: int
    cursor: int | None
    taken: Taken
    live: list[SlotEntry]


class EndedCount(msgspec.Struct, frozen=True):
    """Runs that ended with this status, of a quarter of an hour that begins at `at`."""

    at: int
    status: str
    count: int


class SlotCounts(msgspec.Struct, frozen=True, kw_only=True):
    """`ranges`: of skipped slots. `since` None: everything was counted; otherwise only from that slot on."""

    ended: list[EndedCount]
    ranges: list[SlotEntry]
    since: int | None


class SlotRows(Topic):
    async def slot_state(self, tenant: int, job_id: int) -> SlotState:
        """Where a job stands, without its live runs."""
        return await self.driver.read(lambda tx: _state(tx, tenant, job_id, 0, -1), snapshot=True)

    async def slot_entries(
        self, tenant: int, job_id: int, since: int, until: int, limit: int
    ) -> tuple[SlotState, list[SlotEntry], bool]:
        """Entries of the ledger with a slot in since … until, the newest first, and ranges that reach into it. Whether
        they are all: otherwise those with the `limit` newest slots."""

        async def body(tx: Transaction) -> tuple[SlotState, list[SlotEntry], bool]:
            state = await _state(tx, tenant, job_id, since, until)
            rows = await tx.rows("slot_entries", tenant, job_id, since, until, limit)
            ranges = await tx.rows("ranges_into", tenant, job_id, since)
            return state, [*map(_ended, rows), *map(_ended, ranges)], len(rows) < limit

        return await self.driver.read(body, snapshot=True)

    async def slot_counts(self, tenant: int, job_id: int, since: int, until: int) -> tuple[SlotState, SlotCounts]:
        """How many runs with a slot in since … until ended, by status and quarter of an hour."""

        async def body(tx: Transaction) -> tuple[SlotState, SlotCounts]:
            state = await _state(tx, tenant, job_id, since, until)
            rows = await tx.rows("ended_by_quarter", tenant, job_id, since, until, _COUNTED)
            ranges = [
                *await tx.rows("ranges_within", tenant, job_id, since, until, _COUNTED),
                *await tx.rows("ranges_into", tenant, job_id, since),
            ]
            everything = sum(row["looked_at"] for row in rows) < _COUNTED
            counts = SlotCounts(
                ended=[EndedCount(row["quarter"] * _QUARTER, row["status"], row["n"]) for row in rows],
                ranges=[_ended(row) for row in ranges],
                since=None if everything else min(row["oldest"] for row in rows),
            )
            return state, counts

        return await self.driver.read(body, snapshot=True)


async def _state(tx: Transaction, tenant: int, job_id: int, since: int, until: int) -> SlotState:
    """In one snapshot with what is asked besides: a cursor that is claimed in between would be nowhere."""
    now = await tx.now()
    live = await tx.rows("live_slots", tenant, job_id, since, until)
    cursor = await tx.row("cursor_slot", tenant, job_id)
    at = None if cursor is None else int(cursor["slot"])
    taken = await taken_after(tx, job_id, now if at is None else at)
    return SlotState(now=now, cursor=at, taken=taken, live=_live(live, now))


def _live(rows: Sequence[Row], now: int) -> list[SlotEntry]:
    return [
        SlotEntry(
            id=row["id"],
            slot=row["slot"],
            by_schedule=row["kind"] not in ("manual", "chain"),
            status=live_status(row, now),
            began=row["begun_at"] is not None or row["tries"] > 0,
        )
        for row in rows
    ]


def _ended(row: Row) -> SlotEntry:
    return SlotEntry(
        id=row["id"],
        slot=row["slot"],
        by_schedule=row["kind"] not in ("manual", "chain"),
        status=row["status"].upper(),
        began=row["started_at"] is not None,
        reason=row["reason"],
        until=row["until_slot"],
        count=row["slots"],
    )
