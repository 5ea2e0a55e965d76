"""One call of a target: what it may know of its run, whom it asks and tells, and how it is asked to stop."""

from __future__ import annotations

import asyncio
from typing import Protocol

from onthedot.model.run import NO_JOB, ClaimedRun
from onthedot.model.work import Work
from onthedot.targets.contract import Call, Cause, Handle, Stop

__all__ = ["ask_to_stop", "call_of"]


class Listener(Protocol):
    """The Monitor."""

    @property
    def run(self) -> ClaimedRun: ...

    def write(self, text: str) -> None: ...

    def may_begin(self) -> bool: ...

    def begins(self, at: float) -> None: ...

    def lacks(self, what: str) -> None: ...


def call_of(monitor: Listener, timeout: float | None, offset_us: int) -> Call:
    """By fifteen names at most: of more Python makes a dict first, which takes longer than all the rest (0.5 µs a run).
    So what few calls have is set afterwards."""
    run = monitor.run
    spec = run.spec
    call = Call(
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
        offset_us=offset_us,
    )
    if run.work is not None:
        call.adopted, call.place = True, run.work.place
        call.may_create = _may_create(run, run.work)
    return call


def _may_create(run: ClaimedRun, work: Work) -> bool:
    """Whether work that was adopted may be started, if there is nothing of it. Not after its job was deleted or paused:
    who was told so was told that nothing starts any more. Nor if the job has another target now: that is started."""
    spec = run.spec
    if spec.policy.delivery == "at_most_once" or run.version == NO_JOB or work.outdated:
        return False
    return not spec.paused or run.kind == "manual"


def ask_to_stop(handle: Handle, cause: Cause) -> Stop:
    """A kind that fails at it is not the end of the node: the call is waited for, and then given up."""
    try:
        return handle.stop(cause)
    except Exception as error:
        report = {"message": "could not stop a run", "exception": error}
        asyncio.get_running_loop().call_exception_handler(report)
        return Stop.STOPPING
