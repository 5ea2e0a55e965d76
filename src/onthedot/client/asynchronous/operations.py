"""Bulk operations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from onthedot.client.answers import ResultPage
from onthedot.client.asynchronous.area import AsyncArea, given
from onthedot.client.headers import once_header
from onthedot.model.bulk import BulkCount, BulkOperation, BulkVerb

__all__ = ["AsyncOperations"]


class AsyncOperations(AsyncArea):
    async def start_operation(
        self,
        verb: BulkVerb,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        ids: Sequence[int | str] | None = None,
        params: Mapping[str, Any] | None = None,
        rate: int | None = None,
        idempotency_key: str | None = None,
    ) -> BulkOperation:
        """Apply a verb to all jobs (redrive: dead letters) that match `filter`, or to those with these IDs."""
        body = _bulk(verb, filter, ids, params, rate)
        return await self._http.call(
            "POST", "/v1/operations", BulkOperation, body=body, headers=once_header(idempotency_key)
        )

    async def count_operation(
        self,
        verb: BulkVerb,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        ids: Sequence[int | str] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> BulkCount:
        """How many match, and the first of them. Changes nothing."""
        body = {**_bulk(verb, filter, ids, params, None), "dry_run": True}
        return await self._http.call("POST", "/v1/operations", BulkCount, body=body, repeatable=True)

    async def get_operation(self, operation_id: int) -> BulkOperation:
        """Get a bulk operation with its progress."""
        return await self._http.call("GET", f"/v1/operations/{operation_id}", BulkOperation)

    async def list_operations(self, **filters: Any) -> ResultPage[BulkOperation]:
        """Get one page of bulk operations, newest first. Filters: limit, cursor."""
        return await self._http.call("GET", "/v1/operations", ResultPage[BulkOperation], query=filters)

    def iter_operations(self, **filters: Any) -> AsyncIterator[BulkOperation]:
        """Iterate over all bulk operations, newest first, fetching pages as needed."""
        return self._pages("/v1/operations", ResultPage[BulkOperation], filters)

    async def abort_operation(self, operation_id: int, *, idempotency_key: str | None = None) -> BulkOperation:
        """Stop a bulk operation after its current portion."""
        return await self._move_operation(operation_id, "abort", idempotency_key)

    async def pause_operation(self, operation_id: int, *, idempotency_key: str | None = None) -> BulkOperation:
        """Pause a bulk operation after its current portion."""
        return await self._move_operation(operation_id, "pause", idempotency_key)

    async def resume_operation(self, operation_id: int, *, idempotency_key: str | None = None) -> BulkOperation:
        """Resume a paused bulk operation."""
        return await self._move_operation(operation_id, "resume", idempotency_key)

    async def _move_operation(self, operation_id: int, verb: str, idempotency_key: str | None) -> BulkOperation:
        path, headers = f"/v1/operations/{operation_id}/{verb}", once_header(idempotency_key)
        return await self._http.call("POST", path, BulkOperation, headers=headers)


def _bulk(
    verb: BulkVerb,
    chosen: Mapping[str, Any] | None,
    ids: Sequence[int | str] | None,
    params: Mapping[str, Any] | None,
    rate: int | None,
) -> dict[str, Any]:
    return given(
        verb=verb,
        filter=None if chosen is None else dict(chosen),
        ids=None if ids is None else list(ids),
        params=None if params is None else dict(params),
        rate=rate,
    )
