"""The Monitor: owns one run from its instant to its result. Starts the Task, enforces the timeout, collects log and
execution time, reports to the Recorder.

A kind of target that has a door for it (`HandOver`) is given the call at once and calls back: nobody here waits for the
run. One that keeps time itself (`Timekeeper`) gets it a moment before its instant; when it began is known when it is
told, or asked for. For all others Monitor and Task share one asyncio task, and the good case is one straight coroutine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

import msgspec

from onthedot.engine.messages import Return
from onthedot.engine.running.deadlines import Entry
from onthedot.engine.running.run_context import RunContext
from onthedot.engine.running.run_log import RunLog
from onthedot.engine.running.slot_pool import SlotPool
from onthedot.engine.running.task import call_of, failed, perform
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.plan import stopped_by
from onthedot.store import Finished
from onthedot.targets import Call, NotBegun
from onthedot.targets.contract import Booking, HandOver, Lacking
from onthedot.telemetry import emit, telemetry

__all__ = ["Cause", "Monitor"]

Cause = Literal["cancel", "interrupted", "gone", "timeout", "lease"]
"""Why a run is stopped: a user's cancel, the node stops, the run is no longer ours, it takes too long, it may be
another node's soon."""


class Monitor(msgspec.Struct, gc=False, eq=False):
    """A struct: one is made quickly, and the garbage collector need not look at it (2 of 14 µs a run). So whatever
    refers to it in a circle must be let go of when it ends: `_withdraw`, `_booking`, `_deadline`, a `task` that was
    cancelled."""

    run: ClaimedRun
    pool: SlotPool
    _around: RunContext
    _ended: Callable[[Monitor], None]
    cause: Cause | None = None
    replaced_by: str | None = None  # the run for whose sake it was cancelled; None: a user did
    recalled: bool = False  # wanted back: it goes, unless it has begun
    task: asyncio.Task[None] | None = None
    started_at: int | None = None
    seconds: float | None = None  # how long it had its slot; None: it never began, or has not ended
    timeout: float | None = None  # seconds, once it has begun
    _began: float = 0.0
    _latest: float | None = None  # on the monotonic clock: begun by then, or not at all
    _deadline: Entry | None = None
    _log: RunLog | None = None
    _watching: bool = False
    _withdraw: Callable[[], bool | None] | None = None
    _booking: Booking | None = None
    _unreported: Finished | None = None  # it waits for room at the Recorder's

    def start(self) -> None:
        around, run = self._around, self.run
        hand_over = around.direct.get(run.spec.target.type)
        if hand_over is not None and self.cause is None and not self.recalled:
            now = around.clock.monotonic()
            now_us = around.time.at_us(now)
            expires = run.spec.policy.expires_in is not None
            if around.lease.may_start(now) and not (expires and self._is_too_late(now_us)):
                if now_us >= run.due_at * 1000:
                    self._start(now_us // 1000, now)
                    self._set_deadline()
                    self._hand_over(hand_over)
                    return
                if self._book():
                    return
        self.task = asyncio.get_running_loop().create_task(self.watch())

    def stop(self, cause: Cause) -> None:
        """From outside. The first reason counts, except that a run which is gone is gone."""
        if self.cause is None or cause == "gone":
            self.cause = cause
        if self._unreported is not None:
            self._report_over_the_bound()
        elif self._withdraw is not None:
            begun = self._withdraw()
            if not self._is_out():  # it had ended, and we were told so now
                return
            if begun is False:
                self._not_begun()
            else:
                self._know_begin()
            self._end(self._stopped())
        elif self._watching and self.task is not None:  # a task cancelled before its first step would never run at all
            self.task.cancel()

    def lose_lease(self) -> None:
        """Unless it has ended and only waits to be written. May be said twice."""
        if self._unreported is None and self.cause in (None, "lease"):
            self.stop("lease")

    # handed over

    def _hand_over(self, hand_over: HandOver) -> None:
        call = self._call()
        try:
            self._withdraw = hand_over(call, self._answered)
        except Exception as error:  # later: who ends makes room for the next, which may fail in the same way
            asyncio.get_running_loop().call_soon(self._end, failed(error))

    def _is_out(self) -> bool:
        return self._withdraw is not None

    def _answered(self, outcome: Outcome | None) -> None:
        """Called by the target, on this loop."""
        if self._is_out():
            if outcome is None:
                self._not_begun()
            else:
                self._know_begin()
            self._end(outcome)

    # handed over before its instant

    def _book(self) -> bool:
        around, run = self._around, self.run
        keeper = around.timekeepers.get(run.spec.target.type)
        if keeper is None:
            return False
        self._began = around.time.monotonic_at(run.due_at)  # as far as can be known
        self.timeout = around.timeout_of(run.spec)
        self._booking = booking = keeper.book(self._call(), self._began, self._answered)
        if booking is None:
            return False
        self._withdraw = booking.withdraw
        self._set_deadline()
        return True

    def recall(self) -> None:
        """Its job was changed, paused or deleted: it goes back if it waits for its instant, or when it asks whether it
        may begin. What has begun goes on."""
        self.recalled = True
        self.take_back()

    def take_back(self) -> None:
        """If it still waits for its instant elsewhere."""
        if self._withdraw is not None and self._booking is not None and self._booking.take_back():
            self._end(None)

    def _know_begin(self) -> None:
        """When a booked call began is known over there first."""
        booking = self._booking
        if booking is not None and self.started_at is None and booking.began is not None:
            self._start(max(self.run.due_at, self._around.time.at_us(booking.began) // 1000), booking.began)

    # with a task of its own

    async def watch(self) -> None:
        self._watching = True
        outcome: Outcome | None = None
        try:
            outcome = await self._attempt()
        except asyncio.CancelledError:
            if self.cause is None:  # not from us: whoever ends this program
                self.task = None
                self._around.owned.release(self.run.id, self.run.token)
                self._over()
                raise
        except BaseException as error:
            self._crashed(error)
            return
        self._watching = False
        self._end(outcome or self._stopped())

    async def _attempt(self) -> Outcome | None:
        """None: it was not to be, or it was stopped.

        Right before the send, once more: is it time, and is it still ours? A process may be frozen anywhere, and timers
        may wake early.
        """
        around, run = self._around, self.run
        if self.cause is not None or self.recalled:
            return None
        while (now_us := around.time.at_us(now := around.clock.monotonic())) < run.due_at * 1000:
            await around.clock.sleep(around.time.seconds_until(run.due_at))
        if not around.lease.may_start(now) or self._is_too_late(now_us):
            return None
        self._start(now_us // 1000, now)
        self._set_deadline()
        try:
            return await perform(around.sender, self._call())
        except NotBegun as error:
            if isinstance(error, Lacking):
                self._lacks(str(error))
            self._not_begun()
            return None

    def _call(self) -> Call:
        return call_of(
            self.run, self.timeout, self._write, self._begins, self._may_begin, self._lacks, self._around.now_ms
        )

    def _lacks(self, what: str) -> None:
        self._around.lacks(self.pool, what)

    def _may_begin(self) -> bool:
        """Asked by a target where it had to wait, perhaps in another thread: is it still ours, does nobody want it
        back, and is there time left? A process that was frozen meanwhile finds the connection there and the time-out
        over, in this order: the call would go out, be given up in the next moment, and be made again."""
        now = self._around.clock.monotonic()
        return (
            not self.recalled
            and (self.timeout is None or now < self._began + self.timeout)
            and (self._latest is None or now <= self._latest)
            and self._around.lease.may_start(now)
        )

    @property
    def unwanted(self) -> bool:
        """Whether it is not to begin any more."""
        return self.cause is not None or self.recalled or self._is_too_late(self._around.time.now_us())

    def _is_too_late(self, now_us: int) -> bool:
        return self.run.spec.policy.expires_in is not None and (
            self._around.too_late(self.run, now_us // 1000) is not None
        )

    def _not_begun(self) -> None:
        """The target did not get as far as beginning: then it did not take too long either."""
        self.started_at = None
        if self.cause == "timeout":
            self.cause = None

    # beginning and ending

    def _start(self, now: int, began: float) -> None:
        """One instant, on the database's clock and on ours."""
        around, run = self._around, self.run
        self.started_at = now
        self._began = began
        self.timeout = around.timeout_of(run.spec)
        lateness = now - run.due_at
        if not run.begun_before:
            around.lateness.add(lateness, began)
            expires_in = run.spec.policy.expires_in
            if expires_in is not None:
                self._latest = began + (expires_in - lateness) / 1000
        if telemetry.heard:
            emit("run.started", tenant=run.tenant, job_id=run.job_id, run_id=run.id, lateness_ms=lateness)
        if around.logs is not None:
            self._log = RunLog(run, around.logs)
            self._log.start(now)

    def _begins(self, at: float) -> None:
        """It had to wait for a worker process, or for its instant, and begins only now: this is its start, and its
        time-out counts from here."""
        if self._booking is not None:
            self._know_begin()
        elif self.started_at is None:
            return
        else:
            self.started_at += max(0, round((at - self._began) * 1000))
            self._began = at
        self._set_deadline()

    def _set_deadline(self) -> None:
        """From when it began, as it is known now."""
        deadlines = self._around.deadlines
        if self._deadline is not None:
            deadlines.clear(self._deadline)
        if self.timeout is not None:
            self._deadline = deadlines.set(self._began + self.timeout, self._expired)

    def _write(self, text: str) -> None:
        if self._log is None:
            self._log = RunLog(self.run, self._around.logs)
        self._log.write(text)
        self._around.live_logs.wrote(self._log)

    def _expired(self) -> None:
        self._deadline = None
        self.stop("timeout")

    def _stopped(self) -> Outcome | None:
        """What came of it, if it was stopped; None: the run goes back as if we never had it."""
        match self.cause:
            case "timeout":
                return Outcome(kind="timeout", retryable=True, error=f"timed out after {self.timeout:g} s")
            case "cancel":
                return stopped_by(self.replaced_by)
            case "interrupted" if self.started_at is not None:
                return Outcome(kind="interrupted", error="the node stopped")
            case "lease" if self.started_at is not None:
                return Outcome(
                    kind="interrupted", error="the node lost touch with the store: stopped, not to run twice"
                )
        return None

    def _end(self, outcome: Outcome | None) -> None:
        if outcome is None and self.cause is None:
            outcome = self._around.too_late(self.run, self._around.time.now_ms())
        booking, self._withdraw, self._booking = self._booking, None, None
        around, run = self._around, self.run
        try:
            if outcome is not None:
                finished = self._finished(outcome, booking)
                if not around.recorder.offer(finished):
                    self._unreported = finished
                    self.task = asyncio.get_running_loop().create_task(self._wait_for_room(finished))
                    return
            elif self.cause == "gone":  # nobody to report to
                around.owned.release(run.id, run.token)
            else:
                around.recorder.put_over(Return(run.id, run.token))
        except BaseException as error:
            self._crashed(error)
            return
        self._over()

    def _finished(self, outcome: Outcome, booking: Booking | None) -> Finished:
        around, started, duration, log = self._around, self.started_at, None, None
        now = booking.ended if booking is not None else None
        if now is None:
            now = around.clock.monotonic()
        finished_at = around.time.at_us(now) // 1000
        if started is not None:
            if finished_at < started:
                finished_at = started
            self.seconds = now - self._began
            duration = round(self.seconds * 1000)
            if self._log is not None:
                log = self._log.end(finished_at, outcome, duration)
        return around.finished(self.run, outcome, started, finished_at, duration, log)

    async def _wait_for_room(self, finished: Finished) -> None:
        """The slot stays taken meanwhile, so that less is claimed."""
        try:
            await self._around.recorder.put(finished)
        except asyncio.CancelledError:
            if self._unreported is None:  # by `stop`, which has seen to it
                return
            self.task = None
            self._report_over_the_bound()
            raise
        self._unreported = None
        self._over()

    def _report_over_the_bound(self) -> None:
        """What is known must be written, whoever wants us to stop now."""
        assert self._unreported is not None
        finished, self._unreported = self._unreported, None
        self._around.recorder.put_over(finished)
        if self.task is not None:
            self.task.cancel()
        self._over()

    def _crashed(self, error: BaseException) -> None:
        self._around.crashed(error)
        self._over()

    def _over(self) -> None:
        if self._deadline is not None:
            self._around.deadlines.clear(self._deadline)
            self._deadline = None
        if self._log is not None:
            self._around.live_logs.ended(self._log)
        self._ended(self)
