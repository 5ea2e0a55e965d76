"""The Monitor: owns one run from its instant to its result. Starts the call, enforces the time-out, collects log and
execution time, reports to the Recorder.

Its life: `start` → the kind of target has the call → `_done` → the Recorder has the result → over. Before `start`, and
as long as the call has not begun, it can be withdrawn (`stop`, `recall`); after that it can only be asked to stop, and
is waited for.

What a kind has started that survives its node goes on when the run is let go of: it is detached, not given back, and
the node that adopts it starts the same try once more, with `run.work`, to find it and go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from onthedot.engine.messages import Detach, Return
from onthedot.engine.running.call import ask_to_stop, call_of
from onthedot.engine.running.deadlines import Entry
from onthedot.engine.running.destinations import CallPlace
from onthedot.engine.running.run_context import RunContext
from onthedot.engine.running.run_log import RunLog
from onthedot.engine.running.slot_pool import SlotPool
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.store import Finished, StartedWork
from onthedot.targets.contract import Cause, Ended, Handle, Kind, Stop, failed_try
from onthedot.telemetry import emit, telemetry

__all__ = ["CUT_OFF", "NODE_STOPPED", "Monitor"]

NODE_STOPPED = Outcome(kind="interrupted", error="the node stopped")
CUT_OFF = Outcome(kind="interrupted", error="stopped: the node can't reach the store, and another node may run it")
NO_CALLBACK = Outcome(
    kind="error", retryable=True, error="PUBLIC_URL is not set on this node: the receiver could not call back"
)
_KILLS = ("cancelled", "timeout")  # what ends the work itself, also where that goes on without the node

FAR_US = 1_000_000
"""Nobody starts a run so long before its instant: the database's clock was set back since. It goes back: here it would
keep its slot until then, recorded as begun, perhaps."""


class Monitor(msgspec.Struct, gc=False, eq=False):
    """A struct: one is made quickly, and the garbage collector need not look at it (2 of 14 µs a run). So whatever
    refers to it in a circle must be let go of when it ends: `_handle`, `_deadline`, `_turn`."""

    run: ClaimedRun
    pool: SlotPool
    _kind: Kind
    _context: RunContext
    _ended: Callable[[Monitor], None]
    cause: Cause | None = None  # why it is to stop
    recalled: bool = False  # wanted back: it goes, unless it has begun
    started_at: int | None = None
    began: float = 0.0  # on our clock, as far as is known: when it was started for, then when it was told to have begun
    seconds: float | None = None  # how long it had its slot; None: it never began, or has not ended
    timeout: float | None = None  # seconds, once it was started
    place: CallPlace | None = None  # who is called, if that is known
    probe: int = 0  # its number, if it is the probe of an open breaker
    outcome: Outcome | None = None  # once it has ended, if it did
    _because: Outcome | None = None  # what comes of it if it is stopped
    _handle: Handle | None = None  # of the call, from its start to its end
    _deadline: Entry | None = None
    _is_stopping: bool = False
    _is_outside: bool = False  # its kind survives this node, and has been told to start
    _log: RunLog | None = None
    _unreported: Finished | None = None  # it waits for its turn at the Recorder's
    _turn: asyncio.Future[None] | None = None
    _is_over: bool = False

    # the start

    @property
    def survives(self) -> bool:
        """Whether what it starts goes on without this node."""
        return self._kind.profile.survives_node

    def work(self) -> StartedWork:
        """What it is about to start, to be recorded first."""
        return self._context.started_work(self.run)

    def start(self) -> None:
        """At its instant, or a moment before if its kind keeps time. Once more: is it time, and is it still ours? A
        process may be frozen anywhere, and timers may wake early."""
        if self._is_over:
            return
        context, run = self._context, self.run
        self._deadline = None  # if it was one for its instant
        now = context.clock.monotonic()
        now_us = context.time.at_us(now)
        if run.work is not None and context.lease.may_start(now):  # it has begun long ago
            self._start(now)
            if self.cause is not None and self._handle is not None:
                self._stop_call(self._handle)
        elif self.is_unwanted_at(now) or not context.lease.may_start(now):
            self._end(None)
        elif now_us >= run.due_at * 1000:
            self._start(now)
        elif run.due_at * 1000 - now_us > FAR_US:
            self._end(None)
        elif context.leaves_early(run):
            self._start(context.time.monotonic_at(run.due_at))
        else:
            self._set_deadline(context.time.monotonic_at(run.due_at), self.start)

    def _start(self, at: float) -> None:
        context, run, kind = self._context, self.run, self._kind
        self.began = at
        self.timeout = context.timeout_of(run.spec)
        if self.timeout is not None:
            self._set_deadline(at + self.timeout, self._expired)
        self._is_outside = kind.profile.survives_node
        call = call_of(self, self.timeout, context.time.offset_us)
        if run.spec.policy.completion == "callback":
            call.callback = context.callbacks.url_of(run)
            if call.callback is None:
                self._end(NO_CALLBACK)
                return
        try:
            self._handle = kind.start(call, at, self._done)
        except Exception as error:
            self._end(failed_try(error))

    # what its kind asks and tells

    def may_begin(self) -> bool:
        """From any thread: is it still ours, does nobody want it back, and is there time left? A process that was
        frozen meanwhile finds the connection there and the time-out over, in this order: the call would go out, be
        given up in the next moment, and be made again."""
        now = self._context.clock.monotonic()
        return (
            (self.timeout is None or now < self.began + self.timeout)
            and self._context.lease.may_start(now)
            and not self.is_unwanted_at(now)
        )

    def begins(self, at: float) -> None:
        """One instant, on the database's clock and on ours; the time-out counts from here."""
        if self.started_at is not None or self._is_over:
            return
        context, run = self._context, self.run
        try:
            self.started_at = started = max(run.due_at, context.time.at_us(at) // 1000)
            if at != self.began:
                self.began = at
                if self.timeout is not None and not self._is_stopping:
                    self._set_deadline(at + self.timeout, self._expired)
            lateness = started - run.due_at
            if not run.begun_before:
                context.lateness.add(lateness, at)
            if telemetry.heard:
                event = "run.started" if run.work is None else "run.adopted"
                emit(event, tenant=run.tenant, job_id=run.job_id, run_id=run.id, key=run.spec.key, lateness_ms=lateness)
            if context.logs is not None and self._log is None:
                self._log = RunLog(run, context.logs)
                self._log.start(started)
        except BaseException as error:  # ours: the kind that told us must not take it for its own
            self._crashed(error)

    def write(self, text: str) -> None:
        if self._log is None:
            self._log = RunLog(self.run, self._context.logs)
        self._log.write(text)
        self._context.live_logs.wrote(self._log)

    def lacks(self, what: str) -> None:
        self._context.lacks(self.pool, what)

    def _done(self, ended: Ended) -> None:
        """Called by the kind, once, on this loop. Too late, if it was given up."""
        if self._handle is None or self._is_over:
            return
        if ended.began is None and ended.outcome is None:
            self._withdrawn()
            return
        if ended.began is None:
            self._not_begun()
        elif self.started_at is None:
            self.begins(ended.began)
        self._end(ended.outcome or self._outcome_of_stop(), ended.ended)

    # being stopped

    def is_unwanted_at(self, now: float) -> bool:
        """Whether it is not to begin any more, at this monotonic instant."""
        if self.cause is not None or self.recalled or self._is_over:
            return True
        return self.run.spec.policy.expires_in is not None and self._is_too_late(now)

    def _is_too_late(self, now: float) -> bool:
        return self._context.too_late(self.run, self._context.time.at_us(now) // 1000) is not None

    def stop(self, cause: Cause, outcome: Outcome | None = None) -> None:
        """With what comes of it if it is. The first reason counts, except that a run which is gone is gone. Said again
        it is urgent."""
        if self._is_over:
            return
        if self.cause is None or cause == "gone":
            self.cause, self._because = cause, outcome
        if self._turn is not None:
            self._turn.cancel()
            self._report()
        elif self._handle is None:
            if self.run.work is None:
                self._end(self._outcome_of_stop())
            elif cause not in _KILLS:
                self._end(None)  # else it is started, to be killed
        else:
            self._stop_call(self._handle)

    def _stop_call(self, handle: Handle) -> None:
        assert self.cause is not None
        answer = ask_to_stop(handle, self.cause)
        if answer is Stop.NOT_BEGUN:
            self._withdrawn()
        elif answer is Stop.STOPPING and not self._is_stopping:
            self._is_stopping = True
            within = self._kind.profile.stop_within
            self._set_deadline(self._context.clock.monotonic() + within, self._give_up)

    def lose_lease(self) -> None:
        """Unless it has ended and only waits to be written, or goes on by itself: then it can't run twice. May be said
        twice."""
        if self._unreported is None and not self.goes_on:
            self.stop("interrupted", CUT_OFF)

    def recall(self) -> None:
        """Its job was changed, paused or deleted: it goes back, unless it has begun, here or elsewhere."""
        if self.run.work is not None:
            return
        self.recalled = True
        if self._is_over or self._unreported is not None:
            return
        if self._handle is None:
            self._end(None)
        elif ask_to_stop(self._handle, "recalled") is Stop.NOT_BEGUN:
            self._withdrawn()

    @property
    def goes_on(self) -> bool:
        """Whether something may go on outside without this node, which whoever lets go of it must leave to others."""
        return self._is_outside or self.run.work is not None

    def _withdrawn(self) -> None:
        """Nothing of it has left this process. What another one has started before is not ended by that."""
        self._not_begun()
        self._end(self._outcome_of_stop() if self.run.work is None else None)

    def _not_begun(self) -> None:
        """The target did not get as far as beginning: then it did not take too long either."""
        self.started_at = None
        self._is_outside = False
        if self.cause == "timeout":
            self.cause = self._because = None

    def _expired(self) -> None:
        self._deadline = None
        if self.goes_on and self._context.lease.left() <= 0:  # somebody may have adopted it, under another time-out
            self.stop("interrupted", CUT_OFF)
            return
        error = f"timed out after {self.timeout:g} s"
        self.stop("timeout", Outcome(kind="timeout", retryable=True, error=error))

    def _give_up(self) -> None:
        """It was asked to stop, and does not."""
        self._deadline = None
        outcome = self._outcome_of_stop()
        if outcome is not None:
            error = f"{outcome.error}; the process may still be running"
            outcome = msgspec.structs.replace(outcome, error=error)
        self._end(outcome)

    def _outcome_of_stop(self) -> Outcome | None:
        """None: the run goes back as if we never had it, or on without us."""
        let_go = self.cause == "interrupted" and (self.started_at is None or self.goes_on)
        return None if let_go else self._because

    # the end

    def _end(self, outcome: Outcome | None, ended: float | None = None) -> None:
        context, run, handle = self._context, self.run, self._handle
        self._handle = None
        if outcome is None and self.cause is None:
            outcome = context.too_late(run, context.time.now_ms())
        try:
            if outcome is not None:
                finished = self._finished(outcome, ended)
                if self._kind.profile.survives_node and handle is not None:
                    context.unrecorded[run.id, run.token] = handle
                if not context.recorder.offer(finished):
                    self._wait_for_room(finished)
                    return
            elif self.cause == "gone":  # nobody to report to
                context.owned.release(run.id, run.token)
            elif self.goes_on:
                context.recorder.put_over(Detach(run.id, run.token))
            else:
                context.recorder.put_over(Return(run.id, run.token))
        except BaseException as error:
            self._crashed(error)
            return
        self._over()

    def _finished(self, outcome: Outcome, now: float | None) -> Finished:
        context, started, duration, log = self._context, self.started_at, None, None
        self.outcome = outcome
        if now is None:
            now = context.clock.monotonic()
        finished_at = context.time.at_us(now) // 1000
        if started is not None:
            if finished_at < started:
                finished_at = started
            self.seconds = now - self.began
            duration = round(self.seconds * 1000)
        if self._log is not None:  # also of what never began: why is what it has logged
            log = self._log.end(finished_at, outcome, duration)
        return context.finished(self.run, outcome, started, finished_at, duration, log)

    def _wait_for_room(self, finished: Finished) -> None:
        """The slot stays taken meanwhile, so that less is claimed."""
        self._unreported = finished
        self._turn = self._context.recorder.turn()
        self._turn.add_done_callback(self._report)

    def _report(self, turn: asyncio.Future[None] | None = None) -> None:
        """It has its turn; or somebody wants us to stop: what is known must be written, past the bound."""
        finished, self._unreported, self._turn = self._unreported, None, None
        if finished is not None:
            self._context.recorder.put_over(finished)
            self._over()

    def _crashed(self, error: BaseException) -> None:
        self._context.crashed(error)
        self._over()

    def _over(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._deadline is not None:
            self._clear_deadline()
        if self._log is not None:
            self._context.live_logs.ended(self._log)
        self._ended(self)

    def _set_deadline(self, at: float, then: Callable[[], None]) -> None:
        self._clear_deadline()
        self._deadline = self._context.deadlines.set(at, then)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._context.deadlines.clear(self._deadline)
            self._deadline = None
