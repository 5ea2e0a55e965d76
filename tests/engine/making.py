"""Runs, specs and senders that tests are made of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from onthedot.engine.running.monitor import NODE_STOPPED, Monitor
from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.policy import Policy
from onthedot.model.run import Attempt, ClaimedRun, Outcome
from onthedot.model.schedule import Schedule
from onthedot.model.targets import CommandTarget, FunctionTarget, Target, WebhookTarget
from onthedot.plan import stopped_by
from onthedot.targets import Call, Kind, Targets, from_coroutine
from onthedot.targets.contract import Cause, Done, Ended, Handle, Profile, Stop

OK = Outcome(kind="ok")
FAILED = Outcome(kind="error", retryable=True, error="HTTP 500")
HOOK = WebhookTarget(url="http://example.com/hook")
FUNCTION = FunctionTarget(function="reports:nightly")
COMMAND = CommandTarget(command="backup")


def spec(target: Target = HOOK, *, key: str | None = None, schedule: Schedule | None = None, **policy: Any) -> JobSpec:
    return JobSpec(key=key, schedule=schedule or Schedule(in_=Duration(1000)), target=target, policy=Policy(**policy))


def claimed(
    run_id: str = "1-1000",
    *,
    due_at: int = 1000,
    token: int = 1,
    target: Target = HOOK,
    key: str | None = None,
    tries: int = 0,
    losses: int = 0,
    recurring: bool = False,
    attempts: list[Attempt] | None = None,
    **policy: Any,
) -> ClaimedRun:
    return ClaimedRun(
        id=run_id,
        tenant=1,
        job_id=int(run_id.partition("-")[0]),
        version=1,
        spec=spec(target, key=key, **policy),
        kind="scheduled",
        slot=due_at,
        due_at=due_at,
        token=token,
        tries=tries,
        losses=losses,
        first_claimed_at=due_at,
        recurring=recurring,
        attempts=attempts or [],
    )


BECAUSE = {
    "cancelled": stopped_by(None),
    "interrupted": NODE_STOPPED,
    "timeout": Outcome(kind="timeout", retryable=True, error="timed out"),
}
"""What comes of a run that is stopped, by cause."""


def stop(monitor: Monitor, cause: Cause) -> None:
    monitor.stop(cause, BECAUSE.get(cause))


class FakeSender:
    """Notes every call; answers at once, or when the test lets it. One coroutine for all kinds of targets."""

    def __init__(
        self, *capabilities: str, now: Callable[[], int] | None = None, processes: int = 4, at_most: int | None = None
    ) -> None:
        self.capabilities = list(capabilities or ("webhook", "function:reports", "command:backup"))
        self.targets = Targets(
            [
                self._kind(WebhookTarget, "webhook", Profile(at_most=at_most)),
                self._kind(FunctionTarget, "function", Profile(capacity=processes)),
                self._kind(CommandTarget, "command", Profile(capacity=processes)),
            ]
        )
        self.calls: list[Call] = []
        self.sent_at: list[int] = []
        self.outcomes: list[Outcome] = []  # what comes next; then `ok`
        self.says: list[str] = []
        self.hold: asyncio.Event | None = None
        self.cancelled: list[str] = []
        self._now = now

    def _kind(self, spec: type[Any], name: str, profile: Profile) -> Kind:
        async def send(call: Call) -> Outcome | Ended:
            return await self.send(call)  # looked up now: a test may have put another one there

        def capabilities() -> list[str]:
            return [capability for capability in self.capabilities if capability.partition(":")[0] == name]

        return from_coroutine(send, spec=spec, capabilities=capabilities, profile=profile)

    def use(self, kind: Kind) -> None:
        """Another kind for its targets."""
        self.targets._kinds[kind.spec] = self.targets._by_name[kind.tag] = kind

    @property
    def sent(self) -> list[str]:
        return [call.run_id for call in self.calls]

    async def send(self, call: Call) -> Outcome | Ended:
        self.calls.append(call)
        if self._now is not None:
            self.sent_at.append(self._now())
        for text in self.says:
            call.log(text)
        if self.hold is not None:
            try:
                await self.hold.wait()
            except asyncio.CancelledError:
                self.cancelled.append(call.run_id)
                raise
        return self.outcomes.pop(0) if self.outcomes else OK


class Started:
    """One call at a desk: the test says when it begins and ends, and when that is told."""

    def __init__(self, desk: Desk, call: Call, at: float, done: Done) -> None:
        self.call, self.at = call, at
        self.began: float | None = None
        self.ended: float | None = None
        self.stops: list[Cause] = []
        self.withdrawn = self.recorded_once = False
        self._desk = desk
        self._outcome: Outcome | None = None
        self._done: Done | None = done

    def begin(self, at: float | None = None, *, told: bool = True) -> None:
        assert not self.withdrawn
        self.began = self.at if at is None else at
        if told:
            self.call.begun(self.began)

    def end(self, outcome: Outcome = OK, at: float | None = None) -> None:
        """It is over; nobody is told yet."""
        self._outcome, self.ended = outcome, at

    def tell(self, outcome: Outcome | None = None) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(Ended(outcome or self._outcome, self.began, self.ended))

    @property
    def stopped(self) -> bool:
        return self.call.stopped is not None

    def stop(self, cause: Cause) -> Stop:
        self.stops.append(cause)
        if self._done is None or self._outcome is not None:
            self.tell()
            return Stop.ENDED
        if self.began is None:
            self.withdrawn, self._done = True, None
            return Stop.NOT_BEGUN
        if cause == "recalled":
            return Stop.STOPPING
        self.call.stopped = cause
        if self._desk.stops_at_once:
            self.tell()
            return Stop.ENDED
        return Stop.STOPPING

    def recorded(self) -> None:
        self.recorded_once = True


class Desk(Kind):
    """A kind where calls do what the test says. `begins`: right away, as a webhook on a kept connection."""

    def __init__(
        self,
        sender: FakeSender,
        spec: type[Any] = WebhookTarget,
        *,
        begins: bool = False,
        stops_at_once: bool = True,
        keeps_time: Callable[[Any], bool] = lambda target: False,
        profile: Profile | None = None,
    ) -> None:
        self.spec = spec
        self.profile = profile or sender.targets._kinds[spec].profile
        self.calls: list[Started] = []
        self.stops_at_once = stops_at_once
        self.makes = Started
        self._begins = begins
        self._keeps_time = keeps_time
        self._capabilities = sender.targets._kinds[spec].capabilities
        sender.use(self)

    def capabilities(self) -> list[str]:
        return self._capabilities()

    def keeps_time(self, target: Any) -> bool:
        return self._keeps_time(target)

    def start(self, call: Call, at: float, done: Done) -> Handle:
        started = self.makes(self, call, at, done)
        self.calls.append(started)
        if self._begins:
            started.begin()
        return started

    @property
    def names(self) -> list[str]:
        return [started.call.run_id for started in self.calls]
