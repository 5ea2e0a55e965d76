"""Bulk operations over HTTP."""

from __future__ import annotations

import pytest

from tests.api.conftest import paths, problem


async def work_off(app):
    while await app.context.service.store.work_off_operation("n1") is not None:
        pass


async def test_all_that_match_are_counted_then_paused(api, app, new_job):
    for n in range(3):
        await new_job(key=f"a{n}", tags=["x"])
    other = await new_job(key="b")
    body = {"verb": "pause", "filter": {"tag": "x"}, "params": {"note": "maintenance"}}
    counted = await api.post("/v1/operations", json={**body, "dry_run": True})
    assert (counted.status_code, counted.json()["total"], counted.json()["total_exact"]) == (200, 3, True)
    assert [item["key"] for item in counted.json()["sample"]] == ["a2", "a1", "a0"]
    assert (await api.get("/v1/operations")).json() == {"items": [], "next": None}
    started = await api.post("/v1/operations", json=body, headers={"Idempotency-Key": "k"})
    again = await api.post("/v1/operations", json=body, headers={"Idempotency-Key": "k"})
    assert (started.status_code, again.json()) == (202, started.json())
    assert started.json()["state"] == "running"
    place = started.headers["location"]
    await work_off(app)
    ended = (await api.get(place)).json()
    assert (ended["state"], ended["done"], ended["total"], ended["errors"]) == ("done", 3, 3, [])
    assert (await api.get("/v1/jobs/by-key/a1")).json()["pause"]["note"] == "maintenance"
    assert (await api.get(f"/v1/jobs/{other['id']}")).json()["state"] == "active"
    assert [each["id"] for each in (await api.get("/v1/operations")).json()["items"]] == [ended["id"]]
    problem(await api.post(f"{place}/abort"), 409)


async def test_abort_answers_with_the_operation(api, app, new_job):
    await new_job()
    started = (await api.post("/v1/operations", json={"verb": "delete", "filter": {}})).json()
    aborted = await api.post(f"/v1/operations/{started['id']}/abort")
    assert (aborted.status_code, aborted.json()["state"], aborted.json()["done"]) == (200, "aborted", 0)
    await work_off(app)
    assert len((await api.get("/v1/jobs")).json()["items"]) == 1
    problem(await api.get("/v1/operations/77"), 404)
    problem(await api.post("/v1/operations/x/abort"), 404)


async def test_pause_and_resume_answer_with_the_operation(api, app, new_job):
    await new_job()
    place = (await api.post("/v1/operations", json={"verb": "delete", "filter": {}})).headers["location"]
    paused = await api.post(f"{place}/pause")
    assert (paused.status_code, paused.json()["state"], paused.json()["finished_at"]) == (200, "paused", None)
    await work_off(app)
    assert len((await api.get("/v1/jobs")).json()["items"]) == 1
    resumed = await api.post(f"{place}/resume", json={})
    assert (resumed.status_code, resumed.json()["state"]) == (200, "running")
    await work_off(app)
    assert (await api.get("/v1/jobs")).json()["items"] == []
    for verb in ("pause", "resume"):
        assert "already ended: done" in problem(await api.post(f"{place}/{verb}"), 409)["detail"]
        problem(await api.post(f"/v1/operations/77/{verb}"), 404)
        assert paths(problem(await api.post(f"{place}/{verb}", json={"note": "x"}), 422)) == ["note"]
    for verb in ("resume_operation", "pause_operation"):
        assert len((await api.get(f"/v1/audit?verb={verb}")).json()["items"]) == 1


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"verb": "explode", "filter": {}}, "verb"),
        ({"verb": "pause"}, "filter"),
        ({"verb": "pause", "filter": {}, "ids": [1]}, "filter"),
        ({"verb": "pause", "filter": {"colour": "red"}}, "filter.colour"),
        ({"verb": "pause", "filter": {"job_id": 1}}, "filter.job_id"),
        ({"verb": "redrive", "filter": {"tag": "x"}}, "filter.tag"),
        ({"verb": "pause", "filter": {"status": "odd"}}, "filter.status"),
        ({"verb": "pause", "filter": {"target": "odd"}}, "filter.target"),
        ({"verb": "pause", "filter": {"next_before": "soon"}}, "filter.next_before"),
        ({"verb": "pause", "ids": ["1-1"]}, "ids[0]"),
        ({"verb": "pause", "ids": []}, "ids"),
        ({"verb": "redrive", "ids": [1]}, "ids[0]"),
        ({"verb": "pause", "filter": {}, "rate": 0}, "rate"),
        ({"verb": "pause", "filter": {}, "params": {"until": "2000-01-01T00:00:00Z"}}, "params.until"),
        ({"verb": "pause", "filter": {}, "params": {"until": "x"}}, "params.until"),
        ({"verb": "resume", "filter": {}, "params": {"note": "x"}}, "params.note"),
        ({"verb": "tag", "filter": {}}, "params"),
        ({"verb": "tag", "filter": {}, "params": {"add": ["a"], "remove": ["a"]}}, "params.remove"),
        ({"verb": "backfill", "filter": {}, "params": {"start": "2026-03-01T00:00:00Z"}}, "params.end"),
        (
            {
                "verb": "backfill",
                "filter": {},
                "params": {"start": "2026-03-02T00:00:00Z", "end": "2026-03-01T00:00:00Z"},
            },
            "params.end",
        ),
        ({"verb": "redrive", "filter": {}, "params": {"first": 0}}, "params.first"),
    ],
)
async def test_a_wrong_request_says_what_is_wrong_and_starts_nothing(api, body, wrong):
    assert paths(problem(await api.post("/v1/operations", json=body), 422)) == [wrong]
    assert (await api.get("/v1/operations")).json()["items"] == []


async def test_tenants_see_their_own_and_readers_start_none(keyed):
    problem(await keyed["read"].post("/v1/operations", json={"verb": "pause", "filter": {}}), 403)
    started = await keyed["write"].post("/v1/operations", json={"verb": "pause", "filter": {}})
    assert started.json()["actor"] == "write"
    place = started.headers["location"]
    assert (await keyed["read"].get(place)).status_code == 200
    problem(await keyed["other"].get(place), 404)
    for verb in ("abort", "pause", "resume"):
        problem(await keyed["other"].post(f"{place}/{verb}"), 404)
        problem(await keyed["read"].post(f"{place}/{verb}"), 403)
