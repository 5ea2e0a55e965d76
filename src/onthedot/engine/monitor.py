"""The Monitor: owns one run from its instant to its result. Starts the Task, enforces the timeout, collects log and
execution time, reports to the Recorder.

Monitor and Task share one asyncio task: at tens of thousands of runs a second a second one would cost a third more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

import msgspec

from onthedot.clock import Clock
from onthedot.engine.clockwork import DatabaseClock
from onthedot.engine.holdings import Holdings
from onthedot.engine.joblog import RunLog
from onthedot.engine.lease import Lease
from onthedot.engine.logfiles import LogFiles
from onthedot.engine.mailbox import Mailbox
from onthedot.engine.messages import Result, Return
from onthedot.engine.slots import Pool
from onthedot.engine.statistics import Lateness
from onthedot.engine.task import Sender, perform
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.model.target import WebhookTarget
from onthedot.telemetry import emit

__all__ = ["Cause", "Monitor", "Surroundings"]

Cause = Literal["cancel", "interrupted", "gone"]
"""Why a run is stopped from outside: a user's cancel, the node stops, or the run is no longer ours."""


class Surroundings(msgspec.Struct, frozen=True):
    """What all Monitors of a node share."""

    clock: Clock
    time: DatabaseClock
    lease: Lease
    sender: Sender
    recorder: Mailbox[Result | Return]
    holdings: Holdings
    lateness: Lateness
    logs: LogFiles | None
    webhook_timeout: float
    ended: Callable[[Monitor], None]
    crashed: Callable[[BaseException], None]


class Monitor:
    __slots__ = ("_around", "_began", "_log", "cause", "pool", "run", "started_at", "task")

    def __init__(self, run: ClaimedRun, pool: Pool, around: Surroundings) -> None:
        self.run = run
        self.pool = pool
        self.cause: Cause | None = None
        self.task: asyncio.Task[None] | None = None
        self.started_at: int | None = None
        self._around = around
        self._began = 0.0
        self._log: RunLog | None = None

    def start(self) -> None:
        self.task = asyncio.get_running_loop().create_task(self.watch())

    def stop(self, cause: Cause) -> None:
        """From outside. The first reason counts, except that a run which is gone is gone."""
        if self.cause is None or cause == "gone":
            self.cause = cause
        if self.task is not None:
            self.task.cancel()

    async def watch(self) -> None:
        try:
            outcome = await self._attempt()
            if outcome is None:
                self._give_back()
            else:
                await self._report(outcome)
        except asyncio.CancelledError:
            self._around.holdings.release(self.run.id, self.run.token)
            if self.cause is None:
                raise
        except BaseException as error:
            self._around.crashed(error)
        finally:
            self._around.ended(self)

    async def _attempt(self) -> Outcome | None:
        """None: it was not to be; the run goes back as if we never had it."""
        try:
            if not await self._may_send():
                return None
            return await self._send()
        except asyncio.CancelledError:
            if self.cause == "cancel":
                return Outcome(kind="cancelled", error="cancelled by a user")
            if self.cause == "interrupted":
                return Outcome(kind="interrupted", error="the node stopped") if self.started_at is not None else None
            raise

    async def _may_send(self) -> bool:
        """Right before the send, once more: is it time, and is it still ours? (A process may be frozen anywhere.)"""
        if self.cause is not None:
            raise asyncio.CancelledError
        around = self._around
        while (left := around.time.seconds_until(self.run.due_at)) > 0:
            await around.clock.sleep(left)
        return around.lease.may_start()

    async def _send(self) -> Outcome:
        around, run = self._around, self.run
        self._began = around.clock.monotonic()
        self.started_at = around.time.now_ms()
        lateness = self.started_at - run.due_at
        if not run.tries and not run.losses:
            around.lateness.add(lateness)
        emit("run.started", tenant=run.tenant, job_id=run.job_id, run_id=run.id, lateness_ms=lateness)
        self._log = log = RunLog(run, around.logs)
        log.start(self.started_at)
        seconds = self.timeout
        if seconds is None:
            return await perform(around.sender, run, None, log.write)
        try:
            async with around.clock.timeout(seconds):
                return await perform(around.sender, run, seconds, log.write)
        except TimeoutError:
            return Outcome(kind="timeout", retryable=True, error=f"timed out after {seconds:g} s")

    @property
    def timeout(self) -> float | None:
        """Seconds. The policy's; by default a webhook has TIMEOUT_SECONDS, everything else as long as it takes."""
        spec = self.run.spec
        if spec.policy.timeout is not None:
            return spec.policy.timeout / 1000
        return self._around.webhook_timeout if isinstance(spec.target, WebhookTarget) else None

    async def _report(self, outcome: Outcome) -> None:
        around = self._around
        finished_at, text, duration = around.time.now_ms(), None, None
        if self.started_at is not None:
            finished_at = max(finished_at, self.started_at)
            duration = max(0, round((around.clock.monotonic() - self._began) * 1000))
            if self._log is not None:
                text = self._log.end(finished_at, outcome, duration)
        result = result_of(self.run, outcome, self.started_at, finished_at, duration, text)
        if around.recorder.offer(result):
            return
        try:
            await around.recorder.put(result)
        except asyncio.CancelledError:
            around.recorder.put_over(result)  # what is known must be written, whoever wants us to stop now

    def _give_back(self) -> None:
        self._around.recorder.put_over(Return(self.run.id, self.run.token))


def result_of(
    run: ClaimedRun,
    outcome: Outcome,
    started_at: int | None,
    finished_at: int,
    duration_ms: int | None = None,
    log: str | None = None,
) -> Result:
    """Lateness is that of the first start: a retry is not late because the first try failed."""
    first = next((a.started_at for a in run.attempts if a.started_at is not None), started_at)
    return Result(
        run=run,
        outcome=outcome,
        started_at=started_at,
        finished_at=finished_at,
        lateness_ms=None if first is None else max(0, first - run.due_at),
        duration_ms=duration_ms,
        log=log,
    )
