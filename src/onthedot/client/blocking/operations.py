"""Bulk operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onthedot.client.answers import ResultPage
from onthedot.client.blocking.area import BlockingArea
from onthedot.model.bulk import BulkCount, BulkOperation, BulkVerb

__all__ = ["BlockingOperations"]


class BlockingOperations(BlockingArea):
    def start_operation(
        self,
        verb: BulkVerb,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        ids: Sequence[int | str] | None = None,
        params: Mapping[str, Any] | None = None,
        rate: int | None = None,
        idempotency_key: str | None = None,
    ) -> BulkOperation:
        return self._run(
            self._async.start_operation(
                verb, filter=filter, ids=ids, params=params, rate=rate, idempotency_key=idempotency_key
            )
        )

    def count_operation(
        self,
        verb: BulkVerb,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        ids: Sequence[int | str] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> BulkCount:
        return self._run(self._async.count_operation(verb, filter=filter, ids=ids, params=params))

    def get_operation(self, operation_id: int) -> BulkOperation:
        return self._run(self._async.get_operation(operation_id))

    def list_operations(self, **filters: Any) -> ResultPage[BulkOperation]:
        return self._run(self._async.list_operations(**filters))

    def iter_operations(self, **filters: Any) -> Iterator[BulkOperation]:
        return self._each(self._async.iter_operations(**filters))

    def abort_operation(self, operation_id: int, *, idempotency_key: str | None = None) -> BulkOperation:
        return self._run(self._async.abort_operation(operation_id, idempotency_key=idempotency_key))

    def pause_operation(self, operation_id: int, *, idempotency_key: str | None = None) -> BulkOperation:
        return self._run(self._async.pause_operation(operation_id, idempotency_key=idempotency_key))

    def resume_operation(self, operation_id: int, *, idempotency_key: str | None = None) -> BulkOperation:
        return self._run(self._async.resume_operation(operation_id, idempotency_key=idempotency_key))
