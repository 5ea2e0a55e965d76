"""Dead letters: look, group, drive again, close."""

from __future__ import annotations

from collections.abc import Sequence

from onthedot.errors import Invalid
from onthedot.model.bulk import BulkFilter, BulkRequest
from onthedot.model.dead import DeadFilter, DeadGroups, DeadLetterView
from onthedot.model.instant import parse_rfc3339
from onthedot.service.base import ServiceBase
from onthedot.service.repeats import IdempotencyKey, idempotency
from onthedot.store import LetterFilter, Page
from onthedot.store.abandoned_requests import acting

__all__ = ["DeadLetterVerbs", "bulk_redrive"]

NO_FILTER = DeadFilter()


class DeadLetterVerbs(ServiceBase):
    async def list_dead(
        self,
        tenant: int,
        wanted: LetterFilter | None = None,
        limit: int = 50,
        cursor: str | None = None,
        discarded: bool = False,
    ) -> Page[DeadLetterView]:
        """`discarded`: those that were closed, instead of those that are open."""
        read = self.store.list_discarded if discarded else self.store.list_dead
        return await read(tenant, wanted or LetterFilter(), limit=limit, cursor=cursor)

    async def group_dead(self, tenant: int, wanted: LetterFilter, window: int | None = None) -> DeadGroups:
        """`window`: by so many ms of time, too."""
        return await self.store.group_dead(tenant, wanted, window)

    async def redrive(
        self,
        tenant: int,
        ids: Sequence[str] | None = None,
        wanted: DeadFilter = NO_FILTER,
        limit: int = 1000,
        idempotency_key: IdempotencyKey | None = None,
    ) -> list[str]:
        """New runs for the named dead letters, or those that match. Answers the ids of the new runs."""
        repeat = idempotency("redrive", idempotency_key, body=(ids, wanted, limit))
        new = await self.store.redrive(tenant, _selected(ids, wanted), limit=limit, idempotency=repeat)
        if new:
            await self.hint_now()
        return new

    async def discard(
        self,
        tenant: int,
        ids: Sequence[str] | None = None,
        wanted: DeadFilter = NO_FILTER,
        note: str | None = None,
        limit: int = 1000,
        idempotency_key: IdempotencyKey | None = None,
    ) -> list[str]:
        """Closes the named dead letters, or those that match; the runs stay in the ledger as they are. Their ids."""
        repeat = idempotency("discard", idempotency_key, body=(ids, wanted, note, limit))
        selected = _selected(ids, wanted)
        return await self.store.discard(
            tenant, selected, note=note, actor=acting().name, limit=limit, idempotency=repeat
        )


def bulk_redrive(
    ids: Sequence[str] | None, wanted: DeadFilter, *, first: int | None, rate: int | None, stop_at_failures: int | None
) -> BulkRequest:
    """The same in the background, a few first or at a rate."""
    params = {"first": first, "stop_at_failures": stop_at_failures}
    said = {name: value for name, value in params.items() if value is not None}
    if ids is not None:
        return BulkRequest(verb="redrive", ids=list(ids), params=said, rate=rate)
    chosen = BulkFilter(job_id=wanted.job_id, cause=wanted.cause, since=wanted.since, until=wanted.until)
    return BulkRequest(verb="redrive", filter=chosen, params=said, rate=rate)


def _selected(ids: Sequence[str] | None, wanted: DeadFilter) -> LetterFilter:
    since, until = _instant("filter.since", wanted.since), _instant("filter.until", wanted.until)
    return LetterFilter(ids=ids, job_id=wanted.job_id, cause=wanted.cause, since=since, until=until)


def _instant(path: str, given: str | None) -> int | None:
    if given is None:
        return None
    at = parse_rfc3339(given)
    if at is None:
        accepted = "RFC 3339, such as 2026-03-01T00:00:00Z"
        raise Invalid.one(path, "not a valid timestamp", given=given, accepted=accepted)
    return at
