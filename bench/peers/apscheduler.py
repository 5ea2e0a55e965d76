"""APScheduler 3 with its SQLAlchemy job store on PostgreSQL: asyncio scheduler and executor, no grace limit."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from apscheduler.executors.asyncio import AsyncIOExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from bench.contest import Cost, Tally, play, quantiles

SETTINGS = "AsyncIOScheduler and executor, uvloop, misfire_grace_time none, job store without pickled extras"
logging.disable(logging.CRITICAL)
_tally: Tally


async def noop(due_ms: float | None = None) -> None:
    _tally.hit(due_ms)


def _scheduler(store: str) -> AsyncIOScheduler:
    url = store.replace("postgresql://", "postgresql+psycopg2://")
    jobs = MemoryJobStore() if store == "memory" else SQLAlchemyJobStore(url=url)
    return AsyncIOScheduler(
        jobstores={"default": jobs},
        executors={"default": AsyncIOExecutor()},
        job_defaults={"misfire_grace_time": None},
        timezone=UTC,
    )


def _add(scheduler: AsyncIOScheduler, due: float, *args: Any) -> None:
    scheduler.add_job(noop, "date", run_date=datetime.fromtimestamp(due, UTC), args=args)


async def drain(store: str, n: int, pending: int = 0) -> dict[str, Any]:
    """Jobs are deleted before they run, so executed is recorded; the deleting is what takes time, so it counts."""
    global _tally
    executed = asyncio.Event()
    _tally = Tally(n, executed.set)
    scheduler = _scheduler(store)
    scheduler.start(paused=True)
    for _ in range(pending):
        _add(scheduler, time.time() + 86_400)
    due = time.time() + 0.001
    for _ in range(n):
        _add(scheduler, due)
    cost, began = Cost(), time.perf_counter()
    scheduler.resume()
    await executed.wait()
    spent = cost.per_run(n)
    scheduler.shutdown(wait=False)
    return {"rate": n / (_tally.last - began), **spent}


async def lateness(store: str, rate: int, seconds: int, at_once: bool = False) -> dict[str, Any]:
    global _tally
    n = rate * seconds
    executed = asyncio.Event()
    _tally = Tally(n, executed.set)
    scheduler = _scheduler(store)
    scheduler.start(paused=True)
    started = time.perf_counter()
    _add(scheduler, time.time() + 86_400)
    one = time.perf_counter() - started
    base = time.time() + 3 + n * max(one, 0.004)
    for i in range(n):
        due = base if at_once else base + i / rate
        _add(scheduler, due, due * 1000)
    if time.time() > base:
        raise RuntimeError("the machine was too slow to add the jobs in time")
    scheduler.resume()
    await asyncio.sleep(base - time.time())
    cost = Cost()
    await executed.wait()
    spent = cost.per_run(n)
    scheduler.shutdown(wait=False)
    return {"late_ms": quantiles(_tally.late_ms), **spent}


async def create_one(store: str, n: int) -> dict[str, Any]:
    scheduler = _scheduler(store)
    scheduler.start(paused=True)
    due = (datetime.now(UTC) + timedelta(days=1)).timestamp()
    began = time.perf_counter()
    for _ in range(n):
        _add(scheduler, due)
    took = time.perf_counter() - began
    scheduler.shutdown(wait=False)
    return {"rate": n / took}


if __name__ == "__main__":
    import bench.peers.apscheduler as me  # jobs are stored by the name of their function: `__main__` has none

    play({"drain": me.drain, "lateness": me.lateness, "create_one": me.create_one})
