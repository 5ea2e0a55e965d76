"""Work that goes on outside of all nodes, and a kind of target that starts, finds, follows and kills it there.

How long it takes and how it ends is decided by its name alone, so that nothing else is drawn differently for it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

from onthedot.clock import Clock
from onthedot.model.decoding import to_builtins
from onthedot.model.run import Outcome
from onthedot.model.targets import CommandTarget
from onthedot.targets import Call
from onthedot.targets.contract import NOT_BEGUN, Ended, Profile
from onthedot.targets.coroutine import CoroutineKind
from proof.checker.events import History, Killed, Received
from proof.sim.clocks import DatabaseTime
from proof.sim.loop import VirtualLoop

__all__ = ["COMMAND", "Outside", "OutsideKind"]

COMMAND = "outside"
LONGEST = 14.0
"""Seconds: some outlive the lease of the node that started them, and the next one's, too."""
_KILLS = ("cancelled", "timeout")


class OutsideWork:
    def __init__(self, outside: Outside, run: str, of: int) -> None:
        self.began = outside.loop.now
        self.outcome: Outcome | None = None
        self.recorded = False
        self._outside = outside
        self._run, self._of = run, of
        self._waiting: list[asyncio.Future[Outcome]] = []

    def end(self, outcome: Outcome) -> None:
        if self.outcome is None:
            self.outcome = outcome
            for waiting in self._waiting:
                if not waiting.done():
                    waiting.set_result(outcome)

    def kill(self, why: str) -> None:
        if self.outcome is None:
            outside = self._outside
            at = round(outside.loop.now * 1000)
            outside.history.append(Killed(at=at, run=self._run, of=self._of, why=why))
            self.end(Outcome(kind="error", retryable=True, error="killed"))

    async def ended(self) -> Outcome:
        if self.outcome is None:
            self._waiting.append(self._outside.loop.create_future())
            return await self._waiting[-1]
        return self.outcome


class Outside:
    def __init__(self, loop: VirtualLoop, time: DatabaseTime, history: History) -> None:
        self.loop = loop
        self.time = time
        self.history = history
        self.works: dict[str, OutsideWork] = {}

    def create(self, name: str, call: Call, node: str | None) -> OutsideWork:
        rng = random.Random(name)
        seconds, fails = rng.uniform(0.3, LONGEST), rng.random() < 0.2
        work = self.works[name] = OutsideWork(self, call.run_id, call.try_number)
        outcome = Outcome(kind="error", retryable=True, error="exit code 1") if fails else Outcome(kind="ok")
        self.history.append(
            Received(
                at=round(self.loop.now * 1000),
                db=self.time.now_ms(),
                run=call.run_id,
                job=call.job_id,
                token=call.attempt,
                answer="error" if fails else "ok",
                took=round(seconds * 1000),
                node=node,
                asked={"target": to_builtins(call.target), "params": call.params, "slot": call.slot, "key": call.key},
                says=outcome.error,
                of=call.try_number,
            )
        )
        self.loop.outside_later(seconds, work.end, outcome)
        return work


class OutsideKind(CoroutineKind):
    spec = CommandTarget
    profile = Profile(capacity=20, survives_node=True)

    def __init__(self, outside: Outside, clock: Clock, node: Callable[[], str | None]) -> None:
        self._outside = outside
        self._clock = clock
        self._node = node

    def capabilities(self) -> list[str]:
        return [f"command:{COMMAND}"]

    async def send(self, call: Call) -> Outcome | Ended:
        outside, name = self._outside, f"{call.run_id}-{call.try_number}"
        try:
            work = outside.works.get(name)
            if work is None and call.stopped is None:
                if not call.may_create:
                    return Outcome(kind="unknown", error="there is nothing of it")
                if not call.may_begin():
                    return NOT_BEGUN
                work = outside.create(name, call, self._node())
            if work is None:  # it is to be killed, and never was
                await outside.loop.create_future()
                raise AssertionError("nobody stopped it")
            self._tell_begun(call, work)
            return await work.ended()
        except asyncio.CancelledError:
            if call.stopped in _KILLS and (found := outside.works.get(name)) is not None:
                self._tell_begun(call, found)
                found.kill(call.stopped)
            raise

    def _tell_begun(self, call: Call, work: OutsideWork) -> None:
        call.begun(self._clock.monotonic() - (self._outside.loop.now - work.began))

    def recorded(self, call: Call) -> None:
        if (work := self._outside.works.get(f"{call.run_id}-{call.try_number}")) is not None:
            work.recorded = True

    async def inventory(self) -> Sequence[str]:
        return [name for name, work in self._outside.works.items() if not work.recorded]

    async def remove(self, name: str) -> None:
        self._outside.works.pop(name).kill("removed")
