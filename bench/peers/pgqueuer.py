"""PgQueuer on PostgreSQL, one worker process, uvloop."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import timedelta
from typing import Any

import asyncpg
from pgqueuer.core.qm import QueueManager
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.contest import Cost, Tally, in_time, play, quantiles

SETTINGS = "batch_size as given (1000 drains fastest, 100 is least late), uvloop, durability as installed"
CHUNK = 5000


async def _installed(store: str) -> tuple[asyncpg.Connection, Queries]:
    connection = await asyncpg.connect(store)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    return connection, queries


async def _enqueue(queries: Queries, payloads: list[bytes | None], delays: list[timedelta | None]) -> None:
    for start in range(0, len(payloads), CHUNK):
        chunk = payloads[start : start + CHUNK]
        size = len(chunk)
        await queries.enqueue(["noop"] * size, list(chunk), [0] * size, delays[start : start + CHUNK])


async def _until_recorded(connection: asyncpg.Connection) -> float:
    while await connection.fetchval("SELECT count(*) FROM pgqueuer WHERE execute_after <= now()"):
        await asyncio.sleep(0.005)
    return time.perf_counter()


async def _work(store: str, tally: Tally, done: asyncio.Event, batch: int, perform: Any = None) -> asyncio.Task[None]:
    connection = await asyncpg.connect(store)
    manager = QueueManager(Queries(AsyncpgDriver(connection)))

    if perform is None:

        @manager.entrypoint("noop")
        async def noop(job: Job) -> None:
            tally.hit(float(job.payload) if job.payload else None)
    else:

        @manager.entrypoint("noop")
        async def call(job: Job) -> None:
            tally.begin()
            await perform(job)
            tally.hit()

    async def run() -> None:
        running = asyncio.ensure_future(manager.run(batch_size=batch, dequeue_timeout=timedelta(seconds=1)))
        await asyncio.wait((running, asyncio.ensure_future(done.wait())), return_when=asyncio.FIRST_COMPLETED)
        manager.shutdown.set()
        await running
        await connection.close()

    return asyncio.ensure_future(run())


async def drain(store: str, n: int, pending: int = 0, batch: int = 1000, perform: Any = None) -> dict[str, Any]:
    connection, queries = await _installed(store)
    await _enqueue(queries, [None] * pending, [timedelta(days=1)] * pending)
    await _enqueue(queries, [None] * n, [None] * n)
    await connection.execute("ANALYZE")
    done, executed = asyncio.Event(), asyncio.Event()
    tally = Tally(n, executed.set)
    cost = Cost()
    worker = await _work(store, tally, done, batch, perform)
    await executed.wait()
    ended = await _until_recorded(connection)
    spent = cost.per_run(n)
    done.set()
    await worker
    return {"rate": tally.rate(ended), **spent}


async def drain_webhooks(store: str, n: int, echo: str, batch: int = 100) -> dict[str, Any]:
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def perform(job: Job) -> None:
            async with session.post(echo, json={"a": 1}, headers={"webhook-id": str(job.id)}) as answer:
                await answer.read()

        return await drain(store, n, batch=batch, perform=perform)


async def lateness(
    store: str, rate: int, seconds: int, batch: int = 100, at_once: bool = False, lead: float = 1.0
) -> dict[str, Any]:
    connection, queries = await _installed(store)
    n = rate * seconds
    base = time.time() + lead * (4 + n / 4000)
    dues = [base if at_once else base + i / rate for i in range(n)]
    now = time.time()
    payloads: list[bytes | None] = [str(due * 1000).encode() for due in dues]
    for start in range(0, n, CHUNK):
        now = await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())::float8")
        part = slice(start, start + CHUNK)
        await _enqueue(queries, payloads[part], [timedelta(seconds=due - now) for due in dues[part]])
    await connection.execute("ANALYZE")
    done, executed = asyncio.Event(), asyncio.Event()
    tally = Tally(n, executed.set)
    in_time(base, 2)
    worker = await _work(store, tally, done, batch)
    await asyncio.sleep(max(0.0, base - time.time()))
    cost = Cost()
    await executed.wait()
    spent = cost.per_run(n)
    done.set()
    await worker
    return {"late_ms": quantiles(tally.late_ms), **spent}


async def create_one(store: str, n: int) -> dict[str, Any]:
    _, queries = await _installed(store)
    began = time.perf_counter()
    for _ in range(n):
        await queries.enqueue("noop", json.dumps({"a": 1}).encode(), 0, timedelta(days=1))
    return {"rate": n / (time.perf_counter() - began)}


async def create_bulk(store: str, n: int) -> dict[str, Any]:
    _, queries = await _installed(store)
    began = time.perf_counter()
    await _enqueue(queries, [b'{"a": 1}'] * n, [timedelta(days=1)] * n)
    return {"rate": n / (time.perf_counter() - began)}


if __name__ == "__main__":
    play(
        {
            "drain": drain,
            "drain_webhooks": drain_webhooks,
            "lateness": lateness,
            "create_one": create_one,
            "create_bulk": create_bulk,
        }
    )
