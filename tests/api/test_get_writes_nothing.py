"""A GET writes nothing: each is answered by a store that refuses to write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from onthedot.api.app import ROUTES
from onthedot.clock import FakeClock
from onthedot.model.run import Outcome
from onthedot.web import routes as pages
from tests.api.conftest import JOB, client_of, serving
from tests.api.executor import FAILED, OK, TinyNode
from tests.store.given import fetch

WRITE = {"/ping/{token}", "/ping/{token}/{signal}"}  # a check-in by GET, for those that can send nothing else
ENDLESS = {"/v1/events"}
UNREAD = 'class="part-error"'  # a part of a page that could not be loaded
GETS = sorted({one.operation.path for one in (*ROUTES, *pages) if one.operation.method == "GET"} - WRITE - ENDLESS)
NOT_HERE = {"token": "none", "operation_id": "1", "incident_id": "1", "script_id": "none", "destination": "none"}


@pytest.fixture
async def sealed(sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[tuple[httpx.AsyncClient, dict[str, str]]]:
    """A client, and what there is to ask for: a job that has ended but is not marked so yet, and a failed run."""
    async with serving(sqlite_url, fake_clock) as app, client_of(app) as api:
        node = TinyNode(app.context.service.store)
        await node.register()
        ended = await _worked(api, fake_clock, node, {**JOB, "key": "once", "schedule": {"in": "1s"}}, OK)
        failed = await _worked(api, fake_clock, node, JOB, FAILED)
        timer = await api.post("/timers", json={"seconds": 60, "url": "http://127.0.0.1:5003/"})
        driver = app.context.service.store.driver
        assert await fetch(app.context.service.store, "SELECT * FROM endings"), "there is something to close"
        await driver.transact_slow(lambda tx: tx.sql("PRAGMA query_only = ON"))
        assert (await api.post("/v1/jobs", json={**JOB, "key": "other"})).status_code >= 500, "it is sealed"
        assert ended["job_id"] != failed["job_id"]
        there = {"job_id": str(failed["job_id"]), "run_id": failed["id"], "timer_id": str(timer.json()["id"])}
        yield api, NOT_HERE | there | {"key": "once"}


async def _worked(
    api: httpx.AsyncClient, clock: FakeClock, node: TinyNode, job: dict[str, Any], outcome: Outcome
) -> dict[str, Any]:
    """A job with a run that ended so."""
    made = await api.post("/v1/jobs", json=job)
    assert made.status_code == 201, made.text
    run: dict[str, Any] = (await api.post(f"/v1/jobs/{made.json()['id']}/run")).json()
    await clock.advance(2)
    assert run["id"] in await node.work(outcome)
    return run


@pytest.mark.parametrize("path", GETS)
async def test_it_is_answered_by_a_store_that_can_only_be_read(
    sealed: tuple[httpx.AsyncClient, dict[str, str]], path: str
) -> None:
    api, names = sealed
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", value)
    answer = await api.get(path, params={"at": "2026-01-01T00:00:00Z"} if path.endswith("explain") else {})
    assert answer.status_code < 500, answer.text
    assert UNREAD not in answer.text
