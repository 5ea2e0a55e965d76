"""How late functions start, seen from inside the function, and what a firing costs in CPU."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

from bench.contest import Cost, Tally, in_time, quantiles
from bench.ours.parts import create, in_process, opened, running, spec
from bench.ours.seeding import analyze
from onthedot.clock import SystemClock

__all__ = ["bare_timer", "lateness"]

SPENT = 0.0003
"""Seconds of computing at each instant: about what a firing takes of a node at 1,000 a second."""


async def lateness(store: str, rate: int, seconds: int, at_once: bool = False, lead: float = 1.0) -> dict[str, Any]:
    """`rate` one-off jobs per second, spread evenly; `at_once`: all at the same instant. `lead`: time to store them."""
    n = rate * seconds
    executed = asyncio.Event()
    loop = asyncio.get_running_loop()
    tally = Tally(n, lambda: loop.call_soon_threadsafe(executed.set))

    async def note(due_ms: float) -> None:
        tally.hit(due_ms)

    targets = in_process(note=note)
    async with opened(store, targets) as (opened_store, service):
        base = int(time.time() + lead * (4 + n / 1500)) * 1000
        dues = [base if at_once else base + i * 1000 // rate for i in range(n)]
        target = {"type": "function", "function": "note"}
        await create(service, (spec({"at": _instant(due)}, target, params={"due_ms": due}) for due in dues))
        await analyze(store)
        in_time(base / 1000, 2.5)
        async with running(opened_store, targets):
            await asyncio.sleep(base / 1000 - time.time())
            cost = Cost()
            async with asyncio.timeout(seconds + 60):
                await executed.wait()
            return {"late_ms": quantiles(tally.late_ms), **cost.per_run(n)}


async def bare_timer(store: str, rate: int, seconds: int) -> dict[str, Any]:
    """How late this machine lets anybody be: a process that waits for each instant, notes it and computes for a while.
    No store, no jobs; what it misses was taken by others who share the machine."""
    n, began, late = rate * seconds, time.monotonic() + 0.5, list[float]()
    done = asyncio.Event()

    def expired() -> None:
        while len(late) < n and (due := began + len(late) / rate) <= (now := time.monotonic()):
            late.append((now - due) * 1000)
            while time.monotonic() < now + SPENT:
                pass
        if len(late) < n:
            timer.set(max(1e-6, began + len(late) / rate - time.monotonic()))
        else:
            done.set()

    timer = SystemClock().alarm(expired)
    timer.set(0.5)
    cost = Cost()
    try:
        async with asyncio.timeout(seconds + 60):
            await done.wait()
    finally:
        timer.close()
    return {"late_ms": quantiles(late), **cost.per_run(n)}


def _instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
