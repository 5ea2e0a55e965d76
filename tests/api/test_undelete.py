"""Delete and take it back, over HTTP."""

from __future__ import annotations

from tests.api.conftest import JOB, problem


async def test_a_delete_is_taken_back(api):
    job = (await api.post("/v1/jobs", json=JOB)).json()
    address = f"/v1/jobs/{job['id']}"
    problem(await api.post(f"{address}/undelete"), 409)
    assert (await api.delete(address)).status_code == 204
    problem(await api.get(address), 404)
    assert (await api.get("/v1/jobs")).json()["items"] == []
    problem(await api.post(f"{address}/undelete", json={"a": 1}), 422)
    back = await api.post(f"{address}/undelete", headers={"idempotency-key": "k"})
    assert (back.status_code, back.headers["etag"], back.json()) == (200, '"1"', job)
    assert (await api.post(f"{address}/undelete", headers={"idempotency-key": "k"})).json() == job
    assert (await api.delete(address)).status_code == 204
    assert (await api.post(f"/v1/jobs/by-key/{JOB['key']}/undelete")).json() == job
    problem(await api.post("/v1/jobs/99/undelete"), 404)
    problem(await api.post("/v1/jobs/by-key/none/undelete"), 404)


async def test_it_takes_the_scope_and_the_tenant(keyed):
    job = (await keyed["write"].post("/v1/jobs", json=JOB)).json()
    address = f"/v1/jobs/{job['id']}"
    await keyed["write"].delete(address)
    problem(await keyed["read"].post(f"{address}/undelete"), 403)
    problem(await keyed["other"].post(f"{address}/undelete"), 404)
    assert (await keyed["write"].post(f"{address}/undelete")).status_code == 200
