"""DBOS on PostgreSQL: a queue of workflows."""

from __future__ import annotations

import threading
import time
from typing import Any

from dbos import DBOS

from bench.contest import Tally, cpu_seconds, play

SETTINGS = "database queue, worker_concurrency 50, polling every 0.1 s, log level ERROR"


def _launched(store: str) -> None:
    url = store.replace("postgresql://", "postgresql+psycopg://")
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "sys_db_pool_size": 20})


def drain(store: str, n: int) -> dict[str, Any]:
    _launched(store)
    executed = threading.Event()
    tally = Tally(n, executed.set)

    @DBOS.workflow()
    def noop() -> None:
        tally.hit()

    DBOS.launch()
    queue = DBOS.register_queue("bench", worker_concurrency=50, polling_interval_sec=0.1)
    cpu = cpu_seconds()
    for _ in range(n):
        queue.enqueue(noop)
    executed.wait(600)
    cpu = cpu_seconds() - cpu
    DBOS.destroy()
    return {"rate": tally.rate(), "cpu_us_per_run": cpu / n * 1e6}


def create_one(store: str, n: int) -> dict[str, Any]:
    _launched(store)

    @DBOS.workflow()
    def noop() -> None:
        """Not before the measurement is over."""

    DBOS.launch()
    queue = DBOS.register_queue("bench", worker_concurrency=1, polling_interval_sec=60)
    began = time.perf_counter()
    for _ in range(n):
        queue.enqueue(noop)
    took = time.perf_counter() - began
    DBOS.destroy()
    return {"rate": n / took}


if __name__ == "__main__":
    play({"drain": drain, "create_one": create_one})
