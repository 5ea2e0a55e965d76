"""The same POST sent twice under one key acts once and answers the same."""

from __future__ import annotations

import asyncio

import pytest

from tests.api.conftest import JOB, paths, problem
from tests.api.executor import FAILED

KEY = {"idempotency-key": "3f1c"}
TIMER = {"seconds": 30, "url": "http://127.0.0.1:5003/"}


async def test_a_job_is_made_once(api):
    first = await api.post("/v1/jobs", json=JOB, headers=KEY)
    again = await api.post("/v1/jobs", json=JOB, headers=KEY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert len((await api.get("/v1/jobs")).json()["items"]) == 1


async def test_at_the_same_time_too(api):
    answers = await asyncio.gather(*(api.post("/timers", json=TIMER, headers=KEY) for _ in range(20)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len((await api.get("/v1/jobs")).json()["items"]) == 1


async def test_another_body_under_the_same_key_is_422(api):
    await api.post("/v1/jobs", json=JOB, headers=KEY)
    document = problem(await api.post("/v1/jobs", json={**JOB, "name": "x"}, headers=KEY), 422)
    assert document["type"] == "urn:onthedot:problem:idempotency-mismatch"
    assert paths(document) == ["Idempotency-Key"]


async def test_another_kind_of_request_under_the_same_key_is_422(api, new_job):
    job = await new_job()
    await api.post("/timers", json=TIMER, headers=KEY)
    problem(await api.post("/v1/jobs", json={**JOB, "key": "x"}, headers=KEY), 422)
    problem(await api.post(f"/v1/jobs/{job['id']}/run", headers=KEY), 422)


async def test_how_it_was_written_does_not_matter_what_it_says_does(api):
    body = b'{"url": "http://127.0.0.1:5003/",   "seconds": 30}'
    first = await api.post("/timers", json=TIMER, headers=KEY)
    assert (await api.post("/timers", content=body, headers=KEY)).json()["id"] == first.json()["id"]


async def test_a_request_that_was_refused_may_be_put_right(api, new_job):
    await new_job()
    problem(await api.post("/v1/jobs", json=JOB, headers=KEY), 409)
    assert (await api.post("/v1/jobs", json={**JOB, "key": "other"}, headers=KEY)).status_code == 201


async def test_after_a_day_the_key_is_free_again(api, fake_clock):
    first = await api.post("/timers", json=TIMER, headers=KEY)
    await fake_clock.advance(24 * 3600 + 1)
    assert (await api.post("/timers", json=TIMER, headers=KEY)).json()["id"] != first.json()["id"]


async def test_run_now_runs_once(api, new_job):
    job = await new_job()
    first = await api.post(f"/v1/jobs/{job['id']}/run", headers=KEY)
    again = await api.post(f"/v1/jobs/{job['id']}/run", headers=KEY)
    assert first.json() == again.json()
    assert (await api.post(f"/v1/jobs/{job['id']}/run")).json()["id"] != first.json()["id"]


async def test_backfill_fills_once(api, new_job, fake_clock):
    job = await new_job(schedule={"cron": "0 * * * *"})
    await fake_clock.advance(3 * 3600)
    asked = {"start": "2023-11-14T18:00:00Z", "end": "2023-11-14T20:30:00Z", "force": True}
    first = await api.post(f"/v1/jobs/{job['id']}/backfill", json=asked, headers=KEY)
    again = await api.post(f"/v1/jobs/{job['id']}/backfill", json=asked, headers=KEY)
    assert (first.status_code, len(first.json()["runs"])) == (201, 3)
    assert again.json() == first.json()
    other = await api.post(f"/v1/jobs/{job['id']}/backfill", json={**asked, "force": False}, headers=KEY)
    problem(other, 422)


async def test_retry_and_redrive_drive_once(api, new_job, node):
    job = await new_job()
    for _ in range(2):
        await api.post(f"/v1/jobs/{job['id']}/run")
    first, _ = await node.work(FAILED)
    retried = await api.post(f"/v1/runs/{first}/retry", headers=KEY)
    assert retried.status_code == 201, retried.text
    assert (await api.post(f"/v1/runs/{first}/retry", headers=KEY)).json() == retried.json()
    redrive = {"idempotency-key": "redrive"}
    driven = await api.post("/v1/dead/redrive", headers=redrive)
    assert len(driven.json()["runs"]) == 1
    assert (await api.post("/v1/dead/redrive", headers=redrive)).json() == driven.json()
    assert (await api.post("/v1/dead/redrive")).json() == {"runs": []}


@pytest.mark.parametrize("address", ["/timers", "/v1/jobs", "/v1/jobs/batch", "/v1/jobs/1/run", "/v1/dead/redrive"])
async def test_a_key_that_is_none_is_422(api, address):
    body: object = (
        [] if address.endswith("batch") else {} if "dead" in address else TIMER if address == "/timers" else JOB
    )
    for key in ("", " ", "x" * 201, "a\tb", "schlüssel".encode().decode("latin-1")):
        answer = await api.post(address, json=body, headers={"idempotency-key": key.encode("latin-1")})
        assert paths(problem(answer, 422)) == ["Idempotency-Key"]
