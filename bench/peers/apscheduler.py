"""APScheduler 3 with its SQLAlchemy job store on PostgreSQL: asyncio scheduler and executor, no grace limit."""

from __future__ import annotations

import asyncio
import logging
import pickle
import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from apscheduler.executors.asyncio import AsyncIOExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.date import DateTrigger

from bench.contest import Cost, Tally, in_time, play, quantiles

SETTINGS = "AsyncIOScheduler and executor, uvloop, misfire_grace_time none, SQLAlchemy job store (psycopg2)"
CHUNK = 1000
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


def _seed(scheduler: AsyncIOScheduler, store: str, dues: list[float], *, tell: bool = False) -> None:
    """Rows as its own job store writes them, many at once: adding them one by one is not what is measured."""
    if store == "memory":
        for due in dues:
            _add(scheduler, due, *((due * 1000,) if tell else ()))
        return
    pattern = scheduler.add_job(noop, "date", run_date=datetime.fromtimestamp(time.time() + 86_400, UTC))
    kept = scheduler._lookup_jobstore("default")
    state = pattern.__getstate__()
    rows = []
    for due in dues:
        at = datetime.fromtimestamp(due, UTC)
        mine = {"id": uuid.uuid4().hex, "trigger": DateTrigger(at, UTC), "next_run_time": at}
        args = (due * 1000,) if tell else ()
        pickled = pickle.dumps({**state, **mine, "args": args}, kept.pickle_protocol)
        rows.append({"id": mine["id"], "next_run_time": due, "job_state": pickled})
    with kept.engine.begin() as connection:
        for start in range(0, len(rows), CHUNK):
            connection.execute(kept.jobs_t.insert(), rows[start : start + CHUNK])
    pattern.remove()


async def drain(store: str, n: int, pending: int = 0) -> dict[str, Any]:
    """Jobs are deleted before they run, so executed is recorded; the deleting is what takes time, so it counts."""
    global _tally
    executed = asyncio.Event()
    _tally = Tally(n, executed.set)
    scheduler = _scheduler(store)
    scheduler.start(paused=True)
    _seed(scheduler, store, [time.time() + 86_400] * pending)
    _seed(scheduler, store, [time.time() + 0.001] * n)
    cost, began = Cost(), time.perf_counter()
    scheduler.resume()
    await executed.wait()
    spent = cost.per_run(n)
    scheduler.shutdown(wait=False)
    return {"rate": n / (_tally.last - began), **spent}


async def lateness(store: str, rate: int, seconds: int, at_once: bool = False, lead: float = 1.0) -> dict[str, Any]:
    global _tally
    n = rate * seconds
    executed = asyncio.Event()
    _tally = Tally(n, executed.set)
    scheduler = _scheduler(store)
    scheduler.start(paused=True)
    base = time.time() + lead * (2.5 + n / 2000)
    _seed(scheduler, store, [base if at_once else base + i / rate for i in range(n)], tell=True)
    in_time(base, 1)
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
