"""Run, pause, resume, backfill, explain."""

from __future__ import annotations

import pytest

from tests.api.conftest import paths, problem

VERBS = ("run", "pause", "resume")


async def test_run_now_makes_a_pending_run_beside_the_schedule(api, new_job):
    job = await new_job()
    made = await api.post(f"/v1/jobs/{job['id']}/run")
    assert made.status_code == 201, made.text
    run = made.json()
    assert made.headers["location"] == f"/v1/runs/{run['id']}"
    assert (run["job_id"], run["kind"], run["status"]) == (job["id"], "manual", "PENDING")
    assert (await api.get(made.headers["location"])).json()["id"] == run["id"]
    assert (await api.get(f"/v1/jobs/{job['id']}")).json()["next_run"] == job["next_run"]


async def test_pause_and_resume_change_the_state_and_the_next_run(api, new_job):
    job = await new_job()
    paused = await api.post(f"/v1/jobs/{job['id']}/pause")
    assert (paused.status_code, paused.json()["state"], paused.json()["paused"]) == (200, "paused", True)
    again = await api.post(f"/v1/jobs/{job['id']}/pause")
    assert (again.status_code, again.json()["state"]) == (200, "paused")
    resumed = await api.post(f"/v1/jobs/{job['id']}/resume")
    assert (resumed.status_code, resumed.json()["state"]) == (200, "active")
    assert resumed.json()["next_run"] == job["next_run"]
    assert int(resumed.headers["etag"].strip('"')) == resumed.json()["version"]


async def test_a_paused_job_can_still_be_run_by_hand(api, new_job):
    job = await new_job(paused=True)
    assert (await api.post(f"/v1/jobs/{job['id']}/run")).status_code == 201


async def test_verbs_on_what_is_not_there_are_404(api):
    for verb in VERBS:
        for job_id in ("404", "x", "0"):
            problem(await api.post(f"/v1/jobs/{job_id}/{verb}"), 404)


async def test_verbs_are_posts(api, new_job):
    job = await new_job()
    for verb in VERBS:
        answer = await api.get(f"/v1/jobs/{job['id']}/{verb}")
        problem(answer, 405)
        assert answer.headers["allow"] == "POST"


async def test_backfill_answers_with_the_runs_it_made(api, new_job, fake_clock):
    job = await new_job(schedule={"cron": "0 * * * *"})
    await fake_clock.advance(5 * 3600)
    asked = {"start": "2023-11-14T20:00:00Z", "end": "2023-11-14T22:30:00Z"}
    made = await api.post(f"/v1/jobs/{job['id']}/backfill", json=asked)
    assert made.status_code == 201, made.text
    runs = made.json()["runs"]
    assert len(runs) == 3
    for run_id in runs:
        assert (await api.get(f"/v1/runs/{run_id}")).json()["kind"] == "backfill"


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, ["start", "end"]),
        ({"start": "yesterday", "end": "2023-01-01T00:00:00Z"}, ["start"]),
        ({"start": "2023-01-02T00:00:00Z", "end": "2023-01-01T00:00:00Z"}, ["end"]),
        ({"start": "2023-01-01T00:00:00Z", "end": "2023-01-02T00:00:00Z", "limit": 0}, ["limit"]),
        ({"start": "2023-01-01T00:00:00Z", "end": "2023-01-02T00:00:00Z", "force": "yes"}, ["force"]),
        ({"start": "0001-01-01T00:00:00Z", "end": "9999-12-31T00:00:00Z"}, ["end"]),
        ({"start": 1, "end": None}, ["start", "end"]),
    ],
)
async def test_a_wrong_backfill_says_what_is_wrong(api, new_job, body, wrong):
    job = await new_job(schedule={"every": "1s", "start": "2020-01-01T00:00:00Z"})
    assert paths(problem(await api.post(f"/v1/jobs/{job['id']}/backfill", json=body), 422)) == wrong


