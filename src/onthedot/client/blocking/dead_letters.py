"""Dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onthedot.client.answers import ResultPage
from onthedot.client.blocking.area import BlockingArea
from onthedot.model.dead import DeadGroups, DeadLetterView

__all__ = ["BlockingDeadLetters"]


class BlockingDeadLetters(BlockingArea):
    def list_dead(self, **filters: Any) -> ResultPage[DeadLetterView]:
        return self._run(self._async.list_dead(**filters))

    def iter_dead(self, **filters: Any) -> Iterator[DeadLetterView]:
        return self._each(self._async.iter_dead(**filters))

    def group_dead(self, **filters: Any) -> DeadGroups:
        return self._run(self._async.group_dead(**filters))

    def discard(
        self,
        ids: Sequence[str] | None = None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        note: str | None = None,
        limit: int = 1000,
        idempotency_key: str | None = None,
    ) -> list[str]:
        return self._run(
            self._async.discard(ids, filter=filter, note=note, limit=limit, idempotency_key=idempotency_key)
        )

    def redrive(
        self,
        ids: Sequence[str] | None = None,
        *,
        job_id: int | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        limit: int = 1000,
        idempotency_key: str | None = None,
    ) -> list[str]:
        return self._run(
            self._async.redrive(ids, job_id=job_id, filter=filter, limit=limit, idempotency_key=idempotency_key)
        )
