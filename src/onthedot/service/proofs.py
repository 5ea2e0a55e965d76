"""The proof: slots expected and decided in the last day, as the last check found it."""

from __future__ import annotations

from onthedot.model.duration import MINUTE
from onthedot.model.instant import format_instant
from onthedot.model.proof import BlindSpot, OffenceView, Proof
from onthedot.service.base import ServiceBase

__all__ = ["ProofVerbs"]

RECENT = 30 * MINUTE
"""A check begins at least every 15 minutes while a node runs; after twice that nobody is looking."""


class ProofVerbs(ServiceBase):
    async def proof(self, tenant: int) -> Proof:
        last, found = await self.store.proof(tenant)
        now = await self.time.now()
        blind = []
        if last is not None and last.unseen_since is not None:
            blind.append(BlindSpot(since=format_instant(last.unseen_since), until=format_instant(last.since)))
        if last is not None and now - last.finished_at > RECENT:
            blind.append(BlindSpot(since=format_instant(last.until), until=format_instant(now)))
        return Proof(
            ok=None if last is None else not (found.missing or found.twice or blind),
            since=None if last is None else format_instant(last.since),
            until=None if last is None else format_instant(last.until),
            checked_at=None if last is None else format_instant(last.finished_at),
            complete=last is not None and last.complete,
            jobs=found.jobs,
            unchecked_jobs=found.unchecked_jobs,
            expected=found.expected,
            decided=found.decided,
            waiting=found.waiting,
            missing=found.missing,
            twice=found.twice,
            left_out=found.left_out,
            offences=[
                OffenceView(job_id=each.job_id, key=each.key, slot=format_instant(each.slot), problem=each.problem)
                for each in found.offences
            ],
            blind=blind,
        )
