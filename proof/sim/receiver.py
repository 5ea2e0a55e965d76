"""What gets called: it writes down each call before it answers, and never deduplicates.

How it answers is in the job's params: `mood` ok, flaky, bad, fatal or slow.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

from onthedot.model.run import Outcome
from onthedot.targets import Call
from proof.checker.events import History, Received
from proof.sim.clocks import DatabaseTime
from proof.sim.loop import Place, VirtualLoop

__all__ = ["Receiver", "Sender"]


class Receiver:
    def __init__(self, loop: VirtualLoop, time: DatabaseTime, history: History, rng: random.Random) -> None:
        self.loop = loop
        self.time = time
        self.history = history
        self.rng = rng
        self.up = True
        self.reached: Callable[[str], None] = lambda process: None
        self.answered: Callable[[str], None] = lambda process: None

    def arrive(self, call: Call, process: str, node: str | None, answer: asyncio.Future[Outcome]) -> None:
        kind, seconds = self._decide(call.params)
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
            )
        )
        self.loop.outside_later(seconds, self._answer, answer, kind, process)
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
        if mood == "bad" or (mood == "flaky" and rng.random() < 0.4):
            return "error", seconds
        return ("refused", seconds) if mood == "fatal" else ("ok", seconds)

    def _answer(self, answer: asyncio.Future[Outcome], kind: str, process: str) -> None:
        if not answer.done():
            answer.set_result(_OUTCOMES[kind])
            self.answered(process)


_OUTCOMES = {
    "ok": Outcome(kind="ok"),
    "error": Outcome(kind="error", retryable=True, error="HTTP 500"),
    "refused": Outcome(kind="error", error="HTTP 404"),
    "cut": Outcome(kind="error", retryable=True, error="connection reset"),
}


class Sender:
    """A process's targets. What has left the process arrives, whatever becomes of the process."""

    def __init__(self, receiver: Receiver, place: Place, offers: Sequence[str]) -> None:
        self.place = place
        self.offers = list(offers)
        self.node: Callable[[], str | None] = lambda: None
        self._receiver = receiver

    async def send(self, call: Call) -> Outcome:
        receiver = self._receiver
        answer: asyncio.Future[Outcome] = receiver.loop.create_future()
        delay = receiver.rng.uniform(0.0001, 0.005)
        receiver.loop.outside_later(delay, receiver.arrive, call, self.place.name, self.node(), answer)
        return await answer
