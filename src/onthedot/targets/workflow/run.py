"""One try of a run: its execution is started or found, followed, and stopped if that is wanted.

Starting can be repeated, because a name is taken once: an answer that is lost costs nothing but another question. So a
start is asked for again until the engine has said what became of it, and never given up in favour of a new try. An
engine that refuses to say it, because the login has expired or something is wrong there, has not said it.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from typing import Any

from onthedot.clock import Clock
from onthedot.model.body_template import MissingParam, encode_body, fill, is_template
from onthedot.model.instant import format_instant
from onthedot.model.run import Outcome
from onthedot.model.targets import WorkflowTarget
from onthedot.targets.contract import NOT_BEGUN, Call, Ended
from onthedot.targets.coroutine import take_cancel
from onthedot.targets.workflow.engine import (
    AlreadyThere,
    EngineDown,
    EngineNotReached,
    Execution,
    NewExecution,
    StartRefused,
    WorkflowEngine,
)
from onthedot.targets.workflow.following import EndWatch
from onthedot.targets.workflow.outages import words_of

__all__ = ["STOP_WITHIN", "WorkflowRun", "mark_of", "new_execution"]

STOP_WITHIN = 20.0
"""Seconds in which an engine that answers has taken a stop. Then it is recorded that the work may go on."""
STOP_AGAIN_FOR = 60.0
"""… for which an engine is asked all the same."""
GRACE = 60.0
"""Seconds after the time-out of the run in which an execution ends by itself, where the engine sees to that."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0
_KILLS = ("cancelled", "timeout")


class NoExecution(Exception):
    """There is none to follow; the outcome says why."""

    def __init__(self, outcome: Outcome | Ended) -> None:
        self.outcome = outcome


def mark_of(installation: str, name: str) -> str:
    """The same for all nodes of an installation, and of no other."""
    return hashlib.sha256(f"{installation}/{name}".encode()).hexdigest()[:32]


def new_execution(call: Call, target: WorkflowTarget, installation: str) -> NewExecution:
    """MissingParam: its input names what this run does not have."""
    name = f"{call.run_id}-{call.try_number}"
    given: Any = call.params if target.input is None else target.input
    if target.input is not None and is_template(encode_body(target.input)):
        values = {"run_id": call.run_id, "scheduled_for": format_instant(call.slot), "attempt": call.attempt}
        given = fill(target.input, values, call.params)
    return NewExecution(
        workflow=target.workflow,
        name=name,
        input=given,
        mark=mark_of(installation, name),
        labels={"run": call.run_id, "try": str(call.try_number), "tenant": str(call.tenant)},
        seconds=None if call.timeout is None else call.timeout + GRACE,
    )


