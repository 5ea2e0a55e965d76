"""Chains over HTTP: who follows whom, what they are told, and what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.api.conftest import JOB, both_ways, problem
from tests.api.executor import FAILED, OK, TinyNode

FAR = {"at": "2099-01-01T00:00:00Z"}


def job(key: str | None, **fields: Any) -> dict[str, Any]:
    return {"key": key, "schedule": FAR, "target": JOB["target"], **fields}


@both_ways
async def test_a_job_says_who_follows_it(api):
    assert (await api.post("/v1/jobs", json=job("b"))).status_code == 201
    made = await api.post("/v1/jobs", json=job("a", on_success=["b"], on_failure=["b"], on_finish=[]))
    assert made.status_code == 201, made.text
    body = made.json()
    assert [body[field] for field in ("on_success", "on_failure", "on_finish")] == [["b"], ["b"], []]
    found = (await api.get("/v1/jobs/by-key/a")).json()
    assert {**found, "stats": None} == {**body, "stats": None}
    sent_back = {
        name: found[name] for name in ("key", "schedule", "target", "policy", "on_success", "on_failure", "on_finish")
    }
    assert (await api.put(f"/v1/jobs/{found['id']}", json=sent_back)).json()["version"] == 1
    assert (await api.get(f"/v1/jobs/{found['id']}/explain")).json()["on_failure"] == ["b"]
    b = (await api.get("/v1/jobs/by-key/b")).json()["id"]
    links = (await api.get("/v1/jobs/by-key/a/chain")).json()
    assert links == {
        "follows": [],
        "followers": [{"on": on, "id": b, "key": "b"} for on in ("on_success", "on_failure")],
    }
    assert (await api.get(f"/v1/jobs/{b}/chain")).json()["follows"] == [
        {"on": on, "id": found["id"], "key": "a"} for on in ("on_failure", "on_success")
    ]
    cleared = await api.patch(f"/v1/jobs/{found['id']}", json={"on_success": None, "on_failure": []})
    assert (cleared.json()["on_success"], cleared.json()["on_failure"], cleared.json()["version"]) == ([], [], 2)
    assert (await api.delete("/v1/jobs/by-key/b")).status_code == 204


@pytest.mark.parametrize(
    ("fields", "path", "given"),
    [
        ({"on_success": ["nobody"]}, "on_success[0]", "nobody"),
        ({"on_failure": ["b", "a"]}, "on_failure[1]", "a"),
        ({"on_success": ["b", "b"]}, "on_success[1]", "b"),
        ({"on_success": ["b"], "on_finish": ["b"]}, "on_success[0]", "b"),
        ({"on_finish": "b"}, "on_finish", "b"),
        ({"on_finish": ["no key"]}, "on_finish[0]", "no key"),
        ({"on_finish": [f"k{n}" for n in range(101)]}, "on_finish", None),
    ],
)
async def test_a_wrong_name_is_refused_with_its_place(api, fields, path, given):
    await api.post("/v1/jobs", json=job("b"))
    for answer in (
        await api.post("/v1/jobs", json=job("a", **fields)),
        await api.put("/v1/jobs/by-key/a", json=job("a", **fields)),
    ):
        (error,) = problem(answer, 422)["errors"]
        assert error["path"] == path
        assert given is None or error["given"] == given
        assert error["accepted"]
    assert (await api.get("/v1/jobs/by-key/a")).status_code == 404


async def test_jobs_of_a_batch_name_each_other_in_any_order(api):
    batch = [
        job("first", on_success=["second"]),
        job("wrong", on_success=["nobody"]),
        job("second", on_finish=["third"]),
        job("x", on_success=["y"]),
        job("third"),
        job("y", on_success=["x"]),
    ]
    items = (await api.post("/v1/jobs/batch", json=batch)).json()
    assert [item["status"] for item in items] == [201, 422, 201, 422, 201, 422]
    assert "x → y → x" in items[3]["errors"][0]["message"]
    again = (await api.post("/v1/jobs/batch", json=batch, headers={"idempotency-key": "k"})).json()
    assert [item["status"] for item in again] == [409, 422, 409, 422, 409, 422]
    answer = await api.delete("/v1/jobs/by-key/third")
    assert "on_finish of job" in problem(answer, 409)["detail"]
    assert "'second'" in answer.json()["detail"]


async def test_a_repeated_batch_answers_with_the_same_jobs(api):
    batch, key = [job("first", on_success=["second"]), job("second")], {"idempotency-key": "once"}
    first = (await api.post("/v1/jobs/batch", json=batch, headers=key)).json()
    assert [item["status"] for item in first] == [201, 201]
    assert (await api.post("/v1/jobs/batch", json=batch, headers=key)).json() == first
    one = await api.post("/v1/jobs", json=job("zero", on_success=["first"]), headers={"idempotency-key": "one"})
    same = await api.post("/v1/jobs", json=job("zero", on_success=["first"]), headers={"idempotency-key": "one"})
    assert (one.status_code, same.json()["id"]) == (201, one.json()["id"])


@pytest.mark.parametrize(("outcome", "status"), [(OK, "DONE"), (FAILED, "FAILED")])
async def test_the_run_that_is_started_says_by_what(api, app, fake_clock, outcome, status):
    node, store = TinyNode(app.context.service.store), app.context.service.store
    await node.register()
    await api.post("/v1/jobs", json=job("b"))
    await api.post("/v1/jobs", json=job("a", on_finish=["b"]))
    run = (await api.post("/v1/jobs/by-key/a/run")).json()
    assert run["trigger"] == {"kind": "manual", "actor": "open"}
    await node.end(await node.claim(), outcome)
    carried = await store.carry_out_notes()
    assert carried is not None
    ended = (await api.get(f"/v1/runs/{run['id']}")).json()
    (follower,) = ended["followers"]
    started = (await api.get(f"/v1/runs/{follower}")).json()
    assert started["trigger"] == {"kind": "chain", "run_id": run["id"]}
    assert started["params"]["trigger"] == {
        "job_key": "a",
        "job_id": run["job_id"],
        "run_id": run["id"],
        "status": status,
        "result": ended["result"],
        "error": ended["error"],
    }
    listed = (await api.get("/v1/jobs/by-key/b/runs")).json()["items"]
    assert [(item["id"], item["kind"], item["trigger"]["run_id"]) for item in listed] == [
        (follower, "chain", run["id"])
    ]
    assert "followers" not in listed[0]


async def test_a_body_may_name_what_a_chain_gives(api):
    body = {
        "by": {"$": "params.trigger.run_id"},
        "rows": {"$": "params.trigger.result.rows"},
        "all": {"$": "params.trigger"},
    }
    target = {**JOB["target"], "body": body}
    assert (await api.post("/v1/jobs", json=job("b", target=target))).status_code == 201
    wrong = {**JOB["target"], "body": {"by": {"$": "params.trigger.nothing"}}}
    (error,) = problem(await api.post("/v1/jobs", json=job("c", target=wrong)), 422)["errors"]
    assert (error["path"], error["given"]) == ("target.body.by.$", "params.trigger.nothing")


async def test_keys_are_those_of_the_tenant(keyed):
    assert (await keyed["other"].post("/v1/jobs", json=job("b"))).status_code == 201
    answer = await keyed["write"].post("/v1/jobs", json=job("a", on_success=["b"]))
    assert problem(answer, 422)["errors"][0]["message"] == "no job has this key"


async def test_creates_that_close_a_cycle_from_both_sides(api):
    for key in ("a", "b"):
        await api.post("/v1/jobs", json=job(key))
    answers = await asyncio.gather(
        api.patch("/v1/jobs/by-key/a", json={"on_success": ["b"]}),
        api.patch("/v1/jobs/by-key/b", json={"on_success": ["a"]}),
    )
    assert sorted(answer.status_code for answer in answers) == [200, 422]
