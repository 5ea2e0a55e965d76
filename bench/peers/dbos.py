"""DBOS on PostgreSQL: a queue of workflows."""

from __future__ import annotations

import threading
import time
from typing import Any

from dbos import DBOS

from bench.contest import Cost, Tally, play

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
    cost = Cost()
    for _ in range(n):
        queue.enqueue(noop)
    executed.wait(600)
    spent = cost.per_run(n)
    DBOS.destroy()
    return {"rate": tally.rate(), **spent}


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
