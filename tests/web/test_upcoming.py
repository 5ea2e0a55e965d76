"""The page of upcoming firings: order, pages, skipping one, the forecast."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator

import httpx
import pytest
from msgspec import structs

from onthedot.api.app import App
from onthedot.clock import FakeClock
from onthedot.model.upcoming import BusyMinute, Forecast, ForecastJob
from onthedot.web.pages import upcoming
from onthedot.web.words import relative
from tests.api.conftest import JOB, client_of, serving

OURS = {"origin": "http://localhost:8000"}


@pytest.fixture
async def app(sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[App]:
    async with serving(sqlite_url, fake_clock) as app:
        yield app


@pytest.fixture
async def site(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


async def test_what_fires_next_and_page_after_page(site, fake_clock, monkeypatch):
    monkeypatch.setattr(upcoming, "PAGE", 1)
    assert "No firings" in (await site.get("/upcoming")).text
    for key, every in (("later", "2h"), ("sooner", "1h"), ("<i>weekly", "2d")):
        await site.post("/v1/jobs", json={**JOB, "key": None, "name": key, "schedule": {"every": every}})
    first = (await site.get("/upcoming")).text
    assert "sooner" in first[first.index("<tbody>", first.index("Fires")) :]
    assert 'data-label="More" class="num"><div>22<' in first
    await fake_clock.advance(5)
    (link,) = re.findall(r'href="([^"]+)" rel="next"', first)
    rest = await site.get(html.unescape(link))
    assert rest.status_code == 200, "though a day from now is another instant by now"
    assert "later" in rest.text[rest.text.index("Target</th>") :]
    week = (await site.get("/upcoming?within=week")).text
    assert "<i>weekly" not in week
    assert (await site.get("/upcoming?within=year")).status_code == 422


async def test_what_fires_very_often_is_counted_as_the_api_counts_it(site):
    for name, schedule in (
        ("steady", {"every": "5s", "start": "2020-01-01T00:00:00Z"}),
        ("counted", {"cron": "* * * * * *", "count": 5000}),
        ("cron", {"cron": "*/2 * * * * *"}),
        ("each second", {"cron": "* * * * * *"}),
    ):
        await site.post("/v1/jobs", json={**JOB, "key": None, "name": name, "schedule": schedule})
    page = (await site.get("/upcoming")).text
    for expected in ("17,278", "at most 4,999", "43,198", "86,398"):
        assert f"<div>{expected}<" in page, expected
    assert "<div>more than 100,000<" in (await site.get("/upcoming?within=week")).text


def test_what_starts_in_every_busy_minute_is_said_once():
    usual, other = (ForecastJob(job_id=each, key=None, name=None, starts=3) for each in (1, 2))
    minutes = [BusyMinute(at="2023-11-14T22:13:00Z", starts=6, jobs=jobs) for jobs in ([usual, other], [usual])]
    at = minutes[0].at
    forecast = Forecast(
        since=at,
        until=at,
        computed_at=at,
        jobs=2,
        complete=True,
        capacity=10,
        measured_per_minute=2,
        starts=[6, 3],
        busiest=minutes,
    )
    assert upcoming.next_day(forecast).usual == [usual]
    assert upcoming.next_day(structs.replace(forecast, busiest=minutes[:1])).usual == []


def test_what_is_due_now_has_not_happened_yet():
    at, now = "2023-11-14T22:13:20.000Z", 1_700_000_000_000
    assert [relative(at, now + late, True) for late in (0, 1000, 5000, 300_000)] == [
        "now",
        "now",
        "due now",
        "due 5 min ago",
    ]
    assert relative(at, now + 5000) == "5 s ago"


async def test_the_instant_of_a_one_off_job_is_written_as_pages_write_times(site):
    job = {**JOB, "key": None, "schedule": {"at": "2023-11-15T03:00:00.171+01:00"}}
    job_id = (await site.post("/v1/jobs", json=job)).json()["id"]
    for path in ("/upcoming", "/jobs", f"/jobs/{job_id}"):
        assert "Once at 2023-11-15 02:00:00 UTC" in (await site.get(path)).text, path


async def test_skip_this_one(site):
    made = (await site.post("/v1/jobs", json={**JOB, "schedule": {"cron": "0 3 * * *"}})).json()
    data = {"job_id": str(made["id"]), "slot": made["next_run"], "back": "/upcoming"}
    answer = await site.post("/upcoming/skip", data=data, headers=OURS)
    assert (answer.status_code, answer.headers["location"]) == (303, "/upcoming")
    now = (await site.get(f"/v1/jobs/{made['id']}")).json()["next_run"]
    assert now > made["next_run"]
    for wrong in ({**data, "job_id": "x"}, {**data, "slot": "soon"}):
        assert (await site.post("/upcoming/skip", data=wrong, headers=OURS)).status_code == 422


async def test_the_next_day_is_drawn_with_its_busiest_minute(site):
    for _ in range(3):
        await site.post("/v1/jobs", json={**JOB, "key": None, "schedule": {"cron": "0 3 * * *"}})
    text = (await site.get("/upcoming")).text
    assert text.count('class="bar busy"') == 1
    assert "Busiest minutes" in text
    assert "3 starts" in text
    assert re.search(r"<bdi>Job \d+</bdi>, <bdi>", text), "names written from right to left do not mix"
