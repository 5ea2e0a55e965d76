"""The Task: one send to the target. Its output goes to the Monitor that spawned it, its end is an Outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from onthedot.model.run import ClaimedRun, Outcome
from onthedot.targets import Call, NotBegun

__all__ = ["Sender", "call_of", "failed", "perform"]


class Sender(Protocol):
    """What the engine knows of targets."""

    @property
    def offers(self) -> Sequence[str]: ...

    async def send(self, call: Call) -> Outcome: ...


def call_of(
    run: ClaimedRun,
    timeout: float | None,
    log: Callable[[str], None],
    begun: Callable[[float], None],
    may_begin: Callable[[], bool],
    lacks: Callable[[str], None],
    now_ms: Callable[[], int],
) -> Call:
    """What the target may know of the run."""
    spec = run.spec
    return Call(
        run_id=run.id,
        job_id=run.job_id,
        slot=run.slot,
        attempt=run.token,
        target=spec.target,
        key=spec.key,
        tenant=run.tenant,
        params=spec.params if run.params is None else {**spec.params, **run.params},
        timeout=timeout,
        log=log,
        begun=begun,
        may_begin=may_begin,
        lacks=lacks,
        now_ms=now_ms,
    )


async def perform(sender: Sender, call: Call) -> Outcome:
    """Send once. A target that raises is a failed try, never the end of the node; unless it did not even begin."""
    try:
        return await sender.send(call)
    except (asyncio.CancelledError, NotBegun):
        raise
    except Exception as error:
        return failed(error)


def failed(error: Exception) -> Outcome:
    return Outcome(kind="error", retryable=True, error=f"{type(error).__name__}: {error}")
