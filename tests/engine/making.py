"""Runs, specs and senders that tests are made of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.policy import Policy
from onthedot.model.run import Attempt, ClaimedRun, Outcome
from onthedot.model.schedule import Schedule
from onthedot.model.targets import CommandTarget, FunctionTarget, Target, WebhookTarget
from onthedot.targets import Call
from onthedot.targets.contract import HandOver, Timekeeper

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


class FakeSender:
    """Notes every call; answers at once, or when the test lets it."""

    def __init__(self, *offers: str, now: Callable[[], int] | None = None) -> None:
        self.offers = list(offers or ("webhook", "function:reports", "command:backup"))
        self.direct: dict[str, HandOver] = {}
        self.timekeepers: dict[str, Timekeeper] = {}
        self.calls: list[Call] = []
        self.sent_at: list[int] = []
        self.outcomes: list[Outcome] = []  # what comes next; then `ok`
        self.says: list[str] = []
        self.hold: asyncio.Event | None = None
        self.cancelled: list[str] = []
        self._now = now

    @property
    def sent(self) -> list[str]:
        return [call.run_id for call in self.calls]

    async def send(self, call: Call) -> Outcome:
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
