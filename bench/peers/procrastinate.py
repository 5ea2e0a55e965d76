"""procrastinate on PostgreSQL through psycopg's pool."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from typing import Any

import procrastinate

from bench.contest import Cost, Tally, in_time, play, quantiles

SETTINGS = "concurrency 20, polling every 0.1 s and LISTEN, finished jobs kept (its default), asyncio"
logging.disable(logging.CRITICAL)
CHUNK = 1000


async def _app(store: str) -> procrastinate.App:
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=store, min_size=4, max_size=24))
    await app.open_async()
    await app.schema_manager.apply_schema_async()
    return app


def _task(app: procrastinate.App, tally: Tally) -> Any:
    @app.task(name="noop")
    async def noop(due_ms: float | None = None) -> None:
        tally.hit(due_ms)

    return noop


async def _add(task: Any, dues: list[float], *, tell: bool = False) -> None:
    for start in range(0, len(dues), CHUNK):
        for due, amount in _grouped(dues[start : start + CHUNK]):
            deferrer = task.configure(schedule_at=datetime.fromtimestamp(due, UTC))
            await deferrer.batch_defer_async(*({"due_ms": due * 1000} if tell else {} for _ in range(amount)))


def _grouped(dues: list[float]) -> list[tuple[float, int]]:
    groups: dict[float, int] = {}
    for due in dues:
        groups[due] = groups.get(due, 0) + 1
    return list(groups.items())


async def _run(app: procrastinate.App, executed: asyncio.Event) -> None:
    worker = asyncio.ensure_future(
        app.run_worker_async(
            concurrency=20,
            fetch_job_polling_interval=0.1,
            install_signal_handlers=False,
            delete_jobs="never",
        )
    )
    await asyncio.wait((worker, asyncio.ensure_future(executed.wait())), return_when=asyncio.FIRST_COMPLETED)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def drain(store: str, n: int, pending: int = 0) -> dict[str, Any]:
    app = await _app(store)
    executed = asyncio.Event()
    tally = Tally(n, executed.set)
    task = _task(app, tally)
    await _add(task, [time.time() + 86_400] * pending)
    await _add(task, [time.time() - 1] * n)
    cost = Cost()
    await _run(app, executed)
    spent = cost.per_run(n)
    await app.close_async()
    return {"rate": tally.rate(), **spent}


async def lateness(store: str, rate: int, seconds: int, lead: float = 1.0) -> dict[str, Any]:
    app = await _app(store)
    n = rate * seconds
    executed = asyncio.Event()
    tally = Tally(n, executed.set)
    task = _task(app, tally)
    base = time.time() + lead * (6 + n / 100)
    await _add(task, [base + i / rate for i in range(n)], tell=True)
    in_time(base, 3)
    await _run(app, executed)
    await app.close_async()
    return {"late_ms": quantiles(tally.late_ms)}


async def create_one(store: str, n: int) -> dict[str, Any]:
    app = await _app(store)
    task = _task(app, Tally(1))
    due = datetime.fromtimestamp(time.time() + 86_400, UTC)
    began = time.perf_counter()
    for _ in range(n):
        await task.configure(schedule_at=due).defer_async()
    took = time.perf_counter() - began
    await app.close_async()
    return {"rate": n / took}


async def create_bulk(store: str, n: int) -> dict[str, Any]:
    app = await _app(store)
    task = _task(app, Tally(1))
    began = time.perf_counter()
    await _add(task, [began + 10**9] * n)
    took = time.perf_counter() - began
    await app.close_async()
    return {"rate": n / took}


if __name__ == "__main__":
    play({"drain": drain, "lateness": lateness, "create_one": create_one, "create_bulk": create_bulk})
