"""The Monitor: owns one run from its instant to its result. Starts the Task, enforces the timeout, collects log and
execution time, reports to the Recorder.

Monitor and Task share one asyncio task, and the good case is one straight coroutine: about 20 µs of a core a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

import msgspec

from onthedot.clock import Clock
from onthedot.engine.clockwork import DatabaseClock
from onthedot.engine.deadlines import Deadlines, Entry
from onthedot.engine.holdings import Holdings
from onthedot.engine.joblog import RunLog
from onthedot.engine.lease import Lease
from onthedot.engine.logfiles import LogFiles
from onthedot.engine.mailbox import Mailbox
from onthedot.engine.messages import Result, Return
from onthedot.engine.slots import Pool
from onthedot.engine.statistics import Lateness
from onthedot.engine.task import Sender, call_of, perform
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.model.target import WebhookTarget
from onthedot.targets import NotBegun
from onthedot.telemetry import emit

__all__ = ["Cause", "Monitor", "Surroundings", "result_of"]

Cause = Literal["cancel", "interrupted", "gone", "timeout"]
"""Why a run is stopped: a user's cancel, the node stops, the run is no longer ours, it takes too long."""


class Surroundings(msgspec.Struct, frozen=True):
    """What all Monitors of a node share."""

    clock: Clock
    time: DatabaseClock
    lease: Lease
    deadlines: Deadlines
    sender: Sender
    recorder: Mailbox[Result | Return]
    holdings: Holdings
    lateness: Lateness
    logs: LogFiles | None
    webhook_timeout: float
    crashed: Callable[[BaseException], None]


class Monitor:
    __slots__ = ("_around", "_began", "_deadline", "_ended", "_log", "cause", "pool", "run", "started_at", "task")

    def __init__(self, run: ClaimedRun, pool: Pool, around: Surroundings, ended: Callable[[Monitor], None]) -> None:
        self.run = run
        self.pool = pool
        self.cause: Cause | None = None
        self.task: asyncio.Task[None] | None = None
        self.started_at: int | None = None
        self._around = around
        self._ended = ended
        self._began = 0.0
        self._deadline: Entry | None = None
        self._log: RunLog | None = None

    def start(self) -> None:
        self.task = asyncio.get_running_loop().create_task(self.watch())

    def stop(self, cause: Cause) -> None:
        """From outside. The first reason counts, except that a run which is gone is gone."""
        if self.cause is None or cause == "gone":
            self.cause = cause
        if self.task is not None:
            self.task.cancel()

    def seconds(self) -> float | None:
        """How long it has had its slot; None: it did not begin."""
        return None if self.started_at is None else self._around.clock.monotonic() - self._began

    async def watch(self) -> None:
        try:
            try:
                outcome = await self._attempt()
            except asyncio.CancelledError:
                outcome = self._stopped()
            if outcome is None:
                self._around.recorder.put_over(Return(self.run.id, self.run.token))
            else:
                await self._report(outcome)
        except asyncio.CancelledError:
            self._around.holdings.release(self.run.id, self.run.token)
            if self.cause is None:
                raise
        except BaseException as error:
            self._around.crashed(error)
        finally:
            if self._deadline is not None:
                self._around.deadlines.clear(self._deadline)
            self._ended(self)

    async def _attempt(self) -> Outcome | None:
        """None: it was not to be; the run goes back as if we never had it.

        Right before the send, once more: is it time, and is it still ours? A process may be frozen anywhere, and timers
        may wake early.
        """
        around, run = self._around, self.run
        if self.cause is not None:
            raise asyncio.CancelledError
        now_us = around.time.now_us()
        while now_us < run.due_at * 1000:
            await around.clock.sleep(around.time.seconds_until(run.due_at))
            now_us = around.time.now_us()
        if not around.lease.may_start():
            return None
        self._start(now_us // 1000)
        assert self._log is not None
        try:
            return await perform(around.sender, call_of(run, self.timeout, self._log.write, self._begins))
        except NotBegun:
            self.started_at = None
            if self.cause in (None, "timeout"):
                return None
            raise asyncio.CancelledError from None

    def _start(self, now: int) -> None:
        around, run = self._around, self.run
        self.started_at = now
        self._began = around.clock.monotonic()
        timeout = self.timeout
        if timeout is not None:
            self._deadline = around.deadlines.set(self._began + timeout, self._expired)
        lateness = now - run.due_at
        if not run.tries and not run.losses:
            around.lateness.add(lateness)
        emit("run.started", tenant=run.tenant, job_id=run.job_id, run_id=run.id, lateness_ms=lateness)
        self._log = RunLog(run, around.logs)
        self._log.start(now)

    def _begins(self, at: float) -> None:
        """It had to wait for a worker process and begins only now: this is its start, and its time-out counts from
        here."""
        if self.started_at is None:
            return
        self.started_at += max(0, round((at - self._began) * 1000))
        self._began = at
        if self._deadline is not None and self.timeout is not None:
            self._around.deadlines.clear(self._deadline)
            self._deadline = self._around.deadlines.set(at + self.timeout, self._expired)

    @property
    def timeout(self) -> float | None:
        """Seconds. The policy's; by default a webhook has TIMEOUT_SECONDS, everything else as long as it takes."""
        spec = self.run.spec
        if spec.policy.timeout is not None:
            return spec.policy.timeout / 1000
        return self._around.webhook_timeout if isinstance(spec.target, WebhookTarget) else None

    def _expired(self) -> None:
        self.stop("timeout")

    def _stopped(self) -> Outcome | None:
        """What a CancelledError means; it goes on if it is not from us, or if there is nobody to report to."""
        if self.cause == "timeout":
            return Outcome(kind="timeout", retryable=True, error=f"timed out after {self.timeout:g} s")
        if self.cause == "cancel":
            return Outcome(kind="cancelled", error="cancelled by a user")
        if self.cause == "interrupted":
            return None if self.started_at is None else Outcome(kind="interrupted", error="the node stopped")
        raise asyncio.CancelledError

    async def _report(self, outcome: Outcome) -> None:
        around = self._around
        finished_at, text, duration = around.time.now_ms(), None, None
        if self.started_at is not None and self._log is not None:
            finished_at = max(finished_at, self.started_at)
            duration = round((around.clock.monotonic() - self._began) * 1000)
            text = self._log.end(finished_at, outcome, duration)
        result = result_of(self.run, outcome, self.started_at, finished_at, duration, text)
        if around.recorder.offer(result):
            return
        try:
            await around.recorder.put(result)
        except asyncio.CancelledError:
            around.recorder.put_over(result)  # what is known must be written, whoever wants us to stop now


def result_of(
    run: ClaimedRun,
    outcome: Outcome,
    started_at: int | None,
    finished_at: int,
    duration_ms: int | None = None,
    log: str | None = None,
) -> Result:
    """Lateness is that of the first start: a retry is not late because the first try failed."""
    first = started_at
    if run.attempts:
        first = next((a.started_at for a in run.attempts if a.started_at is not None), started_at)
    lateness = None if first is None else max(0, first - run.due_at)
    return Result(run, outcome, started_at, finished_at, lateness, duration_ms, log)
