"""A jobs file applied over HTTP: all of it or nothing."""

from __future__ import annotations

import pytest

from tests.api.conftest import JOB, paths, problem


def job(key: str, **fields):
    return {**JOB, "key": key, **fields}


async def test_a_file_is_applied_and_the_same_again_changes_nothing(api):
    asked = {"source": "jobs.json", "jobs": [job("a"), job("b")]}
    first = await api.post("/v1/jobs/sync", json=asked)
    assert (first.status_code, sorted(first.json()["created"])) == (200, ["a", "b"])
    again = (await api.post("/v1/jobs/sync", json=asked)).json()
    assert (again["created"], sorted(again["unchanged"])) == ([], ["a", "b"])


async def test_what_left_the_file_goes_only_with_prune_and_a_dry_run_only_tells(api):
    await api.post("/v1/jobs/sync", json={"source": "f", "jobs": [job("a"), job("b")]})
    kept = {"source": "f", "jobs": [job("a", name="new")]}
    dry = (await api.post("/v1/jobs/sync", json={**kept, "prune": True, "dry_run": True})).json()
    assert (dry["updated"], dry["removed"]) == (["a"], ["b"])
    assert len((await api.get("/v1/jobs")).json()["items"]) == 2
    assert (await api.post("/v1/jobs/sync", json={**kept, "prune": True})).json()["removed"] == ["b"]
    assert [one["key"] for one in (await api.get("/v1/jobs")).json()["items"]] == ["a"]


async def test_one_wrong_job_and_nothing_is_applied(api):
    asked = {"source": "f", "jobs": [job("a"), {"key": "b", "schedule": {}}, 7, job("d", colour="red")]}
    found = paths(problem(await api.post("/v1/jobs/sync", json=asked), 422))
    assert {"jobs[1].target", "jobs[2]", "jobs[3].colour"} <= set(found)
    assert (await api.get("/v1/jobs")).json()["items"] == []


async def test_a_thousand_wrong_jobs_are_named_as_far_as_anybody_reads(api):
    answer = await api.post("/v1/jobs/sync", json={"source": "f", "jobs": [{}] * 1000})
    assert len(problem(answer, 422)["errors"]) == 100


@pytest.mark.parametrize(
    ("body", "wrong"),
    [({}, ["source", "jobs"]), ({"source": "", "jobs": []}, ["source"]), ({"source": "f", "jobs": {}}, ["jobs"])],
)
async def test_a_wrong_envelope_says_what_is_wrong(api, body, wrong):
    assert paths(problem(await api.post("/v1/jobs/sync", json=body), 422)) == wrong


async def test_a_key_of_somebody_else_is_a_conflict_with_an_entry_per_key(api):
    held = (await api.post("/v1/jobs", json=job("b"))).json()["id"]
    answer = await api.post("/v1/jobs/sync", json={"source": "f", "jobs": [job("a"), job("b")]})
    refused = problem(answer, 409)
    assert refused["detail"] == f"nothing was applied: 'b' belongs to a job that is not from a file (job {held})"
    assert [(each["path"], each["given"]) for each in refused["errors"]] == [("jobs[1].key", "b")]
    adopted = await api.post("/v1/jobs/sync", json={"source": "f", "jobs": [job("a"), job("b")], "adopt": True})
    assert adopted.json()["adopted"] == ["b"]
