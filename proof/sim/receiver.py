"""What gets called: it writes down each call before it answers, and never deduplicates.

How it answers is in the job's params: `mood` ok, flaky, bad, fatal, slow, later (asks to be called again no sooner than
so many seconds), dated (the same, as a date), gone (answers 410 at times) or last (says at times with a good answer
that it wants no more).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from email.utils import formatdate
from typing import Any, Literal

import msgspec

from onthedot.clock import Clock
from onthedot.model.decoding import to_builtins
from onthedot.model.run import Outcome
from onthedot.model.targets import FunctionTarget, Target, WebhookTarget
from onthedot.targets import Call, Kind, Targets
from onthedot.targets.contract import NOT_BEGUN, Cause, Done, Ended, Handle, Profile, Stop
from onthedot.targets.coroutine import CoroutineKind
from onthedot.targets.webhook.verdict import retry_after_ms
from proof.checker.events import History, Received
from proof.sim.clocks import DatabaseTime
from proof.sim.loop import Place, VirtualLoop
from proof.sim.outside import Outside, OutsideKind

__all__ = ["HOSTS", "Manner", "Receiver", "Sender", "host_of"]

Manner = Literal["direct", "early", "coroutine"]
WAITING = 0.1
"""The share of calls that wait inside the process before they begin, for a connection or a worker, and may be frozen
with it or withdrawn."""
TOLD_WITHIN = 0.075
"""Seconds that the answer of a call which was started early may lie in the process."""
SLOW_TO_STOP = 0.1
"""The share of calls that take a moment to end when they are asked to stop; not those that timed out, of which the
checker knows to the millisecond when they ended."""


LAST = 0.15
"""The share of calls after which some receivers want no more."""
NEVER = 3600.0
"""Seconds after which a host that hangs would answer."""
HOSTS = 3


class Reply(msgspec.Struct, frozen=True):
    """What the receiver answers. retry_after: as it stands in a header, for who called to read."""

    outcome: Outcome
    retry_after: str | None = None


Answer = asyncio.Future[Reply]


def host_of(target: Any) -> str | None:
    """Webhooks go to one of so many hosts: the last figure of the URL says to which."""
    return f"http://host{int(target.url[-1]) % HOSTS}" if isinstance(target, WebhookTarget) else None


class Receiver:
    def __init__(self, loop: VirtualLoop, time: DatabaseTime, history: History, rng: random.Random) -> None:
        self.loop = loop
        self.time = time
        self.history = history
        self.rng = rng
        self.up = True
        self.outside = Outside(loop, time, history)
        self.ill: dict[str, str] = {}  # hosts that hang or fail
        self.steady = False  # only those do: no job makes its host look ill
        self.reached: Callable[[str], None] = lambda process: None
        self.answered: Callable[[str], None] = lambda process: None
        self.calls_back: Callable[[Call, str, float], None] = lambda call, answer, seconds: None

    def arrive(self, call: Call, process: str, node: str | None, stamp: int, answer: Answer) -> None:
        kind, seconds = self._ill(call.target) or self._decide(call.params)
        mood = call.params.get("mood", "ok")
        outcome = self._last(_OUTCOMES[kind], mood)
        wait, date = self._asks_for(kind, mood, seconds)
        if outcome is _OUTCOMES["gone"]:
            kind = "refused"
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
                retry_after=wait,
                retry_at=date,
                of=None if call.callback is None else call.try_number,
                parks=outcome.parks is not None,
                stamp=stamp,
            )
        )
        header = None if wait is None else str(wait // 1000) if date is None else formatdate(date // 1000, usegmt=True)
        self.loop.outside_later(seconds, self._answer, answer, Reply(outcome, header), process)
        self.reached(process)
        if call.callback is not None and kind in ("ok", "cut"):
            self.calls_back(call, kind, seconds)

    def _ill(self, target: Target) -> tuple[Any, float] | None:
        """How a host answers that is not well: not at all, or with errors; None: it is."""
        how = self.ill.get(host_of(target) or "") if self.ill else None
        if how is None:
            return None
        return ("ok", NEVER) if how == "hangs" else (self.rng.choice(("error", "cut")), self.rng.uniform(0.001, 0.05))

    def _decide(self, params: dict[str, Any]) -> tuple[Any, float]:
        mood, rng = params.get("mood", "ok"), self.rng
        if not self.up:
            return "cut", 0.001
        if mood == "slow":
            return "ok", rng.uniform(0.5, 4.5) if not self.steady else rng.uniform(0.2, 0.7)
        if self.steady and mood == "bad":
            mood = "flaky"
        seconds = rng.uniform(0.001, 0.05) if rng.random() < 0.9 else rng.uniform(0.05, 1.5)
        if rng.random() < 0.01:
            return "cut", seconds
        if mood == "bad" or (mood in ("flaky", "later", "dated") and rng.random() < 0.4):
            return "error", seconds
        return ("refused", seconds) if mood == "fatal" else ("ok", seconds)

    def _asks_for(self, kind: str, mood: str, seconds: float) -> tuple[int | None, int | None]:
        """In how many ms after its answer it wants to be called again, and when, if it says so by a date, which has
        whole seconds: of what was meant up to one is lost."""
        if kind != "error" or mood not in ("later", "dated"):
            return None, None
        wait = self.rng.randint(1, 4) * 1000
        if mood == "later":
            return wait, None
        answers = self.time.now_ms() + round(seconds * 1000)
        date = (answers + wait) // 1000 * 1000
        return date - answers, date

    def _last(self, outcome: Outcome, mood: str) -> Outcome:
        if mood not in ("gone", "last") or outcome.kind != "ok" or self.rng.random() >= LAST:
            return outcome
        return _OUTCOMES["gone"] if mood == "gone" else msgspec.structs.replace(outcome, parks="no more calls")

    def _answer(self, answer: Answer, reply: Reply, process: str) -> None:
        if not answer.done():
            answer.set_result(reply)
            self.answered(process)


_OUTCOMES = {
    "ok": Outcome(kind="ok"),
    "error": Outcome(kind="error", retryable=True, error="HTTP 500"),
    "refused": Outcome(kind="error", error="HTTP 404"),
    "gone": Outcome(kind="error", error="HTTP 410", parks="HTTP 410"),
    "cut": Outcome(kind="error", retryable=True, error="connection reset"),
}


class Sender:
    """A process's targets. What has left the process arrives, whatever becomes of the process.

    Kinds of targets differ in how they go about it, and all manners are played, for webhooks and functions: a call
    is begun at once or waits for a connection ("direct"), is a coroutine ("coroutine"), or waits for its instant by
    itself, and its answer for others ("early")."""

    def __init__(
        self,
        receiver: Receiver,
        place: Place,
        clock: Clock,
        *,
        manner: Manner,
        processes: int,
        hosts: bool = False,
    ) -> None:
        """`hosts`: each host is a destination of its own."""
        self.place = place
        self.exhausted: Callable[[], bool] = lambda: False
        self.clock = clock
        self.node: Callable[[], str | None] = lambda: None
        self.manner = manner
        self.receiver = receiver
        self.targets = Targets(
            [
                self._kind(WebhookTarget, "webhook", Profile(has_destinations=hosts)),
                self._kind(FunctionTarget, "function:work", Profile(capacity=processes, shares_workers=True)),
                OutsideKind(receiver.outside, clock, lambda: self.node()),
            ]
        )

    def _kind(self, spec: type[Any], capability: str, profile: Profile) -> Kind:
        if self.manner == "coroutine":
            return AwaitedKind(self, spec, capability, profile)
        return SimulatedKind(self, spec, capability, profile)

    async def send(self, call: Call) -> Outcome | Ended:
        if self.exhausted():
            return NOT_BEGUN
        answer: Answer = self.receiver.loop.create_future()
        self.leave(call, answer)
        return self.read(call, await answer, self.clock.monotonic())

    def read(self, call: Call, reply: Reply, now: float) -> Outcome:
        """As webhooks do: what a date is worth, only who has read it knows."""
        if reply.retry_after is None:
            return reply.outcome
        wait = retry_after_ms(reply.retry_after, call.time_at(now))
        return msgspec.structs.replace(reply.outcome, retry_after_ms=wait)

    def leave(self, call: Call, answer: Answer) -> None:
        receiver = self.receiver
        delay = receiver.rng.uniform(0.0001, 0.005)
        sent = call.time_at(self.clock.monotonic())
        receiver.loop.outside_later(delay, receiver.arrive, call, self.place.name, self.node(), sent, answer)


class AwaitedKind(CoroutineKind):
    def __init__(self, sender: Sender, spec: type[Any], capability: str, profile: Profile) -> None:
        self.spec = spec
        self.profile = profile
        self._sender = sender
        self._capability = capability

    def capabilities(self) -> list[str]:
        return [self._capability]

    def destination(self, target: Any) -> str | None:
        return host_of(target)

    async def send(self, call: Call) -> Outcome | Ended:
        return await self._sender.send(call)


class SimulatedKind(Kind):
    def __init__(self, sender: Sender, spec: type[Any], capability: str, profile: Profile) -> None:
        self.spec = spec
        self.profile = profile
        self._sender = sender
        self._capability = capability

    def capabilities(self) -> list[str]:
        return [self._capability]

    def destination(self, target: Any) -> str | None:
        return host_of(target)

    def keeps_time(self, target: Any) -> bool:
        return self._sender.manner == "early"

    def start(self, call: Call, at: float, done: Done) -> Handle:
        sender, loop, rng = self._sender, self._sender.receiver.loop, self._sender.receiver.rng
        wait = at - sender.clock.monotonic()
        started = SimulatedCall(sender, call, done, rng.uniform(0, TOLD_WITHIN) if wait > 0 else 0.0)
        if wait > 0:
            loop.call_later(wait, started.begin)
        elif rng.random() < WAITING:
            loop.call_later(rng.uniform(0.001, 0.05), started.begin)
        elif sender.exhausted():
            loop.call_soon(started.begin)  # nobody is told before this returns
        else:
            started.begin()
        return started


class SimulatedCall:
    """A call that was started, and what becomes of it in the process. Its answer may lie there for a moment."""

    def __init__(self, sender: Sender, call: Call, done: Done, told_after: float) -> None:
        self._sender = sender
        self._call = call
        self._done: Done | None = done
        self._told_after = told_after
        self._began: float | None = None
        self._ended: float | None = None
        self._answer: Answer = sender.receiver.loop.create_future()
        self._answer.add_done_callback(self._answered)

    def begin(self) -> None:
        if self._done is None:
            return
        if self._call.may_begin() and not self._sender.exhausted():
            self._began = self._sender.clock.monotonic()
            if not self._told_after:
                self._call.begun(self._began)
            self._sender.leave(self._call, self._answer)
        else:
            self._sender.receiver.loop.call_soon(self._tell)

    def stop(self, cause: Cause) -> Stop:
        if self._done is None:
            return Stop.ENDED
        if self._began is None:
            self._done = None
            return Stop.NOT_BEGUN
        if self._answer.done():
            self._tell()
            return Stop.ENDED
        if cause == "recalled":
            return Stop.STOPPING
        first, self._call.stopped = self._call.stopped is None, cause
        rng = self._sender.receiver.rng
        if not first or (cause != "timeout" and rng.random() < SLOW_TO_STOP):
            if first:
                self._sender.receiver.loop.call_later(rng.uniform(0.0, 0.5), self._tell)
            return Stop.STOPPING
        self._tell()
        return Stop.ENDED

    def recorded(self) -> None:
        """Nothing is left of it."""

    def _answered(self, answer: Answer) -> None:
        if not answer.cancelled():
            self._ended = self._sender.clock.monotonic()
            if self._told_after:
                answer.get_loop().call_later(self._told_after, self._tell)
            else:
                self._tell()

    def _tell(self) -> None:
        done, self._done = self._done, None
        if done is not None:
            outcome = None
            if self._answer.done() and self._call.stopped is None:
                ended = self._sender.clock.monotonic() if self._ended is None else self._ended
                outcome = self._sender.read(self._call, self._answer.result(), ended)
            done(Ended(outcome, self._began, self._ended))
