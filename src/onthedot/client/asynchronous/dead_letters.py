"""Dead letters."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from onthedot.client.answers import CreatedRuns, ResultPage
from onthedot.client.asynchronous.area import AsyncArea, given
from onthedot.client.headers import once_header
from onthedot.model.dead import DeadGroups, DeadLetterView, DiscardedLetters

__all__ = ["AsyncDeadLetters"]


class AsyncDeadLetters(AsyncArea):
    async def list_dead(self, **filters: Any) -> ResultPage[DeadLetterView]:
        """Get one page of dead letters. Filters: job_id, cause, since, until, discarded, limit, cursor."""
        return await self._http.call("GET", "/v1/dead", ResultPage[DeadLetterView], query=filters)

    def iter_dead(self, **filters: Any) -> AsyncIterator[DeadLetterView]:
        """Iterate over all dead letters, fetching pages as needed."""
        return self._pages("/v1/dead", ResultPage[DeadLetterView], filters)

    async def group_dead(self, **filters: Any) -> DeadGroups:
        """Group dead letters by cause, and by time with `window` (hour, day). Filters: job_id, cause, since, until."""
        return await self._http.call("GET", "/v1/dead/groups", DeadGroups, query=filters)

    async def discard(
        self,
        ids: Sequence[str] | None = None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        note: str | None = None,
        limit: int = 1000,
        idempotency_key: str | None = None,
    ) -> list[str]:
        """Close the given dead letters, or those that match `filter`, without retrying them. Returns their run IDs."""
        chosen = None if filter is None else dict(filter)
        body = given(ids=None if ids is None else list(ids), filter=chosen, note=note, limit=limit)
        path, headers = "/v1/dead/discard", once_header(idempotency_key)
        return (await self._http.call("POST", path, DiscardedLetters, body=body, headers=headers)).discarded

    async def redrive(
        self,
        ids: Sequence[str] | None = None,
        *,
        job_id: int | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        limit: int = 1000,
        idempotency_key: str | None = None,
    ) -> list[str]:
        """Retry the given dead letters, those of one job, those that match `filter`, or all. Returns the IDs of the new
        runs. A few first, or at a rate: `start_operation("redrive", …)`."""
        chosen = None if filter is None else dict(filter)
        body = given(limit=limit, ids=None if ids is None else list(ids), job_id=job_id, filter=chosen)
        made = await self._http.call(
            "POST", "/v1/dead/redrive", CreatedRuns, body=body, headers=once_header(idempotency_key)
        )
        return made.runs
