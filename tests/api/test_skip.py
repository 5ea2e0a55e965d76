"""Skip a slot over HTTP, and take that back."""

from __future__ import annotations

from tests.api.conftest import JOB, problem

HOURLY = {**JOB, "schedule": {"cron": "0 * * * *"}}


async def test_a_slot_is_skipped_and_taken_back(api):
    job = (await api.post("/v1/jobs", json=HOURLY)).json()
    address = f"/v1/jobs/{job['id']}"
    first, second, third = (await api.get(f"{address}/upcoming?count=3")).json()["fires"]
    refused = problem(await api.post(f"{address}/skip", json={"slot": first.replace(":00:00", ":30:00")}), 422)
    assert first in str(refused) or second in str(refused)
    for wrong in ({}, {"slot": 7}, {"slot": "tomorrow"}, {"slot": second, "a": 1}):
        problem(await api.post(f"{address}/skip", json=wrong), 422)
    problem(await api.post(f"{address}/skip", json={"slot": second}, headers={"if-match": '"9"'}), 412)
    once = {"idempotency-key": "k", "if-match": '"1"'}
    done = await api.post(f"{address}/skip", json={"slot": second}, headers=once)
    assert (done.status_code, done.headers["etag"], done.json()["next_run"]) == (200, '"1"', first)
    problem(await api.post(f"{address}/skip", json={"slot": third}, headers=once), 422)
    by_key = f"/v1/jobs/by-key/{JOB['key']}"
    assert (await api.post(f"{by_key}/skip", json={"slot": first})).json()["next_run"] == third
    found = (await api.get(f"{by_key}/upcoming?count=1")).json()
    assert (found["fires"], [each["slot"] for each in found["skipped"]]) == ([third], [first, second])
    assert {each["actor"] for each in found["skipped"]} == {"open"}
    runs = (await api.get(f"{address}/runs?status=SKIPPED")).json()["items"]
    assert [(run["scheduled_for"], run["reason"]) for run in runs] == [(second, "skipped"), (first, "skipped")]
    why = (await api.get(f"{address}/explain", params={"at": second})).json()
    assert (why["because"], why["run"]["id"]) == ("skipped by someone without a key", runs[0]["id"])
    back = await api.post(f"{address}/unskip", json={"slot": first})
    assert (back.status_code, back.json()["next_run"]) == (200, first)
    problem(await api.post(f"{address}/unskip", json={"slot": first}), 409)
    problem(await api.post("/v1/jobs/99/skip", json={"slot": first}), 404)
    problem(await api.get(f"{address}/upcoming?count=0"), 422)


async def test_it_takes_the_scope_and_the_tenant(keyed):
    job = (await keyed["write"].post("/v1/jobs", json=HOURLY)).json()
    address, slot = f"/v1/jobs/{job['id']}", {"slot": job["next_run"]}
    problem(await keyed["read"].post(f"{address}/skip", json=slot), 403)
    problem(await keyed["other"].post(f"{address}/skip", json=slot), 404)
    problem(await keyed["other"].get(f"{address}/upcoming"), 404)
    assert (await keyed["write"].post(f"{address}/skip", json=slot)).status_code == 200
    (left_out,) = (await keyed["read"].get(f"{address}/upcoming")).json()["skipped"]
    assert (left_out["actor"], left_out["actor_kind"]) == ("write", "key")
