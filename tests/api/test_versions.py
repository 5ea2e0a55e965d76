"""Versions of a job over HTTP: who changed it, what it was, and back."""

from __future__ import annotations

from tests.api.conftest import JOB, problem

SIGNED = {**JOB, "target": {**JOB["target"], "secret": "whsec_" + "a" * 32}}


async def test_back_to_what_it_was(api, app):
    job = (await api.post("/v1/jobs", json=SIGNED)).json()
    address = f"/v1/jobs/{job['id']}"
    await api.patch(address, json={"name": "second", "schedule": {"cron": "0 4 * * *"}})
    await api.post(f"{address}/pause")
    await api.patch(address, json={"target": {"secret": "whsec_" + "b" * 32}})
    found = (await api.get(f"{address}/versions")).json()
    assert [(each["version"], each["verb"], each["actor"]) for each in found["items"]] == [
        (4, "edit", "open"),
        (3, "pause", "open"),
        (2, "edit", "open"),
        (1, "create", None),
    ]
    assert "whsec" not in str(found)
    assert found["items"][-1]["spec"]["schedule"] == JOB["schedule"]

    problem(await api.post(f"{address}/versions/1/restore", headers={"if-match": '"3"'}), 412)
    problem(await api.post(f"{address}/versions/9/restore"), 404)
    problem(await api.post(f"{address}/versions/x/restore"), 404)
    problem(await api.post(f"{address}/versions/1/restore", json={"a": 1}), 422)
    once = {"idempotency-key": "k", "if-match": '"4"'}
    back = (await api.post(f"/v1/jobs/by-key/{JOB['key']}/versions/1/restore", headers=once)).json()
    assert (back["version"], back["name"], back["schedule"], back["state"]) == (5, None, JOB["schedule"], "paused")
    again = (await api.post(f"/v1/jobs/by-key/{JOB['key']}/versions/1/restore", headers=once)).json()
    assert again["version"] == 5
    kept = await app.context.service.store.get_record(1, job["id"])
    assert kept.spec.target.secret == "whsec_" + "b" * 32, "a secret that was replaced must not come back"


async def test_a_secret_of_then_comes_back_where_there_is_none_now(api, app):
    job = (await api.post("/v1/jobs", json=SIGNED)).json()
    address = f"/v1/jobs/{job['id']}"
    await api.patch(address, json={"target": {"type": "command", "command": "backup"}})
    await api.post(f"{address}/versions/1/restore")
    kept = await app.context.service.store.get_record(1, job["id"])
    assert kept.spec.target.secret == SIGNED["target"]["secret"]


async def test_the_key_is_named_that_changed_it(app, keyed):
    job = (await keyed["write"].post("/v1/jobs", json=JOB)).json()
    address = f"/v1/jobs/{job['id']}"
    await keyed["admin"].patch(address, json={"name": "x"})
    found = (await keyed["read"].get(f"{address}/versions?limit=1")).json()
    assert [(each["version"], each["actor"], each["actor_kind"]) for each in found["items"]] == [(2, "admin", "key")]
    assert (await keyed["read"].get(found["next"])).json()["items"][0]["version"] == 1
    problem(await keyed["read"].post(f"{address}/versions/1/restore"), 403)
    problem(await keyed["other"].get(f"{address}/versions"), 404)
