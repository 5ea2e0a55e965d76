"""What gets called: it writes down each call before it answers, and never deduplicates.

How it answers is in the job's params: `mood` ok, flaky, bad, fatal, slow, later (asks to be called again no sooner than
so many seconds) or dated (the same, as a date).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from onthedot.clock import Clock
from onthedot.model.decoding import to_builtins
from onthedot.model.run import Outcome
from onthedot.targets.contract import Booking, Call, HandOver, NotBegun, Timekeeper
from proof.checker.events import History, Received
from proof.sim.clocks import DatabaseTime
from proof.sim.loop import Place, VirtualLoop

__all__ = ["Receiver", "Sender"]

KINDS = ("webhook", "function")
WAITING = 0.1
"""The share of calls that wait inside the process before they begin, for a connection or a worker, and may be frozen
with it or withdrawn."""
TOLD_WITHIN = 0.075
"""Seconds that the answer of a booked call may lie in the process."""


Answer = asyncio.Future[Outcome | None]  # None: the call was not begun


class Receiver:
    def __init__(self, loop: VirtualLoop, time: DatabaseTime, history: History, rng: random.Random) -> None:
        self.loop = loop
        self.time = time
        self.history = history
        self.rng = rng
        self.up = True
        self.reached: Callable[[str], None] = lambda process: None
        self.answered: Callable[[str], None] = lambda process: None

    def arrive(self, call: Call, process: str, node: str | None, answer: Answer) -> None:
        kind, seconds = self._decide(call.params)
        outcome = self._outcome(kind, call.params.get("mood", "ok"), seconds)
        self.history.append(
            Received(
                at=round(self.loop.now * 1000),
                db=self.time.now_ms(),
                run=call.run_id,
                job=call.job_id,
                token=call.attempt,
                answer=kind,
                took=round(seconds * 1000),
                node=node,
                asked={"target": to_builtins(call.target), "params": call.params, "slot": call.slot, "key": call.key},
                says=outcome.error,
                retry_after=outcome.retry_after_ms,
            )
        )
        self.loop.outside_later(seconds, self._answer, answer, outcome, process)
        self.reached(process)

    def _decide(self, params: dict[str, Any]) -> tuple[Any, float]:
        mood, rng = params.get("mood", "ok"), self.rng
        if not self.up:
            return "cut", 0.001
        if mood == "slow":
            return "ok", rng.uniform(0.5, 4.5)
        seconds = rng.uniform(0.001, 0.05) if rng.random() < 0.9 else rng.uniform(0.05, 1.5)
        if rng.random() < 0.01:
            return "cut", seconds
        if mood == "bad" or (mood in ("flaky", "later", "dated") and rng.random() < 0.4):
            return "error", seconds
        return ("refused", seconds) if mood == "fatal" else ("ok", seconds)

    def _outcome(self, kind: str, mood: str, seconds: float) -> Outcome:
        """A date has whole seconds: of what was meant up to one is lost."""
        outcome = _OUTCOMES[kind]
        if kind != "error" or mood not in ("later", "dated"):
            return outcome
        wait = self.rng.randint(1, 4) * 1000
        if mood == "dated":
            wait -= (self.time.now_ms() + round(seconds * 1000)) % 1000
        return msgspec.structs.replace(outcome, retry_after_ms=wait)

    def _answer(self, answer: Answer, outcome: Outcome, process: str) -> None:
        if not answer.done():
            answer.set_result(outcome)
            self.answered(process)


_OUTCOMES = {
    "ok": Outcome(kind="ok"),
    "error": Outcome(kind="error", retryable=True, error="HTTP 500"),
    "refused": Outcome(kind="error", error="HTTP 404"),
    "cut": Outcome(kind="error", retryable=True, error="connection reset"),
}


class Sender:
    """A process's targets. What has left the process arrives, whatever becomes of the process.

    There are three doors: `hand_over`, which nodes use for webhooks, `send`, which needs a task for each, and `book`,
    which is that of a program's own functions. All are played, for both kinds of target."""

    def __init__(
        self, receiver: Receiver, place: Place, offers: Sequence[str], clock: Clock, *, direct: bool, books: bool
    ) -> None:
        self.place = place
        self.offers = list(offers)
        self.direct: dict[str, HandOver] = dict.fromkeys(KINDS, self.hand_over) if direct else {}
        self.timekeepers: dict[str, Timekeeper] = dict.fromkeys(KINDS, self) if direct and books else {}
        self.exhausted: Callable[[], bool] = lambda: False
        self.clock = clock
        self.node: Callable[[], str | None] = lambda: None
        self._receiver = receiver

    async def send(self, call: Call) -> Outcome:
        answer: Answer = self._receiver.loop.create_future()
        if self.exhausted():
            raise NotBegun
        self.leave(call, answer)
        outcome = await answer
        assert outcome is not None, "it has left"
        return outcome

    def hand_over(self, call: Call, ended: Callable[[Outcome | None], None]) -> Callable[[], bool | None]:
        loop, rng = self._receiver.loop, self._receiver.rng
        errand = _Errand(self, call, loop.create_future())
        errand.answer.add_done_callback(partial(_tell, ended))
        if rng.random() < WAITING:
            loop.call_later(rng.uniform(0.001, 0.05), errand.begin)
        elif self.exhausted():
            loop.call_soon(errand.begin)  # nobody is told before this returns
        else:
            errand.begin()
        return errand.withdraw

    def keeps_time_for(self, target: Any) -> bool:
        return True

    def book(self, call: Call, at: float, ended: Callable[[Outcome | None], None]) -> Booking:
        loop = self._receiver.loop
        booked = Booked(self, call, loop.create_future(), ended, self._receiver.rng.uniform(0, TOLD_WITHIN))
        loop.call_later(max(0.0, at - self.clock.monotonic()), booked.begin)
        return booked

    def leave(self, call: Call, answer: Answer) -> None:
        receiver = self._receiver
        delay = receiver.rng.uniform(0.0001, 0.005)
        receiver.loop.outside_later(delay, receiver.arrive, call, self.place.name, self.node(), answer)


