"""Runs, and the reports of those who carry them out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal
from urllib.parse import quote

from onthedot.client.answers import ResultPage
from onthedot.client.asynchronous.area import NOTHING, AsyncArea, given
from onthedot.client.headers import once_header
from onthedot.model.callback import run_and_token
from onthedot.model.run import RunView
from onthedot.model.run_comparison import RunComparison

__all__ = ["AsyncRuns"]


class AsyncRuns(AsyncArea):
    async def list_runs(self, **filters: Any) -> ResultPage[RunView]:
        """Get one page of runs, newest first. Filters: job_id, key, status, since, until, q (in the error), node,
        trigger, late, limit, cursor."""
        return await self._http.call("GET", "/v1/runs", ResultPage[RunView], query=filters)

    def iter_runs(self, **filters: Any) -> AsyncIterator[RunView]:
        """Iterate over all runs, newest first, fetching pages as needed."""
        return self._pages("/v1/runs", ResultPage[RunView], filters)

    async def get_run(self, run_id: str) -> RunView:
        """Get a run with all its attempts."""
        return await self._http.call("GET", f"/v1/runs/{quote(run_id, safe='')}", RunView)

    async def run_logs(self, run_id: str) -> str:
        """Get the output of a run: at most the last 64 KB."""
        return await self._http.call("GET", f"/v1/runs/{quote(run_id, safe='')}/logs", str)

    async def compare_runs(self, run_id: str, other: str | None = None) -> RunComparison:
        """Compare a run with another one, by default with the last one before it that succeeded."""
        path = f"/v1/runs/{quote(run_id, safe='')}/compare"
        return await self._http.call("GET", path, RunComparison, query={"with": other})

    async def run_bundle(self, run_id: str) -> dict[str, Any]:
        """Get the incident bundle of a run: all that is known of it in one JSON document, without secrets."""
        return await self._http.call("GET", f"/v1/runs/{quote(run_id, safe='')}/bundle", dict[str, Any])

    async def cancel_run(self, run_id: str, *, idempotency_key: str | None = None) -> RunView:
        """Cancel a pending run, or ask the node of an executing run to stop it."""
        path = f"/v1/runs/{quote(run_id, safe='')}/cancel"
        return await self._http.call("POST", path, RunView, headers=once_header(idempotency_key))

    async def retry_run(
        self, run_id: str, *, params: Mapping[str, Any] | None = None, idempotency_key: str | None = None
    ) -> RunView:
        """Retry a finished run as a new run of the same slot. `params`: those of the new run, if they are to differ."""
        path = f"/v1/runs/{quote(run_id, safe='')}/retry"
        body = None if params is None else {"params": dict(params)}
        return await self._http.call("POST", path, RunView, body=body, headers=once_header(idempotency_key))

    async def complete(
        self,
        callback: str,
        *,
        status: Literal["done", "failed"] = "done",
        result: Any = None,
        error: str | None = None,
        retryable: bool | None = None,
    ) -> RunView:
        """Report how a call ended that was accepted for later. `callback`: the URL that came with the call, in the
        header x-onthedot-callback; needs no API key."""
        run_id, token = run_and_token(callback)
        body = given(status=status, result=result, error=error, retryable=retryable)
        path = f"/v1/runs/{run_id}/complete"
        return await self._http.call("POST", path, RunView, query={"token": token}, body=body, repeatable=True)

    async def progress(self, callback: str, *, percent: float | None = None, message: str | None = None) -> None:
        """Report how far a call has got that was accepted for later. `callback` as above."""
        run_id, token = run_and_token(callback)
        body = given(percent=percent, message=message)
        path = f"/v1/runs/{run_id}/progress"
        await self._http.call("POST", path, NOTHING, query={"token": token}, body=body, repeatable=True)
