"""Concurrency groups over HTTP: what is refused and why, and how they are listed."""

from __future__ import annotations

from tests.api.conftest import JOB, paths, problem


async def test_a_group_is_read_back_listed_and_taken_away(api):
    group = {"group": "db", "limit": 3}
    made = (await api.post("/v1/jobs", json={**JOB, "policy": {"concurrency": group}})).json()
    assert made["policy"]["concurrency"] == group
    assert "max_running" not in made["policy"]
    page = (await api.get("/v1/groups")).json()
    assert page == {
        "items": [
            {
                "group": "db",
                "job_id": None,
                "limit": 3,
                "highest_limit": 3,
                "running": 0,
                "waiting": 0,
                "waiting_since": None,
            }
        ]
    }
    path = f"/v1/jobs/{made['id']}"
    patched = await api.patch(path, json={"policy": {"concurrency": None, "max_running": 2}})
    assert patched.status_code == 200
    assert "concurrency" not in patched.json()["policy"]
    (item,) = (await api.get("/v1/groups")).json()["items"]
    assert (item["group"], item["job_id"], item["limit"]) == (None, made["id"], 2)


async def test_what_is_wrong_is_named_and_changes_nothing(api):
    wrong = {"concurrency": {"group": "no spaces", "limit": 0, "size": 1}, "max_running": 10_001}
    document = problem(await api.post("/v1/jobs", json={**JOB, "policy": wrong}), 422)
    named = {"policy.concurrency.group", "policy.concurrency.limit", "policy.concurrency.size", "policy.max_running"}
    assert named <= set(paths(document))
    both = {"concurrency": {"group": "db", "limit": 1}, "max_running": 1}
    assert paths(problem(await api.post("/v1/jobs", json={**JOB, "policy": both}), 422)) == ["policy.max_running"]
    assert (await api.get("/v1/groups")).json() == {"items": []}
    assert (await api.get("/v1/groups?limit=3")).status_code == 422


async def test_metrics_tell_how_many_wait(api):
    text = (await api.get("/metrics")).text
    assert "onthedot_group_runs_waiting 0.0" in text
    assert "onthedot_group_wait_seconds 0.0" in text
