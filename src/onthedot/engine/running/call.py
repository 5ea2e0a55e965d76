"""What a target may know of a run, and whom it asks and tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from onthedot.model.run import ClaimedRun
from onthedot.targets.contract import Call

__all__ = ["call_of"]


class Listener(Protocol):
    """The Monitor."""

    @property
    def run(self) -> ClaimedRun: ...

    def write(self, text: str) -> None: ...

    def may_begin(self) -> bool: ...

    def begins(self, at: float) -> None: ...

    def lacks(self, what: str) -> None: ...


def call_of(monitor: Listener, timeout: float | None, now_ms: Callable[[], int]) -> Call:
    run = monitor.run
    spec = run.spec
    return Call(
        run_id=run.id,
        job_id=run.job_id,
        slot=run.slot,
        attempt=run.token,
        try_number=run.tries + 1,
        target=spec.target,
        key=spec.key,
        tenant=run.tenant,
        params=spec.params if run.params is None else {**spec.params, **run.params},
        timeout=timeout,
        log=monitor.write,
        may_begin=monitor.may_begin,
        begun=monitor.begins,
        lacks=monitor.lacks,
        now_ms=now_ms,
    )
