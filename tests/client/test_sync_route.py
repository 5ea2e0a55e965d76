"""POST /v1/jobs/sync as it goes over the wire, for those who have no client."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from onthedot.client import AsyncClient
from onthedot.model.key import ApiKeySpec

JOB = {"key": "a", "schedule": {"every": "1h"}, "target": {"type": "webhook", "url": "http://127.0.0.1:9/"}}


@pytest.fixture
def post(address):
    async def send(body: Any, **headers: str) -> tuple[int, Any]:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{address}/v1/jobs/sync", json=body, headers=headers) as answer,
        ):
            return answer.status, await answer.json(content_type=None)

    return send


async def test_a_file_is_applied_and_applied_again(post):
    status, report = await post({"source": "jobs.json", "jobs": [JOB]})
    assert (status, report) == (200, {"created": ["a"], "updated": [], "unchanged": [], "removed": []})
    status, report = await post({"source": "jobs.json", "jobs": [JOB], "prune": True})
    assert (status, report["unchanged"]) == (200, ["a"])
    status, report = await post({"source": "jobs.json", "jobs": [], "prune": True})
    assert (status, report["removed"]) == (200, ["a"])


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "source"),
        ({"source": "", "jobs": []}, "source"),
        ({"source": "x"}, "jobs"),
        ({"source": "x", "jobs": {}}, "jobs"),
        ({"source": "x", "jobs": [{}]}, "jobs"),
        ({"source": "x", "jobs": [], "colour": 1}, "colour"),
        ({"source": "x", "jobs": [{**JOB, "key": None}]}, "jobs[0].key"),
        ({"source": "x", "jobs": [JOB, JOB]}, "jobs[1].key"),
        ({"source": "x", "jobs": [{**JOB, "schedule": {"cron": "61 * * * *"}}]}, "jobs[0].schedule.cron"),
    ],
)
async def test_what_is_wrong_is_named(post, body, path):
    status, problem = await post(body)
    assert status == 422
    assert any(error["path"].startswith(path) for error in problem["errors"])


async def test_a_key_of_somebody_else_is_a_conflict(post):
    assert (await post({"source": "one.json", "jobs": [JOB]}))[0] == 200
    status, problem = await post({"source": "two.json", "jobs": [JOB]})
    assert status == 409
    assert "one.json" in problem["detail"]


async def test_it_needs_the_scope_to_write(post, address):
    async with AsyncClient(address) as client:
        reader = await client.create_key(ApiKeySpec(name="reader", scope="read"))
    body = {"source": "x", "jobs": []}
    assert (await post(body))[0] == 401
    assert (await post(body, authorization=f"Bearer {reader.key}"))[0] == 403