class WorkflowRun:
    def __init__(
        self,
        call: Call,
        target: WorkflowTarget,
        engine: WorkflowEngine,
        watch: EndWatch,
        installation: str,
        clock: Clock,
    ) -> None:
        self._call, self._target, self._engine, self._watch = call, target, engine, watch
        self._installation, self._clock = installation, clock
        self._stage = "looking for its execution"
        self._trouble: str | None = None  # with the start, that was told
        self._began: float | None = None
        self._is_asked_for = False  # its start: it may be there, whatever is answered now
        self._may_be_there = call.adopted

    async def carry_out(self) -> Outcome | Ended:
        try:
            new = new_execution(self._call, self._target, self._installation)
        except MissingParam as missing:
            return Outcome(kind="refused", error=f"target.input: {missing}")
        try:
            found = await self._found_or_started(new)
            where = f"{new.name} on {self._engine.title} at {self._engine.address}"
            self._say(f"started {where}" if found is None else f"found {where}: {found.detail.get('status')}")
            if found is None or found.state == "going":
                self._begin(found)
                found = await self._watch.ended(new.workflow, new.name)
        except NoExecution as why:
            return why.outcome
        except asyncio.CancelledError:
            if self._call.stopped in _KILLS and self._may_be_there:
                await self._stop(new.workflow, new.name)
            if self._call.stopped == "timeout" and self._began is None and not self._call.adopted:
                error = f"not started within {self._call.timeout:g} s: {self._stage}"
                return Outcome(kind="timeout", retryable=True, error=error)
            raise
        if found is None:
            error = "its execution was removed by somebody else before its result was read"
            return Outcome(kind="error", retryable=True, error=error)
        if not found.is_of(new):
            return self._foreign(new.name)
        self._begin(found)
        return self._ended(found)

    # the start

    async def _found_or_started(self, new: NewExecution) -> Execution | None:
        """What is there already, or None for what was started now."""
        pause = FIRST_PAUSE
        try:
            while True:
                try:
                    return await self._ask_once(new)
                except EngineDown as down:
                    stage = f"{self._engine.title} at {self._engine.address} does not answer: {down}"
                    if stage != self._trouble:
                        self._say(stage)
                    self._stage = self._trouble = stage
                    self._watch.outages.tell(new.name, str(down))
                except StartRefused as refused:
                    error = f"not started: {self._engine.title}: {refused}"
                    raise NoExecution(Outcome(kind="error", retryable=refused.retryable, error=error)) from None
                await self._clock.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            self._watch.outages.over(new.name)

    async def _ask_once(self, new: NewExecution) -> Execution | None:
        call = self._call
        if call.try_number > 1 and not call.adopted:
            await self._stop_previous(new)
        if call.adopted:
            found = await self._seen(new)
            if found is not None:
                return self._checked(found, new)
            if not call.may_create:
                error = "its execution is gone, and nobody knows whether it ran"
                raise NoExecution(Outcome(kind="unknown", error=error))
        if call.stopped is None and not call.may_begin():
            raise NoExecution(NOT_BEGUN)
        self._stage = self._trouble or f"starting an execution on {self._engine.title}"
        was_there, self._may_be_there = self._may_be_there, True
        try:
            await self._engine.start(new)
        except EngineNotReached:
            self._may_be_there = was_there
            raise
        except AlreadyThere:  # by us, if an answer was lost or another node had it before
            self._is_asked_for = True
            found = await self._seen(new)
            if found is None:
                raise EngineDown(f"the name {new.name} is taken, but there is no execution with it") from None
            return self._checked(found, new)
        except EngineDown:
            self._is_asked_for = True
            raise
        except StartRefused:
            found = await self._seen(new) if self._is_asked_for else None
            if found is None:
                raise
            return self._checked(found, new)
        return None

    async def _seen(self, new: NewExecution) -> Execution | None:
        """What may be there already. Whoever is refused an answer does not know that there is nothing."""
        try:
            return await self._engine.look(new.workflow, new.name)
        except EngineDown:
            raise
        except Exception as error:
            raise EngineDown(f"the state of {new.name} is unknown: {words_of(error)}") from None

    async def _stop_previous(self, new: NewExecution) -> None:
        """What is left of the try before, if it is ours."""
        name = f"{self._call.run_id}-{self._call.try_number - 1}"
        found = await self._engine.look(new.workflow, name)
        if found is not None and found.state == "going" and found.mark in (None, mark_of(self._installation, name)):
            await self._engine.stop(new.workflow, name)

    def _checked(self, found: Execution, new: NewExecution) -> Execution:
        if not found.is_of(new):
            raise NoExecution(self._foreign(new.name))
        return found

    # the rest

    async def _stop(self, workflow: str, name: str) -> None:
        """An engine that is away is asked until the time is up. Whoever wants the stop does not wait as long, and says
        then that the work may go on. Asked again, it does not wait."""
        take_cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_WITHIN + STOP_AGAIN_FOR):
                while True:
                    try:
                        await self._engine.stop(workflow, name)
                        return
                    except (EngineDown, StartRefused):
                        await self._clock.sleep(FIRST_PAUSE)

    def _begin(self, found: Execution | None) -> None:
        if self._began is None:
            self._began = self._clock.monotonic() - self._ago(None if found is None else found.started_at)
            self._call.begun(self._began)

    def _ago(self, instant: int | None) -> float:
        return 0.0 if instant is None else max(0.0, (self._call.time_at(self._clock.monotonic()) - instant) / 1000)

    def _ended(self, found: Execution) -> Ended:
        detail = dict(found.detail)
        self._say(f"ended: {detail.get('status')}; see {detail.get('link')}")
        if found.state == "ok":
            if found.result is not None:
                detail["result"] = found.result
            outcome = Outcome(kind="ok", detail=detail)
        else:
            error = f"the workflow failed: {found.error or found.detail.get('status')}"
            outcome = Outcome(kind="error", retryable=True, error=error, detail=detail)
        ended = self._clock.monotonic() - self._ago(found.ended_at)
        return Ended(outcome, self._began, max(ended, self._began or ended))

    def _say(self, text: str) -> None:
        """In the log of the run: engines keep those of their steps."""
        self._call.log(f"{text}\n")

    def _foreign(self, name: str) -> Outcome:
        error = (
            f"{self._engine.title} has an execution {name} of this workflow that is not of this installation: two "
            "installations may use one workflow only with different job IDs"
        )
        return Outcome(kind="error", error=error)
