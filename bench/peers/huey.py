"""huey: thread consumer, on SQLite (WAL, fsync) or Redis."""

from __future__ import annotations

import logging
import threading
import time
from datetime import UTC, datetime
from typing import Any

from huey import RedisHuey, SqliteHuey
from huey.consumer import Consumer

from bench.contest import Cost, Tally, in_time, play, quantiles

SETTINGS = "4 threads, results off, fsync on (SQLite: synchronous FULL), scheduler interval 1 s (its least)"
logging.disable(logging.CRITICAL)
WORKERS = 4


def _huey(store: str) -> Any:
    if store.startswith("redis"):
        return RedisHuey("bench", url=store, results=False, utc=True)
    return SqliteHuey("bench", filename=store.removeprefix("sqlite:///"), fsync=True, results=False, utc=True)


def _consumer(huey: Any) -> Consumer:
    return Consumer(huey, workers=WORKERS, periodic=False, initial_delay=0.001, max_delay=0.05, scheduler_interval=1)


def drain(store: str, n: int) -> dict[str, Any]:
    huey, executed = _huey(store), threading.Event()
    tally = Tally(n, executed.set)

    @huey.task()
    def noop() -> None:
        tally.hit()

    for _ in range(n):
        noop()
    consumer = _consumer(huey)
    cost = Cost()
    consumer.start()
    executed.wait(600)
    spent = cost.per_run(n)
    consumer.stop()
    return {"rate": tally.rate(), **spent}


def lateness(store: str, rate: int, seconds: int, lead: float = 1.0) -> dict[str, Any]:
    n = rate * seconds
    huey, executed = _huey(store), threading.Event()
    tally = Tally(n, executed.set)

    @huey.task()
    def noop(due_ms: float) -> None:
        tally.hit(due_ms)

    base = time.time() + lead * (5 + n / 200)
    for i in range(n):
        due = base + i / rate
        noop.schedule(args=(due * 1000,), eta=datetime.fromtimestamp(due, UTC).replace(tzinfo=None))
    in_time(base, 2)
    consumer = _consumer(huey)
    consumer.start()
    executed.wait(600)
    consumer.stop()
    return {"late_ms": quantiles(tally.late_ms)}


def create_one(store: str, n: int) -> dict[str, Any]:
    huey = _huey(store)

    @huey.task()
    def noop() -> None:
        """Never run here."""

    eta = datetime.fromtimestamp(time.time() + 86_400, UTC).replace(tzinfo=None)
    began = time.perf_counter()
    for _ in range(n):
        noop.schedule(eta=eta)
    return {"rate": n / (time.perf_counter() - began)}


if __name__ == "__main__":
    play({"drain": drain, "lateness": lateness, "create_one": create_one})
