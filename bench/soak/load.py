"""The jobs of a soak, and what each of them owes.

Half of the firings are those of recurring jobs, half are one-off jobs that are created all the time over HTTP, some
seconds before they are due. One in ten is at-most-once. Two recurring jobs fail half of the time.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from datetime import UTC, datetime
from typing import Any

from bench.ours.wire import Wire, request, wired
from bench.soak.calls import Duty

__all__ = ["AHEAD_MS", "FLAKY", "Load"]

AHEAD_MS = 4000
FLAKY = 2
TENTH = 10
ANSWER_WITHIN = 30.0
AGAIN_AFTER = 0.5


class Load:
    """`due`: by the id of the job, of all jobs whose creation was acknowledged. `refused`: answers that asked to try
    again, which happens while the database is away."""

    def __init__(self, port: int, hooks: str, began: int, seconds: int, rate: int) -> None:
        self._port, self._hooks = port, hooks
        self._began, self._seconds = began, seconds
        self._recurring, self._arriving = rate // 2, rate - rate // 2
        self._wire: Wire | None = None
        self.due: dict[int, Duty] = {}
        self.refused = 0

    async def recurring(self) -> None:
        """One firing a second each, spread evenly over the second. Every slot counts, also those of an outage."""
        firsts = [self._began + n * 1000 // self._recurring for n in range(self._recurring)]
        jobs = []
        for n, first in enumerate(firsts):
            policy = {**_policy(at_most_once=_rare(n)), "catch_up": "all", "catch_up_limit": 1000}
            schedule = {"every": "1s", "start": _instant(first), "count": self._seconds}
            jobs.append(self._job(schedule, policy, flaky=n < FLAKY))
        for n, job in enumerate(await self._create(jobs)):
            self.due[job] = Duty(_rare(n), firsts[n], count=self._seconds)

    async def arrivals(self) -> None:
        """Each second the one-off jobs of a second that is to come; after an outage those of all its seconds."""
        ins = [AHEAD_MS + n * 1000 // self._arriving for n in range(self._arriving)]
        for second in range(self._seconds):
            await asyncio.sleep(self._began / 1000 + second - AHEAD_MS / 1000 - time.time())
            jobs = [self._job({"in": f"{ms}ms"}, _policy(at_most_once=_rare(n))) for n, ms in enumerate(ins)]
            for n, job in enumerate(await self._create(jobs)):
                self.due[job] = Duty(_rare(n))

    def _job(self, schedule: dict[str, Any], policy: dict[str, Any], *, flaky: bool = False) -> dict[str, Any]:
        target = {"type": "webhook", "url": self._hooks + ("flaky" if flaky else "ok"), "body": {"a": 1}}
        return {"schedule": schedule, "target": target, "policy": policy}

    async def _create(self, jobs: list[dict[str, Any]]) -> list[int]:
        """Their ids. Asked again with the same key until it is answered, as docs/operations.md tells clients to."""
        raw = request("POST", "/v1/jobs/batch", jobs, more=f"idempotency-key: {uuid.uuid4()}\r\n")
        while (answers := await self._answer(raw)) is None:
            self.refused += 1
            await asyncio.sleep(AGAIN_AFTER)
        for answer in answers:
            if answer["status"] != 201:
                raise RuntimeError(f"not created: {answer}")
        return [answer["id"] for answer in answers]

    async def _answer(self, raw: bytes) -> list[dict[str, Any]] | None:
        try:
            if self._wire is None or self._wire.transport.is_closing():
                self._wire = await wired(self._port)
            async with asyncio.timeout(ANSWER_WITHIN):
                status, body = await self._wire.ask(raw)
        except (OSError, TimeoutError):
            self._hang_up()
            return None
        if status >= 500:
            if status == 599:
                self._hang_up()
            return None
        answers: list[dict[str, Any]] = Wire.read(status, body)
        if any(answer["status"] == 503 for answer in answers):  # the database went away between two portions of it
            return None
        return answers

    def _hang_up(self) -> None:
        if self._wire is not None:
            self._wire.transport.abort()
        self._wire = None


def _rare(n: int) -> bool:
    return n % TENTH == TENTH - 1


def _policy(*, at_most_once: bool) -> dict[str, Any]:
    """One attempt: a call that comes twice is then never a retry by the policy. A busy machine gets its time."""
    delivery = "at_most_once" if at_most_once else "at_least_once"
    return {"delivery": delivery, "retry": {"attempts": 1}, "timeout": "30s"}


def _instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
