"""The page of alerts: incidents and channels as text, a test of a channel, and incidents on the page of a job."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import msgspec
import pytest

from onthedot.api.app import App
from onthedot.clock import FakeClock
from onthedot.model.alerts import AlertWay
from onthedot.model.incident import Trouble, job_subject
from onthedot.settings import ChannelSetting
from onthedot.store.alerts.incidents import open_incidents
from tests.api.conftest import JOB, client_of, serving

MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture
async def app(sqlite_url: str, fake_clock: FakeClock, tmp_path: Path) -> AsyncIterator[App]:
    file = tmp_path / "told.json"
    channels = {
        "file": ChannelSetting(command=("/bin/sh", "-c", f"cat > {file}")),
        "broken": ChannelSetting(command=("/bin/false",)),
    }
    async with serving(sqlite_url, fake_clock, channels=channels) as app:
        yield app


@pytest.fixture
async def site(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


async def trouble(app: App, job_id: int) -> None:
    found = Trouble(
        tenant=1,
        subject=job_subject(job_id),
        condition="failed",
        reason=f"a run failed: {MARKUP}",
        cause="boom",
        at=1,
        job_id=job_id,
        title="report",
        output=MARKUP,
        ways=[AlertWay(channel="file")],
    )
    await app.context.service.store.driver.transact_slow(lambda tx: open_incidents(tx, [found]))


async def test_incidents_are_shown_with_filters(app: App, site):
    assert "No alerts" in (await site.get("/alerts")).text
    job = (await site.post("/v1/jobs", json={**JOB, "objective": {"late": "1s", "percent": 99}})).json()
    await trouble(app, job["id"])
    for path in ("/alerts", f"/jobs/{job['id']}", f"/alerts?job={JOB['key']}&state=open&condition=failed"):
        shown = (await site.get(path)).text
        assert "a run failed" in shown
        assert MARKUP not in shown
        assert 'href="/alerts"' in shown, "it is in the navigation"
    assert "The objective is 99 %" in (await site.get(f"/jobs/{job['id']}")).text
    assert "No alerts found" in (await site.get("/alerts?state=closed")).text
    assert (await site.get("/alerts?condition=nothing")).status_code == 422


async def test_the_button_sends_a_test(site, tmp_path: Path):
    assert "Send a test" in (await site.get("/alerts")).text
    sent = await site.post("/alerts/test", data={"channel": "file"}, headers={"origin": str(site.base_url)})
    assert sent.status_code == 303
    assert msgspec.json.decode((tmp_path / "told.json").read_bytes())["event"] == "test"
    assert "Delivered to file" in (await site.get("/alerts")).text
    await site.post("/alerts/test", data={"channel": "broken"}, headers={"origin": str(site.base_url)})
    assert "Not delivered to broken: false ended with exit code 1" in (await site.get("/alerts")).text
