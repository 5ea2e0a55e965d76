"""Lists over HTTP: every filter of GET /v1/jobs, the first page and one far in."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from bench.contest import Cost, quantiles
from bench.ours.crowd import RARE, crowd
from bench.ours.seeding import FIRST
from bench.ours.serving import serving
from bench.ours.wire import Wire, request, wired

__all__ = ["filters", "listing"]

PAGE = 50
STRIDE = 500
DEEP = 40  # pages of 500 to walk before a page is called deep: 20,000 jobs in
PATIENCE = 10.0  # seconds for one page's figures, and for the walk: a filter that is slow is seen soon enough
AT_LEAST = 5


def filters() -> dict[str, dict[str, str]]:
    """Each one alone, then what people combine; some match most jobs, some few, some none."""
    now = datetime.now(UTC)
    soon = (now + timedelta(hours=12)).isoformat(timespec="seconds")
    far = (now + timedelta(days=2)).isoformat(timespec="seconds")
    key = f"job-{FIRST:09d}"[:9]
    return {
        "none": {},
        "q (key)": {"q": key},
        "q (name)": {"q": "report 12"},
        "tag": {"tag": "team-1"},
        "tag (rare)": {"tag": RARE},
        "status": {"status": "active"},
        "status (few)": {"status": "paused"},
        "target": {"target": "webhook"},
        "target (few)": {"target": "command"},
        "schedule": {"schedule": "cron"},
        "owner (none match)": {"owner": "nobody"},
        "next_before": {"next_before": far},
        "next_after": {"next_after": soon},
        "next_before and next_after": {"next_before": far, "next_after": soon},
        "status, target and schedule": {"status": "active", "target": "function", "schedule": "cron"},
        "status (few) and schedule (none match)": {"status": "paused", "schedule": "cron"},
        "tag and status (few)": {"tag": "team-0", "status": "paused"},
        "q and tag": {"q": "report 12", "tag": "nightly"},
        "next_after, tag and target": {"next_after": soon, "tag": "team-2", "target": "webhook"},
        "tag (rare) and next_before": {"next_before": far, "tag": RARE},
        "failing": {"failing": "true"},
        "late": {"late": "true"},
        "never_ran": {"never_ran": "true"},
        "ended (false)": {"ended": "false"},
        "last_status": {"last_status": "FAILED"},
        "sort by name": {"sort": "name"},
        "sort by last run, newest first": {"sort": "-last"},
    }


async def listing(store: str, jobs: int, times: int) -> dict[str, Any]:
    began = time.perf_counter()
    await crowd(store, jobs)
    seeded = time.perf_counter() - began
    rows: list[list[object]] = []
    worst: dict[str, float] = {"p50": 0.0, "p99": 0.0}
    async with serving(store) as server:
        wire = await wired(server.port)
        for name, wanted in filters().items():
            first = f"/v1/jobs?{urlencode({**wanted, 'limit': PAGE})}"
            deep = await _deep(wire, wanted)
            for page, path in (("first", first), ("deep", deep)):
                if path is None:
                    continue
                figures, spent, items = await _timed(wire, path, times, server.pid)
                worst = {share: max(worst[share], figures[share]) for share in worst}
                server_us, database_us = spent["cpu_us_per_run"], spent["db_cpu_us_per_run"]
                rows.append([name, page, items, figures["p50"], figures["p99"], server_us, database_us])
    head = ["filter", "page", "jobs", "p50 ms", "p99 ms", "server's CPU µs", "database's CPU µs"]
    return {"worst_ms": worst, "seeded_seconds": seeded, "table": {"head": head, "rows": rows}}


async def _timed(wire: Wire, path: str, times: int, pid: int) -> tuple[dict[str, float], dict[str, float], int]:
    raw = request("GET", path)
    answer = await wire.json(raw)  # once before it counts: statements get prepared
    took: list[float] = []
    cost = Cost(pid)
    until = time.perf_counter() + PATIENCE
    while len(took) < times and (time.perf_counter() < until or len(took) < AT_LEAST):
        began = time.perf_counter()
        await wire.ask(raw)
        took.append((time.perf_counter() - began) * 1000)
    return quantiles(took), cost.per_run(len(took)), len(answer["items"])


async def _deep(wire: Wire, wanted: dict[str, str]) -> str | None:
    """A page of 50 after many; the last there is where there are fewer; None: the first page is all."""
    path: str | None = f"/v1/jobs?{urlencode({**wanted, 'limit': STRIDE})}"
    found, until = None, time.perf_counter() + PATIENCE
    for _ in range(DEEP):
        if time.perf_counter() > until:
            break
        answer = await wire.json(request("GET", path or ""))
        path = answer["next"]
        if path is None:
            break
        found = path.replace(f"limit={STRIDE}", f"limit={PAGE}")
    return found
