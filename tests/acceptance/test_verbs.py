"""Section 5: what people do to jobs and runs, in bulk too, and results that come later."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.acceptance.product import Product
from tests.acceptance.receiver import Receiver
from tests.services.waiting import until_blocking as until

# Real processes on a machine that may be busy; one client of the product for all tests.
pytestmark = [pytest.mark.timeout(180), pytest.mark.keeps_connections]

SOON = {"in": "100ms"}
RUN = """id job_id key scheduled_for due_at status attempt node started_at finished_at lateness_ms duration_ms outcome
    error params result progress trigger waiting attempts""".split()  # noqa: SIM905  # as the contract has it


def hook(receiver: Receiver, path: str, **fields: Any) -> dict[str, Any]:
    return {"type": "webhook", "url": receiver.url + path, **fields}


def at(product: Product, job: dict[str, Any], verb: str = "", **more: Any) -> httpx.Response:
    return product.http.post(f"/v1/jobs/{job['id']}/{verb}", **more)


def test_a_run_has_every_field_in_lists_and_alone(product, receiver):
    path = f"/500,200/fields/{product.port}"
    policy = {"retry": {"backoff": "50ms"}}
    job = product.job(key="fields", schedule=SOON, target=hook(receiver, path), policy=policy)
    listed = product.ended(job)
    alone = product.http.get(f"/v1/runs/{listed['id']}").json()
    assert set(RUN) <= set(listed)
    assert {*RUN, "request", "response"} <= set(alone)
    assert [listed[name] for name in RUN] == [alone[name] for name in RUN]
    assert (alone["key"], alone["trigger"]["kind"], len(alone["attempts"])) == ("fields", "schedule", 2)


def test_the_status_of_a_job(product):
    job = product.job(key="status", owner="ann")
    for address in (f"/v1/jobs/{job['id']}/status", "/v1/jobs/by-key/status/status"):
        said = product.http.get(address).json()
        assert {"execution_time", "key", "job_id", "user_id", "status", "attempt"} <= set(said)
        assert said["key"] == f"{said['execution_time']}-{job['id']}"
        assert (said["job_id"], said["user_id"], said["status"]) == (job["id"], "ann", "PENDING")


def test_run_now_and_params_of_a_run(product, receiver):
    path = f"/params/{product.port}"
    job = product.job(run_now=True, params={"a": 1, "b": 2}, target=hook(receiver, path))
    assert product.ended(job)["trigger"]["kind"] == "manual"
    assert product.http.get(f"/v1/jobs/{job['id']}").json()["next_run"]
    assert at(product, job, "run", json={"params": {"a": 9}}).status_code == 201
    until(lambda: len(receiver.arrivals(path)) == 2, "both runs are heard")
    assert sorted(json.loads(each.body)["a"] for each in receiver.arrivals(path)) == [1, 9]


def test_a_chain_tells_what_started_it_and_holds_its_jobs(product, receiver):
    second = product.job(key="chain-b", target=hook(receiver, f"/chained/{product.port}"))
    first = product.job(key="chain-a", on_success=["chain-b"], target=hook(receiver, f"/first/{product.port}"))
    assert product.http.delete(f"/v1/jobs/{second['id']}").status_code == 409
    at(product, first, "run")
    started = product.ended(second)
    assert set(started["params"]["trigger"]) >= {"job_key", "job_id", "run_id", "status", "result", "error"}
    assert (started["trigger"]["kind"], started["params"]["trigger"]["job_key"]) == ("chain", "chain-a")


def test_slots_are_skipped_and_definitions_restored(product):
    job = product.job(key="slots", schedule={"cron": "0 * * * *"})
    skipped = at(product, job, "skip", json={"slot": job["next_run"]}).json()
    assert skipped["next_run"] > job["next_run"]
    explained = product.http.get(f"/v1/jobs/{job['id']}/explain", params={"at": job["next_run"]}).json()
    assert explained["run"]["status"] == "SKIPPED"
    product.http.patch(f"/v1/jobs/{job['id']}", json={"name": "other"})
    oldest = product.http.get(f"/v1/jobs/{job['id']}/versions").json()["items"][-1]["version"]
    assert at(product, job, f"versions/{oldest}/restore").json()["name"] is None
    assert product.http.delete(f"/v1/jobs/{job['id']}").status_code == 204
    assert at(product, job, "undelete").json()["key"] == "slots"


def test_a_pause_keeps_its_note_and_ends_by_itself(product):
    job = product.job()
    paused = at(product, job, "pause", json={"note": "why", "until": "2031-01-01T00:00:00Z"}).json()
    assert (paused["state"], paused["pause"]["note"]) == ("paused", "why")
    assert paused["pause"]["until"] == "2031-01-01T00:00:00.000Z"
    assert at(product, job, "resume").json()["state"] == "active"
    for verb in ("run", "pause", "resume", "skip", "backfill"):
        assert at(product, job, verb, json={"nonsense": 1}).status_code == 422


@pytest.mark.parametrize(
    ("retry", "status"),
    [
        ({"plan": "quick"}, 201),
        ({"plan": "standard", "max_age": "1h"}, 201),
        ({"until": "next_slot"}, 201),
        *(({"plan": "quick", name: value}, 422) for name, value in
          (("attempts", 2), ("backoff", "1s"), ("factor", 2), ("max", "1m"))),
        ({"plan": "slow"}, 422),
    ],
)  # fmt: skip
def test_retry_plans_exclude_what_they_replace(product, retry, status):
    body = {"schedule": {"every": "1d"}, "target": {"type": "webhook", "url": "http://127.0.0.1:9/never"}}
    assert product.http.post("/v1/jobs", json={**body, "policy": {"retry": retry}}).status_code == status


def test_operations_count_first_and_tell_their_progress(product):
    jobs = [product.job(key=f"bulk-{n}", tags=["bulk"]) for n in range(3)]
    asked = {"verb": "pause", "filter": {"tag": "bulk"}, "params": {"note": "all"}}
    counted = product.http.post("/v1/operations", json={**asked, "dry_run": True})
    assert (counted.status_code, counted.json()["total"]) == (200, 3)
    started = product.http.post("/v1/operations", json=asked)
    assert started.status_code == 202
    address = f"/v1/operations/{started.json()['id']}"
    ended = until(lambda: (said := product.http.get(address).json())["state"] == "done" and said, "all are paused")
    assert (ended["done"], ended["failed"]) == (3, 0)
    assert {product.http.get(f"/v1/jobs/{job['id']}").json()["state"] for job in jobs} == {"paused"}
    assert product.http.post(f"{address}/abort").status_code in (200, 409)


def accepted(product: Product, receiver: Receiver, path: str, **policy: Any) -> tuple[dict[str, Any], str]:
    target = hook(receiver, path)
    job = product.job(
        schedule=SOON, target=target, policy={"completion": "callback", "retry": {"attempts": 1}, **policy}
    )
    (arrival, *_) = until(lambda: receiver.arrivals(path), "it is called")
    return job, arrival.headers["x-onthedot-callback"]


def test_a_callback_ends_the_run_once(product, receiver):
    job, callback = accepted(product, receiver, f"/later/{product.port}")
    (run,) = until(lambda: [each for each in product.runs(job, "EXECUTING") if each["waiting"]], "it is accepted")
    assert run["waiting"] == "callback"
    progress = callback.replace("/complete", "/progress")
    assert product.http.post(progress, json={"percent": 50, "message": "half"}).status_code == 204
    for wrong in ({}, {"status": "x"}, {"status": "done", "more": 1}, {"status": "done", "result": "x" * 66_000}):
        assert product.http.post(callback, json=wrong).status_code == 422
    done = product.http.post(callback, json={"status": "done", "result": {"n": 1}})
    assert (done.status_code, done.json()["status"], done.json()["result"]) == (200, "DONE", {"n": 1})
    again = product.http.post(callback, json={"status": "failed"})
    assert (again.status_code, again.json()["status"]) == (200, "DONE")
    assert product.ended(job)["result"] == {"n": 1}, "a list has small results"


def test_a_callback_that_is_too_late_is_409(product, receiver):
    job, callback = accepted(product, receiver, f"/too-late/{product.port}", completion_timeout="1s")
    assert product.ended(job)["status"] == "FAILED"
    refused = product.http.post(callback, json={"status": "done"})
    assert (refused.status_code, refused.headers["content-type"]) == (409, "application/problem+json")


def test_410_pauses_the_job_with_the_reason(product, receiver):
    job = product.job(target=hook(receiver, f"/410/{product.port}"))
    at(product, job, "run")
    assert product.ended(job)["status"] == "FAILED"
    address = f"/v1/jobs/{job['id']}"
    paused = until(lambda: (said := product.http.get(address).json())["state"] == "paused" and said, "it is paused")
    assert "410" in paused["pause"]["note"]