async def test_explain_says_what_happens_at_an_instant(api, new_job):
    job = await new_job()
    later = await api.get(f"/v1/jobs/{job['id']}/explain", params={"at": "2023-11-15T02:00:00Z"})
    assert later.status_code == 200, later.text
    assert (later.json()["slot"], later.json()["run"] is None or later.json()["run"]["status"]) in (
        (True, True),
        (True, "PENDING"),
    )
    other = await api.get(f"/v1/jobs/{job['id']}/explain", params={"at": "2023-11-15T02:30:00Z"})
    assert other.json()["slot"] is False
    assert "does not fire at this instant" in other.json()["because"]
    assert other.json()["next"] == "2023-11-16T02:00:00.000Z"


async def test_explain_a_range_and_show_a_calendar(api, new_job):
    job = await new_job()
    asked = {"since": "2023-11-15T00:00:00Z", "until": "2023-11-18T00:00:00Z", "limit": 2}
    page = (await api.get("/v1/jobs/by-key/nightly/explain", params=asked)).json()
    assert [(each["slot"][:13], each["status"]) for each in page["items"]] == [
        ("2023-11-17T02", "planned"),
        ("2023-11-16T02", "planned"),
    ]
    rest = (await api.get(page["next"])).json()
    assert [each["slot"][:13] for each in rest["items"]] == ["2023-11-15T02"]
    assert rest["next"] is None
    both = await api.get(f"/v1/jobs/{job['id']}/explain", params={**asked, "at": asked["since"]})
    assert paths(problem(both, 422)) == ["at"]
    calendar = (await api.get(f"/v1/jobs/{job['id']}/calendar?until=2023-11-16T23:30:00Z")).json()
    assert calendar["tz"] == "Europe/Berlin"
    assert [(day["date"], day["planned"]) for day in calendar["items"][-4:]] == [
        ("2023-11-14", 0),
        ("2023-11-15", 1),
        ("2023-11-16", 1),
        ("2023-11-17", 1),
    ]
    for wrong, field in (("tz=Mars", "tz"), ("since=0001-01-02T00:00:00Z", "since"), ("until=soon", "until")):
        assert paths(problem(await api.get(f"/v1/jobs/{job['id']}/calendar?{wrong}"), 422)) == [field]
    problem(await api.get("/v1/jobs/99/calendar"), 404)


async def test_explain_without_an_instant_means_now(api, new_job):
    job = await new_job()
    answer = await api.get(f"/v1/jobs/{job['id']}/explain")
    assert (answer.status_code, answer.json()["at"]) == (200, "2023-11-14T22:13:20.000Z")


async def test_explain_needs_an_instant_that_is_one(api, new_job):
    job = await new_job()
    for at in ("noon", "2023-11-15", "", "2023-11-15T02:00:00", "99999-01-01T00:00:00Z"):
        assert paths(problem(await api.get(f"/v1/jobs/{job['id']}/explain", params={"at": at}), 422)) == ["at"]


@pytest.mark.parametrize("schedule", [{"cron": "0 3 * * *", "tz": "Europe/Berlin"}, {"every": "7s"}, {"in": "1h"}])
async def test_explain_answers_for_the_ends_of_time(api, new_job, schedule):
    job = await new_job(schedule=schedule)
    for at in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59"):
        answer = await api.get(f"/v1/jobs/{job['id']}/explain", params={"at": at})
        assert answer.status_code in (200, 422), answer.text


BODIES = {
    "run": None,
    "pause": None,
    "resume": None,
    "backfill": {"start": "2023-11-14T18:00:00Z", "end": "2023-11-14T20:30:00Z"},
}


