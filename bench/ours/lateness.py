"""How late functions start, seen from inside the function, and what a firing costs in CPU."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

from bench.contest import Cost, Tally, in_time, quantiles
from bench.ours.parts import callables, create, opened, running, spec
from bench.ours.seeding import analyze

__all__ = ["lateness"]


async def lateness(store: str, rate: int, seconds: int, at_once: bool = False, lead: float = 1.0) -> dict[str, Any]:
    """`rate` one-off jobs per second, spread evenly; `at_once`: all at the same instant. `lead`: time to store them."""
    n = rate * seconds
    executed = asyncio.Event()
    loop = asyncio.get_running_loop()
    tally = Tally(n, lambda: loop.call_soon_threadsafe(executed.set))

    async def note(due_ms: float) -> None:
        tally.hit(due_ms)

    targets = callables(note=note)
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


def _instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
