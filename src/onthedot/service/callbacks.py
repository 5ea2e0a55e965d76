"""What receivers of calls tell later: how far their work has got, and how it ended."""

from __future__ import annotations

import msgspec

from onthedot.errors import Conflict, Invalid, Unauthorized
from onthedot.model.callback import Completion, Progress, try_named
from onthedot.model.decoding import encode_json
from onthedot.model.result import RESULT_LIMIT
from onthedot.model.run import Outcome, RunView
from onthedot.plan import Dead, RetryLater, Standing
from onthedot.service.base import ServiceBase
from onthedot.store.runs.finish_rows import Item
from onthedot.telemetry import emit

__all__ = ["CallbackVerbs", "tell_end"]


class CallbackVerbs(ServiceBase):
    async def complete_run(self, run_id: str, token: str | None, told: Completion) -> RunView:
        """The run as it is then. A repeat changes nothing; Conflict: that try ended otherwise."""
        try_number = await self._try_named(run_id, token)
        done = await self.store.complete(run_id, try_number, _outcome(told))
        if done.standing is Standing.OVER:
            emit("callback.refused", tenant=done.tenant, job_id=done.run.job_id, run_id=run_id, try_number=try_number)
            raise Conflict(f"try {try_number} of run {run_id} has already ended; the run is {done.run.status}")
        if done.written is not None:
            tell_end(done.written, done.key)
            if done.laned or isinstance(done.written.decision, RetryLater):
                await self.hint_now()
        return done.run

    async def report_progress(self, run_id: str, token: str | None, told: Progress) -> None:
        """Conflict: that try is over."""
        try_number = await self._try_named(run_id, token)
        said = {name: value for name, value in msgspec.structs.asdict(told).items() if value is not None}
        await self.progress.report(run_id, try_number, said)

    async def _try_named(self, run_id: str, token: str | None) -> int:
        secret = await self.installation_secret()
        try_number = None if token is None else try_named(secret, run_id, token)
        if try_number is None:
            raise Unauthorized("the token of the callback URL is missing or not valid for this run")
        return try_number


def _outcome(told: Completion) -> Outcome:
    if told.status == "done" and (told.retryable is not None or told.error is not None):
        name = "retryable" if told.retryable is not None else "error"
        raise Invalid.one(name, "is allowed only for a failed run", accepted='with "status": "failed"')
    detail = {}
    if told.result is not None:
        size = len(encode_json(told.result))
        if size > RESULT_LIMIT:
            accepted = f"at most {RESULT_LIMIT} bytes of JSON"
            raise Invalid.one("result", "is too large", given=f"{size} bytes", accepted=accepted)
        detail["result"] = told.result
    if told.status == "done":
        return Outcome(kind="ok", detail=detail)
    error = told.error or "the receiver reported a failure"
    return Outcome(kind="error", retryable=told.retryable is not False, error=error, detail=detail)


def tell_end(item: Item, key: str | None) -> None:
    """A run was ended, or put back, by somebody outside."""
    names = {"tenant": item.tenant, "job_id": item.job_id, "run_id": item.id, "key": key}
    if isinstance(item.decision, RetryLater):
        emit("run.retried", **names, tries=item.decision.tries, error=item.outcome.error)
        return
    emit(
        "run.finished",
        **names,
        status=item.status.upper(),
        kind=item.outcome.kind,
        duration_ms=item.duration_ms,
        lateness_ms=item.lateness_ms,
        error=item.outcome.error,
    )
    if isinstance(item.decision, Dead):
        emit("dead.letter", **names, reason=item.decision.reason)