@pytest.mark.parametrize("verb", BODIES)
async def test_a_verb_on_another_version_than_was_seen_is_412(api, new_job, verb):
    job = await new_job()
    await api.patch(f"/v1/jobs/{job['id']}", json={"name": "x"})
    before = (await api.get(f"/v1/jobs/{job['id']}")).json()
    address = f"/v1/jobs/{job['id']}/{verb}"
    document = problem(await api.post(address, json=BODIES[verb], headers={"if-match": '"1"'}), 412)
    assert document["detail"] == f"job {job['id']} is at version 2, not 1; read it again"
    assert (await api.get(f"/v1/jobs/{job['id']}")).json() == before
    assert (await api.get(f"/v1/jobs/{job['id']}/runs?status=PENDING")).json()["items"][0]["kind"] == "scheduled"
    assert (await api.post(address, json=BODIES[verb], headers={"if-match": '"2"'})).status_code in (200, 201)


async def test_the_runs_of_a_job_that_changed_are_left_alone_when_asked_so(api, new_job):
    job = await new_job()
    run = (await api.post(f"/v1/jobs/{job['id']}/run")).json()
    await api.patch(f"/v1/jobs/{job['id']}", json={"name": "x"})
    problem(await api.post(f"/v1/runs/{run['id']}/cancel", headers={"if-match": '"1"'}), 412)
    assert (await api.post(f"/v1/runs/{run['id']}/cancel", headers={"if-match": '"2"'})).status_code == 202
    problem(await api.post(f"/v1/runs/{run['id']}/retry", headers={"if-match": '"1"'}), 412)
    assert (await api.post(f"/v1/runs/{run['id']}/retry", headers={"if-match": '"2"'})).status_code == 201
    await api.delete(f"/v1/jobs/{job['id']}")
    problem(await api.post(f"/v1/runs/{run['id']}/retry", headers={"if-match": '"2"'}), 412)


@pytest.mark.parametrize("verb", BODIES)
async def test_verbs_are_reachable_by_key(api, new_job, verb):
    job = await new_job()
    answer = await api.post(f"/v1/jobs/by-key/{job['key']}/{verb}", json=BODIES[verb])
    assert answer.status_code in (200, 201)
    problem(await api.post(f"/v1/jobs/by-key/other/{verb}", json=BODIES[verb]), 404)


async def test_what_is_asked_of_a_job_is_asked_by_key_too(api, new_job):
    job = await new_job()
    for path in ("runs?status=PENDING", "explain?at=2023-11-15T02:00:00Z"):
        by_id, by_key = [await api.get(f"/v1/jobs/{at}/{path}") for at in (job["id"], f"by-key/{job['key']}")]
        assert (by_key.status_code, by_key.json()) == (200, by_id.json())


@pytest.mark.parametrize("verb", BODIES)
async def test_what_a_verb_does_not_know_it_refuses(api, new_job, verb):
    job = await new_job()
    address = f"/v1/jobs/{job['id']}/{verb}"
    assert paths(problem(await api.post(address, json={**(BODIES[verb] or {}), "colour": "red"}), 422)) == ["colour"]
    assert paths(problem(await api.post(f"{address}?colour=red", json=BODIES[verb]), 422)) == ["colour"]
    assert (await api.get(f"/v1/jobs/{job['id']}")).json() == job


async def test_a_slip_of_the_pen_is_told_the_nearest_name(api, new_job):
    job = await new_job()
    wrong = {"start": "2023-11-14T18:00:00Z", "end": "2023-11-14T20:30:00Z", "forse": True}
    (mistake,) = problem(await api.post(f"/v1/jobs/{job['id']}/backfill", json=wrong), 422)["errors"]
    assert mistake["accepted"].startswith("did you mean force? Known: start, end, force")
    (mistake,) = problem(await api.get("/v1/jobs?limt=3"), 422)["errors"]
    assert mistake["accepted"].startswith("did you mean limit? Known: ")


