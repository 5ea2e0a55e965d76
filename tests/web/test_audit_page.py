"""The page of changes: who changed what, filters in the address, and names of others as text."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from onthedot.api.app import App
from onthedot.clock import FakeClock
from tests.api.conftest import JOB, client_of, serving

MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture
async def app(sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[App]:
    async with serving(sqlite_url, fake_clock) as app:
        yield app


@pytest.fixture
async def site(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


async def test_changes_are_shown_with_filters(site):
    assert "No changes" in (await site.get("/audit")).text
    job = (await site.post("/v1/jobs", json=JOB)).json()
    await site.post(f"/v1/jobs/{job['id']}/pause", json={"note": MARKUP})
    await site.patch(f"/v1/jobs/{job['id']}", json={"name": "x"})
    shown = (await site.get("/audit")).text
    assert shown.index("version 2 → 3") < shown.index("version 1 → 2")
    assert JOB["key"] in shown
    assert MARKUP not in shown
    assert "&lt;img src=x" in shown
    assert 'href="/audit"' in (await site.get("/jobs")).text, "it is in the navigation"
    paused = (await site.get("/audit", params={"verb": "pause", "actor": "", "job": JOB["key"]})).text
    assert "version 1 → 2" in paused
    assert "version 2 → 3" not in paused
    assert "No changes found" in (await site.get("/audit?actor=nobody")).text
    assert (await site.get("/audit?verb=nothing")).status_code == 422
