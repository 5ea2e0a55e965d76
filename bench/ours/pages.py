"""Every page of the dashboard on a database with a long past: first contentful paint in Chromium, slowest query.

The server runs in this process, so that each statement can be timed by its name.
"""

from __future__ import annotations

import gzip
import shutil
import time
from statistics import median
from typing import Any
from urllib.parse import quote

from playwright.async_api import Browser, async_playwright

from bench.ours.crowd import crowd
from bench.ours.past import past
from onthedot.clock import SystemClock
from onthedot.model.duration import DAY
from onthedot.model.instant import format_instant
from onthedot.service import DEFAULT_TENANT, Service
from onthedot.store.postgres.transaction import PostgresTransaction
from onthedot.web import routes
from tests.api.conftest import listening, serving

__all__ = ["pages", "painted"]

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage", "--disable-component-update"]
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
ANSWERED = "() => performance.getEntriesByType('navigation')[0].responseStart"
_JOBS = (
    "q=report+12",
    "q=job-0100",
    "q=of+1234",
    "tag=nightly",
    "tag=one-in-a-thousand",
    "status=paused",
    "status=all",
    "target=command",
    "schedule=cron",
    "owner=nobody",
    "last_status=FAILED",
    "failing=true",
    "late=true",
    "never_ran=true",
    "sort=name",
    "sort=-name",
    "sort=next",
    "sort=last",
    "sort=-last",
    "tag=nightly&failing=true",
    "status=paused&sort=name",
)
_RUNS = ("status=FAILED", "status=DONE", "status=EXECUTING", "status=PENDING", "status=SKIPPED", "due=true", "q=503")


async def pages(store: str, jobs: int, runs: int, times: int) -> dict[str, Any]:
    began = time.perf_counter()
    ids = await crowd(store, jobs)
    await past(store, ids, runs)
    return {"seeded_seconds": time.perf_counter() - began, **await painted(store, ids, times)}


async def painted(store: str, ids: range, times: int) -> dict[str, Any]:
    """Each page so many times, in a server that has been asked for each page once."""
    queries = _Queries()
    rows: list[list[object]] = []
    worst = largest = 0.0
    async with serving(store, SystemClock()) as app, listening(app) as (host, port), async_playwright() as playwright:
        addresses = await _addresses(app.context.service, ids)
        browser = await playwright.chromium.launch(executable_path=_chromium(), args=FLAGS)
        for address in addresses:
            queries.begin()
            seen = [await _paint(browser, f"http://{host}:{port}{address}") for _ in range(times + 1)]
            name, took = queries.slowest()
            first, answer = (median(figures) for figures in zip(*(each[:2] for each in seen[1:]), strict=True))
            slowest, size = max(each[0] for each in seen), seen[-1][2] / 1024
            worst, largest = max(worst, first), max(largest, size)
            figures = [round(each, 1) for each in (first, slowest, answer, size)]
            rows.append([address, *figures, name, round(took, 1)])
        await browser.close()
    head = ["page", "first paint ms", "slowest ms", "answer ms", "KB compressed", "slowest query", "its ms"]
    return {"worst_ms": worst, "largest_kb": largest, "table": {"head": head, "rows": rows}}


async def _addresses(service: Service, ids: range) -> list[str]:
    """The pages that show something, and the lists with the filters that people use."""
    failed = (await service.list_dead(DEFAULT_TENANT, limit=1)).items[0]
    operation = (await service.list_operations(DEFAULT_TENANT, limit=1)).items[0]
    values = {"job_id": ids.start, "run_id": failed.id, "version": 1, "operation_id": operation.id}
    left_out = ("{node_id}", "{key_id}", "/destinations/{")
    declared = [each.operation.path for each in routes if each.operation.page and each.operation.method == "GET"]
    found = [path.format(**values) for path in declared if not any(name in path for name in left_out)]
    since = format_instant(await service.time.now() - DAY)
    rare, cause = ids.start + len(ids) // 2, quote(failed.cause)
    return [
        *found,
        *(f"/jobs?{chosen}" for chosen in _JOBS),
        *(f"/runs?{chosen}" for chosen in _RUNS),
        *(f"/runs?since={since}", f"/runs?status=FAILED&since={since}", f"/runs?job_id={ids.start}"),
        *(f"/jobs/{rare}", f"/runs?job_id={rare}&status=FAILED", f"/dead?cause={cause}", "/audit?verb=edit"),
    ]


async def _paint(browser: Browser, address: str) -> tuple[float, float, int]:
    """When something was seen and when the answer was there, in ms after the request, and how large it was."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    page = await context.new_page()
    answer = await page.goto(address, wait_until="commit")
    assert answer is not None
    assert answer.status < 400, f"{address}: {answer.status}"
    painted = await page.evaluate(PAINTED)
    answered = await page.evaluate(ANSWERED)
    size = len(gzip.compress(await answer.body(), 1))
    await context.close()
    return float(painted), float(answered), size


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
