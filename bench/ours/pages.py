"""Every page of the dashboard on a database with a long past: first contentful paint in Chromium, slowest query.

The server runs in this process, so that each statement can be timed by its name.
"""

from __future__ import annotations

import gzip
import shutil
import time
from statistics import median
from typing import Any

import asyncpg
from playwright.async_api import Browser, async_playwright

from bench.ours.crowd import crowd
from bench.ours.parts import opened, webhooks
from onthedot.clock import SystemClock
from onthedot.model.duration import DAY
from onthedot.service import DEFAULT_TENANT
from onthedot.store.cluster.partitions import make_ahead
from onthedot.store.postgres.transaction import PostgresTransaction
from onthedot.web import routes
from tests.api.conftest import listening, serving

__all__ = ["pages"]

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage", "--disable-component-update"]
PATIENCE = 3600.0
DAYS = 7
OF_ONE_JOB = 20_000
LETTERS = 5000
PAINTED = """
() => new Promise((done) => {
  const found = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
  if (found() !== undefined) done(found());
  else new PerformanceObserver((_, seen) => {
    if (found() === undefined) return; // the first paint may be of the background alone
    seen.disconnect();
    done(found());
  }).observe({type: "paint", buffered: true});
})
"""
_RUNS = """
INSERT INTO history (tenant, job_id, id, slot, due_at, kind, status, token, tries, losses, node,
                     started_at, finished_at, lateness_ms, duration_ms, outcome, error)
SELECT $1, job, job || '-' || at, at, at, 'scheduled', CASE WHEN bad THEN 'failed' ELSE 'done' END, 1, 1, 0, 'bench',
       at + 2, at + 40, 2, 38, CASE WHEN bad THEN '{"kind":"error","status_code":503}' ELSE '{"kind":"ok"}' END,
       CASE WHEN bad THEN 'the receiver returned 503 Service Unavailable' END
FROM (SELECT CASE WHEN g % $6 = 0 THEN $2 ELSE $2 + g % $3 END AS job, $4 + g * $5 / $7 AS at, g % 101 = 0 AS bad
      FROM generate_series(1, $7::bigint) g) made
"""
_LETTERS = """
INSERT INTO dead_letters (run_id, tenant, job_id, slot, failed_at, cause)
SELECT id, tenant, job_id, slot, finished_at, 'HTTP 503 from http://127.0.0.1:9' FROM history
WHERE status = 'failed' ORDER BY slot DESC LIMIT $1
"""
_STATS = """
INSERT INTO job_stats (job_id, tenant, runs, failures, timed, duration_ms, last_duration_ms, last_lateness_ms,
                       last_status, last_run_id, last_finished_at)
SELECT job_id, tenant, count(*), count(*) FILTER (WHERE status = 'failed'), count(*), 38 * count(*), 38, 2,
       (array_agg(status ORDER BY slot DESC))[1], (array_agg(id ORDER BY slot DESC))[1], max(finished_at)
FROM history GROUP BY job_id, tenant
"""


async def pages(store: str, jobs: int, runs: int, times: int) -> dict[str, Any]:
    began = time.perf_counter()
    ids = await crowd(store, jobs)
    await _past(store, ids, runs)
    seeded = time.perf_counter() - began
    queries = _Queries()
    rows: list[list[object]] = []
    worst = 0.0
    async with serving(store, SystemClock()) as app, listening(app) as (host, port), async_playwright() as playwright:
        base = f"http://{host}:{port}"
        failed = (await app.context.service.list_dead(DEFAULT_TENANT, limit=1)).items[0]
        values = {"job_id": ids.start, "run_id": failed.id, "version": 1, "slot": failed.id.split("-")[1]}
        browser = await playwright.chromium.launch(executable_path=_chromium(), args=FLAGS)
        for path in _paths(values):
            paints, sizes = [], 0
            queries.begin()
            for _ in range(times + 1):
                painted, sizes = await _paint(browser, base + path)
                paints.append(painted)
            name, took = queries.slowest()
            found = median(paints[1:])  # the first prepares the statements
            worst = max(worst, found)
            rows.append([path, round(found, 1), round(max(paints), 1), round(sizes / 1024, 1), name, round(took, 1)])
        await browser.close()
    head = ["page", "first paint ms", "slowest of all ms", "KB compressed", "slowest query", "its ms"]
    return {"worst_ms": worst, "seeded_seconds": seeded, "table": {"head": head, "rows": rows}}


def _paths(values: dict[str, object]) -> list[str]:
    """The pages that show something, and the lists with the filters that people use."""
    left_out = ("{node_id}", "{key_id}", "{operation_id}")
    declared = [each.operation.path for each in routes if each.operation.page and each.operation.method == "GET"]
    found = [path.format(**values) for path in declared if not any(name in path for name in left_out)]
    return [*found, "/jobs?q=report+12", "/jobs?failing=true", "/jobs?sort=-last", "/runs?status=FAILED", "/runs?q=503"]


async def _past(url: str, ids: range, runs: int) -> None:
    """A week of runs, one in a hundred failed, `OF_ONE_JOB` of them of the first job."""
    async with opened(url, webhooks()) as (store, _):
        now = await store.now()
        await store.driver.transact_slow(lambda tx: make_ahead(tx, now - DAYS * DAY))
    connection = await asyncpg.connect(url)
    every = max(1, runs // OF_ONE_JOB)
    given = (DEFAULT_TENANT, ids.start, len(ids), now - DAYS * DAY, DAYS * DAY, every, runs)
    await connection.execute(_RUNS, *given, timeout=PATIENCE)
    await connection.execute(_LETTERS, LETTERS, timeout=PATIENCE)
    await connection.execute(_STATS, timeout=PATIENCE)
    await connection.execute("VACUUM ANALYZE", timeout=PATIENCE)
    await connection.close()


async def _paint(browser: Browser, address: str) -> tuple[float, int]:
    """When something was seen, in ms after the request, and how large the page was on the way."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    page = await context.new_page()
    answer = await page.goto(address, wait_until="commit")
    assert answer is not None
    assert answer.status < 400, f"{address}: {answer.status}"
    painted = await page.evaluate(PAINTED)
    size = len(gzip.compress(await answer.body(), 1))
    await context.close()
    return float(painted), size


class _Queries:
    """How long each statement took, by its name."""

    def __init__(self) -> None:
        self._took: dict[str, float] = {}
        for verb in ("rows", "row"):
            setattr(PostgresTransaction, verb, self._timed(getattr(PostgresTransaction, verb)))

    def begin(self) -> None:
        self._took.clear()

    def slowest(self) -> tuple[str, float]:
        return max(self._took.items(), key=lambda each: each[1], default=("none", 0.0))

    def _timed(self, ask: Any) -> Any:
        async def asked(tx: PostgresTransaction, name: str, *args: Any) -> Any:
            began = time.perf_counter()
            try:
                return await ask(tx, name, *args)
            finally:
                took = (time.perf_counter() - began) * 1000
                self._took[name] = max(took, self._took.get(name, 0.0))

        return asked


def _chromium() -> str:
    found = next((path for path in map(shutil.which, CHROMIUM) if path), None)
    if found is None:
        raise RuntimeError("Chromium is not installed (Debian, Ubuntu: apt install chromium)")
    return found
