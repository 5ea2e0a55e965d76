"""The company of `make demo`: its past holds before the proof, and a second start leaves it as it is."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from examples.demo.company import jobs_of_the_company
from examples.demo.place import HERE, open_place
from examples.demo.seeding import seed
from onthedot.clock import SystemClock
from onthedot.main import prepare
from onthedot.model.duration import DAY, HOUR
from onthedot.settings import load_settings


async def test_the_past_of_the_company_holds(store_url, tmp_path, monkeypatch):
    monkeypatch.chdir(HERE)
    place = open_place(tmp_path / "demo", store_url, fresh=False)
    settings = load_settings({}, environ={}, file=place.settings)
    made = await seed(settings, place.ports, days=1)
    assert made is not None
    assert await seed(settings, open_place(tmp_path / "demo", store_url, fresh=False).ports) is None

    prepared = await prepare(settings, None, SystemClock())
    try:
        while not await prepared.store.prove():
            pass
        proof = await prepared.service.proof(1)
        assert proof.ok
        assert proof.decided + proof.waiting == proof.expected > 5000
        now = await prepared.service.time.now()
        stats = await prepared.service.stats(1)
        assert stats.jobs["paused"] == 2
        assert stats.jobs["quarantined"] == 1
        assert stats.dead > 100
        counted = await prepared.store.series(1, "hour", now - now % HOUR - DAY, now)
        assert sum(row.firings for row in counted.rows) > made.runs * 0.9
    finally:
        await prepared.close()


@pytest.mark.parametrize("page", ["README.md", "docs/dashboard.md"])
def test_the_manual_says_how_many_jobs_it_has(page):
    jobs = list(jobs_of_the_company(defaultdict(lambda: 1), SystemClock().now_ms(), scripts=True))
    told = re.findall(r"make demo`[^.]*?(\d+) jobs", (Path(__file__).parents[2] / page).read_text())
    assert told == [str(len(jobs))]
