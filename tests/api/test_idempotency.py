"""The same POST sent twice under one key acts once and answers the same."""

from __future__ import annotations

import asyncio

import pytest

from tests.api.conftest import JOB, both_ways, paths, problem
from tests.api.executor import FAILED

pytestmark = both_ways

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
    bodies: dict[str, object] = {"/timers": TIMER, "/v1/jobs": JOB, "/v1/jobs/batch": []}
    body = bodies.get(address, {})
    for key in ("", " ", "x" * 201, "a\tb", "schlüssel".encode().decode("latin-1")):
        answer = await api.post(address, json=body, headers={"idempotency-key": key.encode("latin-1")})
        assert paths(problem(answer, 422)) == ["Idempotency-Key"]


async def test_a_repeated_pause_does_not_undo_what_was_said_since(api, new_job):
    """The first answer was lost on its way, somebody resumed the job, and the client tries again."""
    job = await new_job()
    at = f"/v1/jobs/{job['id']}"
    assert (await api.post(f"{at}/pause", headers=KEY)).json()["state"] == "paused"
    resumed = (await api.post(f"{at}/resume", headers={"idempotency-key": "other"})).json()
    again = await api.post(f"{at}/pause", headers=KEY)
    assert (again.status_code, again.json()) == (200, resumed)
    problem(await api.post(f"{at}/resume", headers=KEY), 422)


async def test_a_repeated_cancel_is_answered_not_refused(api, new_job):
    job = await new_job()
    run = (await api.post(f"/v1/jobs/{job['id']}/run")).json()
    first = await api.post(f"/v1/runs/{run['id']}/cancel", headers=KEY)
    again = await api.post(f"/v1/runs/{run['id']}/cancel", headers=KEY)
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    problem(await api.post(f"/v1/runs/{run['id']}/cancel"), 409)


async def test_a_repeated_sync_reports_what_the_first_did(api):
    body = {"source": "f", "jobs": [JOB]}
    first = await api.post("/v1/jobs/sync", json=body, headers=KEY)
    assert first.json()["created"] == ["nightly"]
    assert (await api.post("/v1/jobs/sync", json=body, headers=KEY)).json() == first.json()
    problem(await api.post("/v1/jobs/sync", json={**body, "prune": True}, headers=KEY), 422)


async def test_rows_of_the_release_before_are_repeats(app, api):
    """Their fingerprints were made another way: during an upgrade a repeat must find the job, not 422."""
    made = (await api.post("/v1/jobs", json=JOB, headers=KEY)).json()

    async def as_before(tx):
        await tx.sql(f"UPDATE idempotency SET fingerprint = '{'0' * 64}'")

    await app.context.service.store.driver.transact_slow(as_before)
    assert (await api.post("/v1/jobs", json=JOB, headers=KEY)).json()["id"] == made["id"]
    assert (await api.post("/v1/jobs/batch", json=[JOB], headers=KEY)).status_code == 200
    problem(await api.post(f"/v1/jobs/{made['id']}/run", headers=KEY), 422)  # what was kept is no answer to this
