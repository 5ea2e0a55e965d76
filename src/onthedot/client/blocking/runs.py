"""Runs, and the reports of those who carry them out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from onthedot.client.answers import ResultPage
from onthedot.client.blocking.area import BlockingArea
from onthedot.model.run import RunView
from onthedot.model.run_comparison import RunComparison

__all__ = ["BlockingRuns"]


class BlockingRuns(BlockingArea):
    def list_runs(self, **filters: Any) -> ResultPage[RunView]:
        return self._run(self._async.list_runs(**filters))

    def iter_runs(self, **filters: Any) -> Iterator[RunView]:
        return self._each(self._async.iter_runs(**filters))

    def get_run(self, run_id: str) -> RunView:
        return self._run(self._async.get_run(run_id))

    def run_logs(self, run_id: str) -> str:
        return self._run(self._async.run_logs(run_id))

    def compare_runs(self, run_id: str, other: str | None = None) -> RunComparison:
        return self._run(self._async.compare_runs(run_id, other))

    def run_bundle(self, run_id: str) -> dict[str, Any]:
        return self._run(self._async.run_bundle(run_id))

    def cancel_run(self, run_id: str, *, idempotency_key: str | None = None) -> RunView:
        return self._run(self._async.cancel_run(run_id, idempotency_key=idempotency_key))

    def retry_run(
        self, run_id: str, *, params: Mapping[str, Any] | None = None, idempotency_key: str | None = None
    ) -> RunView:
        return self._run(self._async.retry_run(run_id, params=params, idempotency_key=idempotency_key))

    def complete(
        self,
        callback: str,
        *,
        status: Literal["done", "failed"] = "done",
        result: Any = None,
        error: str | None = None,
        retryable: bool | None = None,
    ) -> RunView:
        told = self._async.complete(callback, status=status, result=result, error=error, retryable=retryable)
        return self._run(told)

    def progress(self, callback: str, *, percent: float | None = None, message: str | None = None) -> None:
        self._run(self._async.progress(callback, percent=percent, message=message))
