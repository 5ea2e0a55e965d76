"""Alerts over HTTP: what a job may say, incidents, and a test of a channel."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from onthedot.api.app import App
from onthedot.clock import FakeClock
from onthedot.settings import ChannelSetting
from tests.api.conftest import JOB, client_of, serving

ALERTS = {"late": "30s", "failed": True, "missed": True, "too_long": "10m", "in_a_row": 3, "channels": ["ops"]}
OBJECTIVE = {"late": "1s", "percent": 99}


@pytest.fixture
async def app(sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[App]:
    channels = {"ops": ChannelSetting(command=("/bin/true",)), "night": ChannelSetting(command=("/bin/false",))}
    async with serving(sqlite_url, fake_clock, channels=channels) as app:
        yield app


@pytest.fixture
async def api(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


async def test_alerts_and_objective_read_back_as_given(api):
    made = await api.post("/v1/jobs", json={**JOB, "alerts": ALERTS, "objective": OBJECTIVE})
    assert made.status_code == 201, made.text
    job = (await api.get(f"/v1/jobs/{made.json()['id']}")).json()
    assert (job["alerts"], job["objective"]) == (ALERTS, OBJECTIVE)
    report = job["stats"]["objective"]
    assert (report["days"], report["runs"], report["percent"], report["met"]) == (28, 0, None, True)
    listed = (await api.get("/v1/jobs")).json()["items"][0]
    assert listed["alerts"] == ALERTS
    assert "objective" not in listed["stats"]
    changed = await api.patch(f"/v1/jobs/{job['id']}", json={"alerts": {"failed": None}, "objective": None})
    assert changed.json()["alerts"] == {name: value for name, value in ALERTS.items() if name != "failed"}
    assert "objective" not in changed.json()


async def test_a_job_without_them_has_neither(api):
    job = (await api.post("/v1/jobs", json=JOB)).json()
    assert "alerts" not in job
    assert "objective" not in job["stats"]


@pytest.mark.parametrize(
    ("given", "path", "accepted"),
    [
        ({"alerts": {"channels": ["nobody"]}}, "alerts.channels[0]", "one of night, ops"),
        ({"alerts": {"channels": ["ops", "ops"]}}, "alerts.channels[1]", "each channel once"),
        ({"alerts": {"late": "0s"}}, "alerts.late", "seconds"),
        ({"alerts": {"late": "soon"}}, "alerts.late", "seconds"),
        ({"alerts": {"in_a_row": 0}}, "alerts.in_a_row", "1"),
        ({"alerts": {"quiet": "22-7"}}, "alerts.quiet", "22:00-07:00"),
        ({"alerts": {"fails": True}}, "alerts.fails", "failed"),
        ({"objective": {"late": "1s", "percent": 100}}, "objective.percent", "99"),
        ({"objective": {"late": "0s", "percent": 99}}, "objective.late", "seconds"),
        ({"objective": {"percent": 99}}, "objective.late", ""),
    ],
)
async def test_what_is_wrong_names_field_and_what_is_accepted(api, given, path, accepted):
    refused = await api.post("/v1/jobs", json={**JOB, **given})
    assert refused.status_code == 422, refused.text
    (problem,) = refused.json()["errors"]
    assert problem["path"] == path
    assert accepted in str(problem["accepted"])
    assert (await api.get("/v1/jobs")).json()["items"] == []


async def test_a_channel_is_tested(api):
    good = await api.post("/v1/alerts/test", json={"channel": "ops"})
    assert (good.status_code, good.json()["delivered"], good.json()["error"]) == (200, True, None)
    bad = (await api.post("/v1/alerts/test", json={"channel": "night"})).json()
    assert (bad["delivered"], bad["error"]) == (False, "false ended with exit code 1")
    unknown = await api.post("/v1/alerts/test", json={"channel": "x"})
    assert unknown.status_code == 422
    assert unknown.json()["errors"][0]["accepted"] == "one of night, ops"
    assert (await api.post("/v1/alerts/test", json={"channel": "ops", "more": 1})).status_code == 422
    names = [each["name"] for each in (await api.get("/v1/alerts/channels")).json()["items"]]
    assert names == ["night", "ops"]


async def test_only_admins_of_the_default_tenant_test_a_channel(app, keyed):
    for name, status in (("nobody", 401), ("read", 403), ("write", 403), ("other", 403), ("admin", 200)):
        answer = await keyed[name].post("/v1/alerts/test", json={"channel": "ops"})
        assert answer.status_code == status, name


async def test_the_list_is_strict(api):
    assert (await api.get("/v1/alerts")).json() == {"items": [], "next": None}
    assert (await api.get("/v1/alerts?state=open&condition=late&job=x&limit=5")).status_code == 200
    for query in ("state=x", "condition=recovered", "limit=501", "what=1", "cursor=x"):
        assert (await api.get(f"/v1/alerts?{query}")).status_code == 422, query