class _Errand:
    """A call that was handed over, and what becomes of it in the process."""

    def __init__(self, sender: Sender, call: Call, answer: Answer) -> None:
        self.answer = answer
        self.began: float | None = None
        self._sender = sender
        self._call = call

    def begin(self) -> None:
        if self.answer.done():
            return
        if self._call.may_begin() and not self._sender.exhausted():
            self.began = self._sender.clock.monotonic()
            self._sender.leave(self._call, self.answer)
        else:
            self.answer.set_result(None)

    def withdraw(self) -> bool | None:
        self.answer.cancel()
        return self.began is not None


class Booked(_Errand):
    """One that waits for its instant, and whose answer waits for others."""

    def __init__(
        self, sender: Sender, call: Call, answer: Answer, ended: Callable[[Outcome | None], None], told_after: float
    ) -> None:
        super().__init__(sender, call, answer)
        self.ended: float | None = None
        self._ended = ended
        self._told_after = told_after
        self._told = False
        answer.add_done_callback(self._answered)

    def take_back(self) -> bool:
        if self.began is not None or self.answer.done():
            return False
        self.answer.cancel()
        return True

    def withdraw(self) -> bool | None:
        if self.answer.done():
            self._tell()
            return None
        return super().withdraw()

    def _answered(self, answer: Answer) -> None:
        if not answer.cancelled():
            self.ended = self._sender.clock.monotonic()
            answer.get_loop().call_later(self._told_after, self._tell)

    def _tell(self) -> None:
        if not self._told:
            self._told = True
            self._ended(self.answer.result())


def _tell(ended: Callable[[Outcome | None], None], answer: Answer) -> None:
    if not answer.cancelled():
        ended(answer.result())
