"""The page of changes: who changed what, filters in the address, and names of others as text."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from onthedot.api.app import App
from onthedot.clock import FakeClock
from onthedot.web.pages import job_versions
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
    (link,) = re.findall(r'<a href="([^"]+)">version 2 → 3</a>', shown)
    assert link == f"/jobs/{job['id']}/versions?version=3#version-3"
    assert 'id="version-3"' in (await site.get(link)).text
    assert MARKUP not in shown
    assert "&lt;img src=x" in shown
    assert 'href="/audit"' in (await site.get("/jobs")).text, "it is in the navigation"
    paused = (await site.get("/audit", params={"verb": "pause", "actor": "", "job": JOB["key"]})).text
    assert "version 1 → 2" in paused
    assert "version 2 → 3" not in paused
    assert "No changes found" in (await site.get("/audit?actor=nobody")).text
    assert (await site.get("/audit?verb=nothing")).status_code == 422


async def test_operations_are_linked_and_instants_are_as_on_other_pages(site):
    job = (await site.post("/v1/jobs", json=JOB)).json()
    await site.post(f"/v1/jobs/{job['id']}/pause", json={"note": "stock count", "until": "2099-11-24T05:50:13.332Z"})
    asked = {"verb": "tag", "filter": {"ended": False}, "params": {"add": ["x"]}}
    operation = (await site.post("/v1/operations", json=asked)).json()["id"]
    shown = (await site.get("/audit")).text
    assert f'<a href="/operations/{operation}">operation {operation}: tag, 1 to do</a>' in shown
    assert "until 2099-11-24 05:50:13 UTC" in shown


async def test_the_diff_of_a_version_is_found_on_whichever_page_it_stands(site, monkeypatch):
    monkeypatch.setattr(job_versions, "LISTED", 2)
    job = (await site.post("/v1/jobs", json=JOB)).json()
    for name in "abcd":
        await site.patch(f"/v1/jobs/{job['id']}", json={"name": name})
    for version, shown in ((5, "54"), (4, "54"), (2, "32"), (1, "1"), (9, "54")):
        text = (await site.get(f"/jobs/{job['id']}/versions?version={version}")).text
        assert "".join(re.findall(r'id="version-(\d)"', text)) == shown, version
        assert ("is not kept any more" in text) == (version == 9)
