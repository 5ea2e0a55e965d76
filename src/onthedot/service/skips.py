"""Verbs on single slots to come: which there are, leave one out, take that back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import msgspec

from onthedot.errors import Invalid
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.model.job import JobView
from onthedot.model.upcoming_slots import LeftOutSlot, UpcomingSlots
from onthedot.plan import coming
from onthedot.service.base import ServiceBase
from onthedot.service.repeats import IdempotencyKey, idempotency
from onthedot.store.driver import Row
from onthedot.store.jobs.skips import JobAhead, SkippedByUser
from onthedot.telemetry import emit

__all__ = ["SkipVerbs"]

MOST_SLOTS = 100
_said = msgspec.json.Decoder(SkippedByUser)


class SkipVerbs(ServiceBase):
    async def skip_slot(
        self,
        tenant: int,
        job_id: int,
        slot: str,
        if_match: int | None = None,
        idempotency_key: IdempotencyKey | None = None,
    ) -> JobView:
        """The job does not fire at `slot` (RFC 3339), which has not come yet."""
        repeat = idempotency("skip", idempotency_key, job_id, body=slot)
        job = await self.store.skip_slot(tenant, job_id, _slot(slot), if_match=if_match, idempotency=repeat)
        emit("job.changed", tenant=tenant, job_id=job_id)
        await self.hint(job)
        return job

    async def unskip_slot(
        self,
        tenant: int,
        job_id: int,
        slot: str,
        if_match: int | None = None,
        idempotency_key: IdempotencyKey | None = None,
    ) -> JobView:
        """The job fires at `slot` after all."""
        repeat = idempotency("unskip", idempotency_key, job_id, body=slot)
        job = await self.store.unskip_slot(tenant, job_id, _slot(slot), if_match=if_match, idempotency=repeat)
        emit("job.changed", tenant=tenant, job_id=job_id)
        await self.hint(job)
        return job

    async def upcoming_slots(self, tenant: int, job_id: int, count: int = 10) -> UpcomingSlots:
        """When the job will fire, and which slots to come were left out."""
        if not 1 <= count <= MOST_SLOTS:
            raise Invalid.one("count", "out of range", given=count, accepted=f"1 to {MOST_SLOTS}")
        ahead = await self.store.job_ahead(tenant, job_id)
        fires = [] if ahead.record.state == "quarantined" else await self.aside.run(_fires, ahead, count)
        return UpcomingSlots(
            state=ahead.record.state, fires=[format_instant(slot) for slot in fires], skipped=_left_out(ahead.skipped)
        )


def _fires(ahead: JobAhead, count: int) -> list[int]:
    return list(islice(coming(ahead.record, ahead.cursor_slot, ahead.now, ahead.taken), count))


def _left_out(rows: Sequence[Row]) -> list[LeftOutSlot]:
    found = []
    for row in rows:
        said = SkippedByUser(actor="", actor_kind="") if row["outcome"] is None else _said.decode(row["outcome"])
        found.append(
            LeftOutSlot(
                slot=format_instant(row["slot"]),
                run_id=row["id"],
                at=format_instant(row["finished_at"]),
                actor=said.actor,
                actor_kind=said.actor_kind,
            )
        )
    return found


def _slot(text: str) -> int:
    ms = parse_rfc3339(text)
    if ms is None:
        accepted = "a slot as RFC 3339, such as 2026-03-01T00:00:00Z"
        raise Invalid.one("slot", "not a valid timestamp", given=text, accepted=accepted)
    return ms
