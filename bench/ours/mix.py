"""The API under a mix of 80 % reads, at a given rate and at the highest that holds p99 under 50 ms.

Requests are sent when their time has come, whether or not the earlier ones were answered, and a latency counts from
that time: a client that waits for its server would hide the worst moments.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import Any, Protocol

from bench.contest import Cost, cpu_seconds, quantiles
from bench.ours.crowd import crowd
from bench.ours.serving import Server, serving
from bench.ours.wire import Wire, request, wired

__all__ = ["CONNECTIONS", "Asking", "Step", "following", "mix", "play_step"]

REQUIRED = 100
HOLDS_MS = 50.0
CONNECTIONS = 32
KEEPS_UP = 0.97
BODY = {"schedule": {"in": "1d"}, "target": {"type": "webhook", "url": "http://127.0.0.1:9/", "body": {"a": 1}}}


class Asking(Protocol):
    def next(self) -> tuple[str, bytes]:
        """The kind of the next request, and the request."""


class Questions:
    """What the next request is. Reads 80: a job 45, by key 5, lists 20, runs 10. Writes 20: create 12, change 8."""

    def __init__(self, ids: range, rng: random.Random) -> None:
        self._ids, self._rng = ids, rng
        self._pages = [
            request("GET", f"/v1/jobs?{query}limit=50")
            for query in ("", "status=active&", "tag=team-1&", "q=report 12&")
        ]
        self._pages = [page.replace(b"report 12", b"report%2012") for page in self._pages]
        self._runs = request("GET", "/v1/runs?limit=50")
        self._create = request("POST", "/v1/jobs", BODY)

    def next(self) -> tuple[str, bytes]:
        raw = self._next()
        return raw.partition(b" ")[0].decode(), raw

    def _next(self) -> bytes:
        dice, job = self._rng.randrange(100), self._rng.choice(self._ids)
        if dice < 45:
            return request("GET", f"/v1/jobs/{job}")
        if dice < 50:
            return request("GET", f"/v1/jobs/by-key/job-{job:09d}")
        if dice < 70:
            return self._rng.choice(self._pages)
        if dice < 75:
            return self._runs
        if dice < 80:
            return request("GET", f"/v1/jobs/{job}/runs?limit=50")
        if dice < 92:
            return self._create
        name = {"name": f"Renamed {self._rng.randrange(10**6)}"}
        return request("PATCH", f"/v1/jobs/{job}", name, "application/merge-patch+json")


@dataclass
class Step:
    """One rate for some seconds."""

    rate: int
    seconds: float
    late_ms: list[float] = field(default_factory=list)
    by_kind: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)  # by kind
    took: float = 0.0
    server: dict[str, float] = field(default_factory=dict)
    own_busy: float = 0.0

    @property
    def answered(self) -> float:
        return len(self.late_ms) / self.took if self.took else 0.0

    @property
    def figures(self) -> dict[str, float]:
        return quantiles(self.late_ms)

    @property
    def holds(self) -> bool:
        enough = len(self.late_ms) >= int(self.rate * self.seconds) and self.answered >= KEEPS_UP * self.rate
        return enough and not self.errors and self.figures["p99"] < HOLDS_MS

    def row(self) -> list[object]:
        found = self.figures
        spent = [self.server["cpu_us_per_run"], self.server["db_cpu_us_per_run"]]
        percent = round(100 * self.own_busy)
        return [self.rate, self.answered, found.get("p50"), found.get("p99"), len(self.errors), *spent, percent]


async def mix(store: str, jobs: int, seconds: int, most: int, seed: int = 1) -> dict[str, Any]:
    ids = await crowd(store, jobs)
    async with serving(store) as server:
        wires = [await wired(server.port) for _ in range(CONNECTIONS)]
        questions = Questions(ids, random.Random(seed))
        await play_step(wires, questions, server, REQUIRED, 1)  # statements get prepared, caches filled
        steps = [await play_step(wires, questions, server, REQUIRED, seconds)]
        good, bad = (REQUIRED, None) if steps[0].holds else (0, REQUIRED)
        rate: int | None = 2 * REQUIRED
        while good and rate is not None and rate <= most:
            steps.append(await play_step(wires, questions, server, rate, seconds))
            good, bad = (rate, bad) if steps[-1].holds else (good, rate)
            rate = following(good, bad)
    head = [
        "asked/s",
        "answered/s",
        "p50 ms",
        "p99 ms",
        "errors",
        "server's CPU µs",
        "database's CPU µs",
        "client busy %",
    ]
    required = steps[0]
    return {
        "rate": good,
        "at_100_ms": required.figures,
        "errors": [error for step in steps for error in step.errors][:20],
        **required.server,
        "table": {"head": head, "rows": [step.row() for step in sorted(steps, key=lambda step: step.rate)]},
    }


def following(good: int, bad: int | None) -> int | None:
    """Twice as much until it is too much, then the middle, until that is within a tenth."""
    if bad is None:
        return 2 * good
    return (good + bad) // 2 if bad - good > good / 10 else None


async def play_step(wires: list[Wire], questions: Asking, server: Server, rate: int, seconds: float) -> Step:
    step = Step(rate, seconds)
    # The longest idle goes first: the server hangs up on who says nothing for some seconds.
    free, waiting = deque(wires), deque[tuple[float, str, bytes]]()
    total, answered = int(rate * seconds), asyncio.Event()
    cost, own, began = Cost(server.pid), cpu_seconds(), time.perf_counter()

    def send(wire: Wire, intended: float, kind: str, raw: bytes) -> None:
        def done(status: int, body: bytes) -> None:
            took = (time.perf_counter() - intended) * 1000
            step.late_ms.append(took)
            step.by_kind[kind].append(took)
            if status >= 400:
                step.failed[kind] += 1
                asked = raw.split(b"\r\n", 1)[0].decode()
                step.errors.append(f"{asked}: {status} {body[:300].decode(errors='replace')}")
            if waiting:
                send(wire, *waiting.popleft())
            else:
                free.append(wire)
            if len(step.late_ms) == total:
                answered.set()

        wire.send(raw, done)

    async def sending() -> None:
        for number in range(total):
            intended = began + number / rate
            if (ahead := intended - time.perf_counter()) > 0:
                await asyncio.sleep(ahead)
            elif number % 20 == 0:
                await asyncio.sleep(0)  # behind: let the answers in
            if free:
                send(free.popleft(), intended, *questions.next())
            else:
                waiting.append((intended, *questions.next()))
        await answered.wait()

    try:
        async with asyncio.timeout(2 * seconds + 10):
            await sending()
    except TimeoutError:
        waiting.clear()  # it does not hold; those on their way are waited for, so that the next step starts clean
        async with asyncio.timeout(60):
            while len(free) < len(wires):
                await asyncio.sleep(0.05)
    step.took = time.perf_counter() - began
    step.server = cost.per_run(max(1, len(step.late_ms)))
    step.own_busy = (cpu_seconds() - own) / step.took
    return step
