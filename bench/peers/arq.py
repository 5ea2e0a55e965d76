"""arq on Redis (append-only file, fsync always)."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func

from bench.contest import Cost, Tally, in_time, play, quantiles

SETTINGS = "max_jobs 100, poll_delay 0.01 s, results not kept, uvloop; Redis appendfsync always"
logging.disable(logging.CRITICAL)


async def _run(store: str, tally: Tally, executed: asyncio.Event) -> None:
    async def noop(context: Any, due_ms: float | None = None) -> None:
        tally.hit(due_ms)

    worker = Worker(
        functions=[func(noop, name="noop", keep_result=0)],
        redis_settings=RedisSettings.from_dsn(store),
        max_jobs=100,
        poll_delay=0.01,
        keep_result=0,
        handle_signals=False,
        log_results=False,
    )
    running = asyncio.ensure_future(worker.async_run())
    await asyncio.wait((running, asyncio.ensure_future(executed.wait())), return_when=asyncio.FIRST_COMPLETED)
    # It is left running: `play` ends the process once the figures are printed.


async def drain(store: str, n: int) -> dict[str, Any]:
    pool = await create_pool(RedisSettings.from_dsn(store))
    for start in range(0, n, 50):
        await asyncio.gather(*(pool.enqueue_job("noop") for _ in range(min(50, n - start))))
    executed = asyncio.Event()
    tally = Tally(n, executed.set)
    cost = Cost()
    await _run(store, tally, executed)
    spent = cost.per_run(n)
    return {"rate": tally.rate(), **spent}


async def lateness(store: str, rate: int, seconds: int, lead: float = 1.0) -> dict[str, Any]:
    pool = await create_pool(RedisSettings.from_dsn(store))
    n = rate * seconds
    base = time.time() + lead * (6 + n / 200)
    for i in range(n):
        due = base + i / rate
        await pool.enqueue_job("noop", due * 1000, _defer_until=datetime.fromtimestamp(due, UTC))
    in_time(base, 3)
    executed = asyncio.Event()
    tally = Tally(n, executed.set)
    await _run(store, tally, executed)
    return {"late_ms": quantiles(tally.late_ms)}


async def create_one(store: str, n: int) -> dict[str, Any]:
    pool = await create_pool(RedisSettings.from_dsn(store))
    due = datetime.fromtimestamp(time.time() + 86_400, UTC)
    began = time.perf_counter()
    for _ in range(n):
        await pool.enqueue_job("noop", _defer_until=due)
    return {"rate": n / (time.perf_counter() - began)}


if __name__ == "__main__":
    play({"drain": drain, "lateness": lateness, "create_one": create_one})
