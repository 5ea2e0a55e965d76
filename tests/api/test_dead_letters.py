"""Dead letters over HTTP."""

from __future__ import annotations

import pytest

from tests.api.conftest import paths, problem
from tests.api.executor import FAILED


@pytest.fixture
async def dead(api, new_job, node):
    """Two jobs with two dead letters each."""
    found = {}
    for key in ("a", "b"):
        job = await new_job(key=key)
        for _ in range(2):
            await api.post(f"/v1/jobs/{job['id']}/run")
        found[job["id"]] = await node.work(FAILED)
    return found


async def test_they_are_listed_by_page_and_by_job(api, dead):
    everything = (await api.get("/v1/dead")).json()
    assert {run["id"] for run in everything["items"]} == {run for runs in dead.values() for run in runs}
    assert {run["status"] for run in everything["items"]} == {"FAILED"}
    first, second = dead
    of_one = (await api.get(f"/v1/dead?job_id={first}")).json()["items"]
    assert {run["id"] for run in of_one} == set(dead[first])
    page = (await api.get("/v1/dead?limit=3")).json()
    rest = (await api.get(page["next"])).json()
    assert len({run["id"] for run in page["items"] + rest["items"]}) == 4
    assert (rest["next"], second in dead) == (None, True)


async def test_redrive_by_id_by_job_and_all(api, dead):
    first, second = dead
    by_id = await api.post("/v1/dead/redrive", json={"ids": [dead[first][0]]})
    assert (by_id.status_code, len(by_id.json()["runs"])) == (201, 1)
    by_job = await api.post("/v1/dead/redrive", json={"job_id": second, "limit": 1})
    assert len(by_job.json()["runs"]) == 1
    rest = await api.post("/v1/dead/redrive")
    assert len(rest.json()["runs"]) == 2
    assert (await api.get("/v1/dead")).json()["items"] == []
    assert (await api.post("/v1/dead/redrive", json={})).json()["runs"] == []
    for run_id in by_id.json()["runs"]:
        assert (await api.get(f"/v1/runs/{run_id}")).json()["kind"] == "redrive"


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"ids": ["x"]}, ["ids"]),
        ({"ids": "1-1"}, ["ids"]),
        ({"ids": ["1-1"] * 1001}, ["ids"]),
        ({"job_id": 0}, ["job_id"]),
        ({"job_id": "1"}, ["job_id"]),
        ({"limit": 0}, ["limit"]),
        ({"limit": 1001}, ["limit"]),
        ({"all": True}, ["all"]),
    ],
)
async def test_a_wrong_redrive_says_what_is_wrong(api, body, wrong):
    found = paths(problem(await api.post("/v1/dead/redrive", json=body), 422))
    assert [path for path in found if not path.startswith(wrong[0])] == []


async def test_ids_that_are_not_dead_letters_are_passed_over(api, dead):
    assert (await api.post("/v1/dead/redrive", json={"ids": ["1-1", "77-1700000000000-m3"]})).json()["runs"] == []
    assert len((await api.get("/v1/dead")).json()["items"]) == 4


async def test_an_update_of_a_dead_one_off_fires_it_again_and_says_so(api, new_job, node, fake_clock):
    job = await new_job(key="once", schedule={"in": "1s"})
    fake_clock.step_wall(2000)
    assert len(await node.work(FAILED)) == 1
    path = f"/v1/jobs/{job['id']}"
    ended = (await api.get(path)).json()
    assert (ended["state"], ended["next_run"]) == ("ended", None)
    same = await api.patch(path, json={"target": {"url": ended["target"]["url"]}})
    assert same.json()["state"] == "ended", "nothing has changed"
    fake_clock.step_wall(60_000)
    revived = (await api.patch(path, json={"target": {"url": "https://right.example.com/"}})).json()
    assert revived["state"] == "active"
    assert revived["next_run"] is not None
    (run,) = await node.work()
    assert (await api.get(f"/v1/runs/{run}")).json()["kind"] == "redrive"
    assert (await api.get(path)).json()["state"] == "ended"
    assert (await api.patch(path, json={"name": "x"})).json()["state"] == "ended", "it has succeeded"


async def test_groups_discards_and_a_redrive_in_the_background(api, app, dead):
    first, second = dead
    (group,) = (await api.get("/v1/dead/groups")).json()["items"]
    assert (group["count"], group["jobs"]) == (4, 2)
    cause = group["cause"]
    listed = (await api.get("/v1/dead", params={"cause": cause, "job_id": first})).json()["items"]
    assert {(run["id"], run["cause"]) for run in listed} == {(run, cause) for run in dead[first]}
    assert (await api.get("/v1/dead?cause=other")).json()["items"] == []
    closed = await api.post("/v1/dead/discard", json={"ids": [dead[first][0]], "note": "too old"})
    assert (closed.status_code, closed.json()) == (200, {"discarded": [dead[first][0]]})
    (noted,) = (await api.get("/v1/dead?discarded=true")).json()["items"]
    assert (noted["id"], noted["discarded"]["note"]) == (dead[first][0], "too old")
    by_filter = await api.post("/v1/dead/redrive", json={"filter": {"job_id": first, "cause": cause}})
    assert (by_filter.status_code, len(by_filter.json()["runs"])) == (201, 1)
    started = await api.post("/v1/dead/redrive", json={"filter": {"job_id": second}, "rate": 100, "first": 2})
    assert (started.status_code, started.json()["verb"], started.json()["total"]) == (202, "redrive", 2)
    while await app.context.service.store.work_off_operation("n1") is not None:
        pass
    ended = (await api.get(started.headers["location"])).json()
    assert (ended["done"], ended["waiting_for"]) == (2, 2)
    assert (await api.get("/v1/dead")).json()["items"] == []


@pytest.mark.parametrize(
    ("path", "body", "wrong"),
    [
        ("discard", {"note": "x"}, "filter"),
        ("discard", {"ids": ["1-1"], "filter": {}}, "filter"),
        ("discard", {"filter": {"since": "soon"}}, "filter.since"),
        ("discard", {"filter": {"tag": "x"}}, "filter.tag"),
        ("discard", {"filter": {}, "note": ""}, "note"),
        ("redrive", {"job_id": 1, "filter": {}}, "filter"),
        ("redrive", {"filter": {"until": "soon"}, "rate": 1}, "filter.until"),
        ("redrive", {"ids": [], "rate": 1}, "ids"),
        ("redrive", {"first": 0}, "first"),
    ],
)
async def test_a_wrong_selection_changes_nothing(api, dead, path, body, wrong):
    assert paths(problem(await api.post(f"/v1/dead/{path}", json=body), 422)) == [wrong]
    assert len((await api.get("/v1/dead")).json()["items"]) == 4


async def test_a_run_is_retried_with_other_params(api, dead):
    (run, *_), *_ = dead.values()
    again = await api.post(f"/v1/runs/{run}/retry", json={"params": {"day": 2}})
    assert (again.status_code, again.json()["params"]) == (201, {"day": 2})
    assert paths(problem(await api.post(f"/v1/runs/{run}/retry", json={"params": 3}), 422)) == ["params"]
    assert paths(problem(await api.post(f"/v1/runs/{run}/retry", json={"param": {}}), 422)) == ["param"]
