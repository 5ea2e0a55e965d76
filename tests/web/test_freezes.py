"""Pausing and resuming the whole installation from the pages."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator

import httpx
import pytest

from onthedot.api.app import App
from onthedot.clock import FakeClock
from onthedot.model.key import ApiKeySpec
from tests.api.conftest import client_of, serving

OURS = {"origin": "http://localhost:8000"}
LIVE = {"x-onthedot-live": "1"}


@pytest.fixture
async def app(sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[App]:
    async with serving(sqlite_url, fake_clock) as app:
        yield app


@pytest.fixture
async def site(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        client.headers.update(OURS)
        yield client


def said(page: httpx.Response) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page.text)))


async def test_paused_and_resumed_with_a_question_before_each(site):
    assert "Pause everything…" in said(await site.get("/nodes"))
    assert "Pause everything?" in said(await site.get("/pause-all", params={"back": "/jobs"}))
    paused = await site.post("/pause-all", data={"note": "disk & <b>power</b>", "back": "/jobs"})
    assert (paused.status_code, paused.headers["location"]) == (303, "/jobs")
    for path in ("/", "/jobs", "/nodes", "/settings"):
        page = await site.get(path)
        assert "Everything is paused." in said(page), path
        assert "<b>power</b>" not in page.text
        assert 'href="/resume-all?back=' in page.text, path
    assert "Resume everything?" in said(await site.get("/resume-all"))
    resumed = await site.post("/resume-all", data={"back": "/jobs"})
    assert (resumed.status_code, resumed.headers["location"]) == (303, "/jobs")
    assert "Everything is resumed: jobs fire again" in said(await site.get("/jobs"))
    assert "Everything is paused." not in said(await site.get("/jobs"))
    verbs = [entry["verb"] for entry in (await site.get("/v1/audit")).json()["items"]]
    assert verbs[:2] == ["unfreeze", "freeze"]


async def test_open_pages_learn_of_it(site, fake_clock):
    before = (await site.get("/jobs", headers=LIVE)).text
    assert '<div id="freeze" data-elsewhere></div>' in before
    await site.post("/v1/pause", json={"note": "later"})
    await fake_clock.advance(2)
    assert "Everything is paused." in (await site.get("/jobs", headers=LIVE)).text
    await site.post("/v1/resume")
    await fake_clock.advance(2)
    assert '<div id="freeze" data-elsewhere></div>' in (await site.get("/jobs", headers=LIVE)).text


async def test_a_note_that_is_too_long_is_told_at_the_field(site):
    refused = await site.post("/pause-all", data={"note": "x" * 1001})
    assert refused.status_code == 422
    assert "at most 1,000 characters" in said(refused)
    assert "Everything is paused." not in said(await site.get("/"))


async def test_who_may_not_resume_sees_why(site, app):
    service = app.context.service
    admin, write, stranger = [
        {"authorization": f"Bearer {(await service.create_key(spec)).key}"}
        for spec in (
            ApiKeySpec(name="admin", scope="admin"),
            ApiKeySpec(name="write", scope="write"),
            ApiKeySpec(name="guest", scope="admin", tenant="guests"),
        )
    ]
    await site.post("/v1/pause", json={}, headers=admin)
    assert 'href="/resume-all?back=' in (await site.get("/jobs", headers=admin)).text
    for who in (write, stranger):
        page = await site.get("/jobs", headers=who)
        assert "Everything is paused." in said(page)
        assert 'href="/resume-all' not in page.text
        assert "Only an admin key of the default tenant can resume everything" in page.text
        assert (await site.post("/resume-all", headers=who)).status_code == 403
    assert "Everything is paused." in said(await site.get("/jobs", headers=admin))
