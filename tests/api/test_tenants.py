"""Two tenants on one server do not exist for each other."""

from __future__ import annotations

import pytest

from tests.api.conftest import JOB, problem


@pytest.fixture
async def theirs(keyed):
    """A job of the default tenant, with a run of it."""
    job = (await keyed["write"].post("/v1/jobs", json=JOB)).json()
    run = (await keyed["write"].post(f"/v1/jobs/{job['id']}/run")).json()
    return job["id"], run["id"]


async def test_nothing_of_theirs_is_listed(keyed, theirs):
    other = keyed["other"]
    for address in ("/v1/jobs", "/v1/jobs?q=nightly", "/v1/runs", "/v1/runs?status=PENDING", "/v1/dead"):
        assert (await other.get(address)).json()["items"] == [], address
    assert (await other.get(f"/v1/runs?job_id={theirs[0]}&status=PENDING")).json()["items"] == []


async def test_nothing_of_theirs_can_be_read_or_changed(keyed, theirs):
    job_id, run_id = theirs
    other = keyed["other"]
    for method, address, body in (
        ("GET", f"/v1/jobs/{job_id}", None),
        ("GET", "/v1/jobs/by-key/nightly", None),
        ("PUT", f"/v1/jobs/{job_id}", JOB),
        ("PATCH", f"/v1/jobs/{job_id}", {"name": "mine"}),
        ("DELETE", f"/v1/jobs/{job_id}", None),
        ("POST", f"/v1/jobs/{job_id}/run", None),
        ("POST", f"/v1/jobs/{job_id}/pause", None),
        ("POST", f"/v1/jobs/{job_id}/resume", None),
        ("POST", f"/v1/jobs/{job_id}/backfill", {"start": "2023-01-01T00:00:00Z", "end": "2023-01-02T00:00:00Z"}),
        ("GET", f"/v1/jobs/{job_id}/runs", None),
        ("GET", f"/v1/jobs/{job_id}/explain", None),
        ("GET", f"/v1/jobs/{job_id}/explain?since=2023-01-01T00:00:00Z", None),
        ("GET", f"/v1/jobs/{job_id}/calendar", None),
        ("GET", f"/v1/jobs/{job_id}/chain", None),
        ("GET", f"/v1/runs/{run_id}", None),
        ("GET", f"/v1/runs/{run_id}/logs", None),
        ("POST", f"/v1/runs/{run_id}/cancel", None),
        ("POST", f"/v1/runs/{run_id}/retry", None),
        ("GET", f"/timers/{job_id}", None),
    ):
        problem(await other.request(method, address, json=body), 404)
    unchanged = (await keyed["read"].get(f"/v1/jobs/{job_id}")).json()
    assert (unchanged["version"], unchanged["state"]) == (1, "active")


async def test_the_same_key_names_two_jobs(keyed, theirs):
    made = await keyed["other"].put("/v1/jobs/by-key/nightly", json={**JOB, "name": "ours"})
    assert (made.status_code, made.json()["id"] != theirs[0]) == (201, True)
    assert (await keyed["read"].get("/v1/jobs/by-key/nightly")).json()["name"] is None


async def test_the_same_idempotency_key_means_two_requests(keyed):
    headers = {"idempotency-key": "k"}
    first = await keyed["write"].post("/v1/jobs", json=JOB, headers=headers)
    second = await keyed["other"].post("/v1/jobs", json={**JOB, "key": "else"}, headers=headers)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] != second.json()["id"]


async def test_a_cursor_does_not_open_another_tenants_list(keyed):
    for number in range(3):
        await keyed["write"].post("/v1/jobs", json={**JOB, "key": f"job-{number}"})
    following = (await keyed["read"].get("/v1/jobs?limit=1")).json()["next"]
    answer = await keyed["other"].get(following)
    assert answer.status_code == 422 or answer.json()["items"] == []


async def test_keys_of_others_can_not_be_revoked(keyed):
    ids = [item["id"] for item in (await keyed["admin"].get("/v1/keys")).json()["items"]]
    for key_id in ids:
        problem(await keyed["other"].delete(f"/v1/keys/{key_id}"), 404)
    assert (await keyed["read"].get("/v1/jobs")).status_code == 200
