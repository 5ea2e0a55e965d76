"""Celery on Redis: prefork worker of one process, early acknowledgement, results off."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import Any

from celery import Celery

from bench.contest import in_time, play, quantiles

SETTINGS = "prefork, 1 process, prefetch multiplier 1000, early ack, results off; Redis appendfsync always"
logging.disable(logging.CRITICAL)

app = Celery("bench.peers.celery", broker=os.environ.get("BENCH_STORE", ""))
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=1000,
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    task_store_errors_even_if_ignored=False,
)
_times: list[tuple[float, float]] = []
_wanted = int(os.environ.get("BENCH_N", "0"))


@app.task(name="noop")
def noop(due_ms: float | None = None) -> None:
    """Runs in the worker's child, which prints when the first and the last came, and how late each was."""
    _times.append((time.perf_counter(), 0.0 if due_ms is None else time.time() * 1000 - due_ms))
    if len(_times) == _wanted:
        rate = _wanted / (_times[-1][0] - _times[0][0])
        sys.stderr.write(f"BENCH {rate} {[late for _, late in _times]}\n")
        sys.stderr.flush()


def _work(store: str, n: int) -> tuple[float, list[float]]:
    environ = {**os.environ, "BENCH_STORE": store, "BENCH_N": str(n)}
    command = [sys.executable, "-m", "celery", "-A", "bench.peers.celery", "-q", "worker", "-c", "1", "-P", "prefork"]
    command += ["--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "ERROR"]
    worker = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert worker.stderr is not None
    try:
        for line in worker.stderr:
            if line.startswith("BENCH "):
                _, rate, late = line.split(" ", 2)
                return float(rate), [float(number) for number in late.strip()[1:-1].split(", ")]
    finally:
        worker.send_signal(signal.SIGQUIT)
        worker.wait()
    raise RuntimeError("the worker ended early")


def drain(store: str, n: int) -> dict[str, Any]:
    app.conf.broker_url = store
    for _ in range(n):
        noop.delay()
    return {"rate": _work(store, n)[0]}


def lateness(store: str, rate: int, seconds: int, lead: float = 1.0) -> dict[str, Any]:
    app.conf.broker_url = store
    n = rate * seconds
    base = time.time() + lead * (10 + n / 200)
    for i in range(n):
        due = base + i / rate
        noop.apply_async((due * 1000,), eta=datetime.fromtimestamp(due, UTC))
    in_time(base, 8)
    return {"late_ms": quantiles(_work(store, n)[1])}


def create_one(store: str, n: int) -> dict[str, Any]:
    app.conf.broker_url = store
    eta = datetime.fromtimestamp(time.time() + 86_400, UTC)
    began = time.perf_counter()
    for _ in range(n):
        noop.apply_async(eta=eta)
    return {"rate": n / (time.perf_counter() - began)}


if __name__ == "__main__":
    play({"drain": drain, "lateness": lateness, "create_one": create_one})
