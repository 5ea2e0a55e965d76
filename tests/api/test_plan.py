"""What a change would do to the firings of jobs, over HTTP."""

from __future__ import annotations

from tests.api.conftest import JOB, paths, problem


async def planned(api, **asked):
    answer = await api.post("/v1/plan", json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_one_job(api, new_job):
    job = await new_job()
    moved = await planned(api, key="nightly", patch={"schedule": {"cron": "0 4 * * *"}})
    (told,) = moved["jobs"]
    assert (told["job_id"], told["change"], told["before"], told["after"]) == (job["id"], "changed", 30, 30)
    assert (told["added"], told["moved"], told["removed"]) == (0, 30, 0)
    assert told["first_moved"][0] == {"before": "2023-11-15T02:00:00.000Z", "after": "2023-11-15T03:00:00.000Z"}
    assert len(told["first_moved"]) == 5
    assert moved["busiest"] == [{"at": "2023-11-15T03:00:00.000Z", "before": 0, "after": 1}]
    assert (moved["until"], moved["complete"]) == ("2023-12-14T22:13:20.000Z", True)

    (told,) = (await planned(api, spec={**JOB, "schedule": {"cron": "0 3 * * 1"}, "key": "nightly"}, days=7))["jobs"]
    assert (told["before"], told["after"]) == (7, 1)
    assert (told["added"], told["moved"], told["removed"]) == (0, 1, 6), "the one that stays is in UTC, not in Berlin"
    (told,) = (await planned(api, id=job["id"], patch={"name": "Nightly"}))["jobs"]
    assert (told["change"], told["before"], told["after"], told["first_added"]) == ("unchanged", 30, 30, [])
    (told,) = (await planned(api, spec={**JOB, "key": "new", "schedule": {"every": "1s"}}, days=1))["jobs"]
    assert (told["change"], told["job_id"], told["after"], told["added"]) == ("new", None, 86400, 10_000)
    assert told["compared_until"] == "2023-11-15T01:00:00.000Z"
    assert (await api.get(f"/v1/jobs/{job['id']}")).json()["version"] == 1


async def test_a_spec_without_a_key_keeps_that_of_the_job_it_is_for(api, new_job):
    """`H` depends on the key."""
    await new_job(schedule={"cron": "H H * * *"})
    keyless = {name: value for name, value in JOB.items() if name != "key"}
    (told,) = (await planned(api, key="nightly", spec={**keyless, "schedule": {"cron": "H H * * *"}}))["jobs"]
    assert (told["key"], told["change"]) == ("nightly", "unchanged")


async def test_a_list_of_jobs(api, new_job):
    await new_job()
    await new_job(key="old", schedule={"cron": "0 5 * * *"})
    found = await planned(
        api, jobs=[JOB, {**JOB, "key": "fresh", "schedule": {"cron": "0 2 * * *"}}], removed=["old"], days=2
    )
    assert [(each["key"], each["change"], each["added"], each["removed"]) for each in found["jobs"]] == [
        ("nightly", "unchanged", 0, 0),
        ("fresh", "new", 2, 0),
        ("old", "removed", 0, 2),
    ]
    assert found["busiest"] == [{"at": "2023-11-15T02:00:00.000Z", "before": 1, "after": 2}]


async def test_what_is_refused(api, new_job):
    job = await new_job()
    patch = {"schedule": {"cron": "0 4 * * *"}}
    for asked, field in (
        ({"id": job["id"]}, "spec"),
        ({"patch": patch}, "patch"),
        ({"id": job["id"], "key": "nightly", "patch": patch}, "key"),
        ({"id": job["id"], "patch": {"schedule": {"cron": "0 99 * * *"}}}, "schedule.cron"),
        ({"jobs": [{**JOB, "schedule": {"cron": "x"}}]}, "jobs[0].schedule.cron"),
        ({"jobs": [], "key": "nightly"}, "key"),
        ({"removed": ["nobody"]}, "removed[0]"),
        ({"key": "nightly", "patch": patch, "days": 400}, "days"),
        ({"key": "nightly", "patch": patch, "weeks": 4}, "weeks"),
    ):
        assert paths(problem(await api.post("/v1/plan", json=asked), 422)) == [field]
    problem(await api.post("/v1/plan", json={"key": "nobody", "patch": patch}), 404)
    problem(await api.post("/v1/plan", json={"id": 99, "patch": patch}), 404)


def many_jobs(number, **fields):
    return [{**JOB, "key": f"job-{n}", "params": {f"n{i}": i for i in range(30)}, **fields} for n in range(number)]


async def test_a_thousand_jobs_are_planned_however_many_values_they_have(api):
    """30,000 values: more than one job may have."""
    found = await planned(api, jobs=many_jobs(1000), days=1)
    assert [each["key"] for each in found["jobs"]] == [f"job-{n}" for n in range(1000)]
    assert {(each["change"], each["added"]) for each in found["jobs"]} == {("new", 1)}
    assert found["busiest"] == [{"at": "2023-11-15T02:00:00.000Z", "before": 0, "after": 1000}]


async def test_what_is_wrong_in_a_long_list_is_named_as_in_a_short_one(api):
    wrong = many_jobs(900)
    wrong[700] = {**wrong[700], "schedule": {"cron": "x"}}
    wrong[800] = {**wrong[800], "colour": "red"}
    assert paths(problem(await api.post("/v1/plan", json={"jobs": wrong}), 422)) == ["jobs[800].colour"]
    wrong[800].pop("colour")
    assert paths(problem(await api.post("/v1/plan", json={"jobs": wrong}), 422)) == ["jobs[700].schedule.cron"]
    asked = {"jobs": many_jobs(900), "weeks": 4}
    assert paths(problem(await api.post("/v1/plan", json=asked), 422)) == ["weeks"]
    large = {"params": {"a": [0] * 30_000}}
    asked = {"jobs": many_jobs(10, **large)}
    assert paths(problem(await api.post("/v1/plan", json=asked), 422)) == [f"jobs[{n}]" for n in range(10)]
    too_many = problem(await api.post("/v1/plan", json={"jobs": many_jobs(1001)}), 413)
    assert "1000" in too_many["detail"]
    repeated = b'{"days":1' + b',"days":1' * 30 + b',"jobs":' + b"[" + b" " * 20_000 + b"]}"
    assert "fields" in problem(await api.post("/v1/plan", content=repeated), 413)["detail"]


async def test_one_large_job_beside_no_list(api, new_job):
    await new_job()
    patch = {"params": {"text": "x" * 100_000}}
    (told,) = (await planned(api, key="nightly", patch=patch))["jobs"]
    assert told["change"] == "unchanged"
