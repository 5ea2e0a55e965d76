"""How a contestant is asked: `python -m bench.ours drain '{"n": 20000, …}'` prints one line of JSON with its figures.

Each measurement is a process of its own, so that nobody inherits another's memory, caches or event loop. Standard
library only: peers run in an environment without On the Dot.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["TOO_SLOW", "Cost", "Tally", "cpu_seconds", "in_time", "play", "process_cpu_seconds", "quantiles"]

PATIENCE = 600.0
TOO_SLOW = "the machine was too slow to add the jobs in time"


class Tally:
    """Counts executions and how late each was; `on_all` is called when the last of `n` arrived.

    The clock starts with the first execution: at `begin` where executing takes time, or most of the first thousand that
    run at once would be outside of it.
    """

    def __init__(self, n: int, on_all: Callable[[], object] = lambda: None) -> None:
        self.n = n
        self.count = 0
        self.first = self.last = 0.0
        self.late_ms: list[float] = []
        self._on_all = on_all

    def begin(self) -> None:
        """An execution begins that takes time; `hit` says when it ended."""
        if not self.first:
            self.first = time.perf_counter()

    def hit(self, due_ms: float | None = None) -> None:
        if due_ms is not None:
            self.late_ms.append(time.time() * 1000 - due_ms)
        self.count += 1
        if not self.first:
            self.first = time.perf_counter()
        if self.count == self.n:
            self.last = time.perf_counter()
            self._on_all()

    def rate(self, until: float | None = None) -> float:
        """Executions per second from the first one to the last, or until all was recorded."""
        return self.n / ((until or self.last) - self.first)


def quantiles(values: list[float]) -> dict[str, float]:
    """p50, p99 and the extremes, in the unit of the values."""
    if not values:
        return {}
    ordered = sorted(values)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)

    return {"p50": at(0.5), "p99": at(0.99), "max": round(ordered[-1], 3), "min": round(ordered[0], 3)}


def in_time(base: float, spare: float) -> None:
    """Before the worker starts: jobs not all there well before the first is due would be late by our fault."""
    if time.time() > base - spare:
        raise RuntimeError(f"{TOO_SLOW}: no lateness to tell")


def cpu_seconds() -> float:
    """User and system time of this process so far, with the children it has waited for."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def process_cpu_seconds(parent: int | str | None) -> float:
    """What a process and its children used so far: those that live, and those that ended. 0 where it can't be seen."""
    if not parent:
        return 0.0
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[1] == str(parent):
                total += int(fields[11]) + int(fields[12])
            elif entry.name == str(parent):
                total += sum(int(field) for field in fields[11:15])
    return total / os.sysconf("SC_CLK_TCK")


class Cost:
    """CPU from here on, the contestant's own and the database's: the one figure that a busy machine distorts least.

    `process`: the contestant is a process of its own (a server), not this one.
    """

    def __init__(self, process: int | None = None) -> None:
        self._process = process
        self._own, self._server = self._now()

    def _now(self) -> tuple[float, float]:
        own = cpu_seconds() if self._process is None else process_cpu_seconds(self._process)
        return own, process_cpu_seconds(os.environ.get("BENCH_POSTMASTER"))

    def per_run(self, n: int) -> dict[str, float]:
        own, server = (now - then for now, then in zip(self._now(), (self._own, self._server), strict=True))
        return {
            "cpu_us_per_run": own / n * 1e6,
            "db_cpu_us_per_run": server / n * 1e6,
            "cpu_us_all": (own + server) / n * 1e6,
        }


def play(scenarios: Mapping[str, Callable[..., Any]]) -> None:
    """Run the scenario that was asked for and print what it returns."""
    scenario = scenarios[sys.argv[1]]
    given = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    figures = scenario(**given)
    if inspect.iscoroutine(figures):
        loop = (_uvloop() or asyncio.new_event_loop)()
        asyncio.set_event_loop(loop)
        figures = loop.run_until_complete(asyncio.wait_for(figures, float(os.environ.get("BENCH_PATIENCE", PATIENCE))))
    sys.stdout.write("\n" + json.dumps(figures) + "\n")
    sys.stdout.flush()
    os._exit(0)  # not every worker can be stopped politely, and no figure depends on it


def _uvloop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