async def test_a_pause_says_why_and_until_when(api, new_job):
    job = await new_job()
    said = {"note": "maintenance", "until": "2023-11-14T23:00:00Z"}
    paused = (await api.post(f"/v1/jobs/{job['id']}/pause", json=said)).json()
    assert (paused["state"], paused["pause"]["note"]) == ("paused", "maintenance")
    assert paused["pause"]["until"] == "2023-11-14T23:00:00.000Z"
    assert (await api.get(f"/v1/jobs/{job['id']}")).json() == paused
    assert (await api.get("/v1/jobs")).json()["items"] == [paused]
    assert (await api.post(f"/v1/jobs/{job['id']}/resume")).json()["pause"] is None


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"until": "tomorrow"}, "until"),
        ({"until": "2001-01-01T00:00:00Z"}, "until"),
        ({"until": 3}, "until"),
        ({"note": ""}, "note"),
        ({"note": "x" * 1001}, "note"),
        ({"notes": "x"}, "notes"),
    ],
)
async def test_a_pause_that_is_not_understood_pauses_nothing(api, new_job, body, path):
    job = await new_job()
    assert paths(problem(await api.post(f"/v1/jobs/{job['id']}/pause", json=body), 422)) == [path]
    assert (await api.get(f"/v1/jobs/{job['id']}")).json() == job


async def test_a_run_by_hand_takes_params_of_its_own(api, new_job):
    job = await new_job()
    run = (await api.post(f"/v1/jobs/{job['id']}/run", json={"params": {"day": 1}})).json()
    assert run["params"] == {"day": 1}
    assert (await api.get(f"/v1/runs/{run['id']}")).json()["params"] == {"day": 1}
    key = {"idempotency-key": "once"}
    first = await api.post(f"/v1/jobs/{job['id']}/run", json={"params": {"day": 2}}, headers=key)
    again = await api.post(f"/v1/jobs/{job['id']}/run", json={"params": {"day": 2}}, headers=key)
    assert first.json() == again.json()
    problem(await api.post(f"/v1/jobs/{job['id']}/run", json={"params": {"day": 3}}, headers=key), 422)
    wrongs: list[dict[str, object]] = [{"params": [1]}, {"params": "x"}, {"param": {}}]
    for wrong in wrongs:
        problem(await api.post(f"/v1/jobs/{job['id']}/run", json=wrong), 422)


async def test_the_status_in_short(api, new_job, node, fake_clock):
    job = await new_job(schedule={"every": "1h"}, owner="ada")
    at = f"/v1/jobs/{job['id']}/status"
    following = 1_700_000_000 + 3600
    waits = {"execution_time": following, "key": f"{following}-{job['id']}", "job_id": job["id"], "user_id": "ada"}
    assert (await api.get(at)).json() == {**waits, "status": "PENDING", "attempt": 0}
    assert (await api.get(f"/v1/jobs/by-key/{job['key']}/status")).json() == (await api.get(at)).json()
    await api.post(f"/v1/jobs/{job['id']}/run")
    await node.claim()
    running = (await api.get(at)).json()
    assert (running["status"], running["attempt"], running["execution_time"]) == ("EXECUTING", 1, 1_700_000_000)
    problem(await api.get("/v1/jobs/404/status"), 404)


async def test_the_status_of_what_is_over_is_that_of_its_last_run(api, new_job):
    job = await new_job(key=None, schedule={"in": "1h"})
    await api.post(f"/v1/runs/{job['id']}-{1_700_003_600_000}/cancel")
    assert (await api.get(f"/v1/jobs/{job['id']}/status")).json()["status"] == "CANCELLED"


async def test_a_job_is_changed_and_deleted_by_key(api, new_job):
    job = await new_job()
    at = f"/v1/jobs/by-key/{job['key']}"
    assert (await api.patch(at, json={"name": "x"})).json()["version"] == 2
    problem(await api.delete(at, headers={"if-match": '"1"'}), 412)
    assert (await api.delete(at, headers={"if-match": '"2"'})).status_code == 204
    problem(await api.delete(at), 404)
