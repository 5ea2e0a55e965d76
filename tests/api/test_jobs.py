"""Jobs over HTTP: create, read, list, replace, change, delete."""

from __future__ import annotations

import pytest

from onthedot.model.secret_text import MASK
from tests.api.conftest import JOB, paths, problem


async def test_a_created_job_reads_back_with_what_the_store_adds(api):
    made = await api.post("/v1/jobs", json=JOB)
    assert made.status_code == 201
    job = made.json()
    assert made.headers["location"] == f"/v1/jobs/{job['id']}"
    assert made.headers["etag"] == '"1"'
    assert (job["key"], job["version"], job["state"], job["last_run"]) == ("nightly", 1, "active", None)
    assert job["next_run"] == "2023-11-15T02:00:00.000Z"
    assert job["policy"]["retry"] == {"attempts": 3, "backoff": "1s", "factor": 2, "max": "5m", "max_age": None}
    read = await api.get(made.headers["location"])
    assert (read.status_code, read.headers["etag"], read.json()) == (200, '"1"', job)
    assert (await api.get("/v1/jobs/by-key/nightly")).json() == job


async def test_every_wrong_field_is_named_at_once(api):
    wrong = {
        "key": "no spaces!",
        "schedule": {"cron": "0 3 * * *", "zone": "UTC"},
        "target": {"type": "webhook", "url": 7},
        "policy": {"retry": {"attempts": 0}},
        "colour": "red",
    }
    document = problem(await api.post("/v1/jobs", json=wrong), 422)
    assert {"key", "schedule.zone", "target.url", "policy.retry.attempts", "colour"} <= set(paths(document))
    for error in document["errors"]:
        assert error["message"]
        assert error["accepted"]


@pytest.mark.parametrize(
    ("schedule", "path"),
    [
        ({}, "schedule"),
        ({"cron": "0 3 * * *", "every": "1m"}, "schedule"),
        ({"cron": "0 0 31 2 *"}, "schedule.cron"),
        ({"cron": "nonsense"}, "schedule.cron"),
        ({"every": "0s"}, "schedule.every"),
        ({"every": "-5s"}, "schedule.every"),
        ({"in": 0}, "schedule.in"),
        ({"at": "2001-01-01T00:00:00Z"}, "schedule.at"),
        ({"at": "tomorrow"}, "schedule.at"),
        ({"cron": "0 3 * * *", "tz": "Mars/Olympus"}, "schedule.tz"),
        ({"every": "1h", "start": "2030-01-01T00:00:00Z", "end": "2029-01-01T00:00:00Z"}, "schedule.end"),
        ({"every": "1h", "count": 0}, "schedule.count"),
        ({"rrule": "FREQ=DAILY"}, "schedule.rrule"),
    ],
)
async def test_an_impossible_schedule_is_422_and_says_where(api, schedule, path):
    document = problem(await api.post("/v1/jobs", json={**JOB, "schedule": schedule}), 422)
    assert any(found.startswith(path) for found in paths(document)), document


async def test_what_is_answered_to_a_create_is_what_is_read_later(api, app):
    """To the letter: defaults were written as 2 by the one and as 2.0 by the other."""
    made = await api.post("/v1/jobs", json={"schedule": {"in": "1h"}, "target": JOB["target"]})
    assert made.status_code == 201
    assert (await api.get(made.headers["location"])).text == made.text


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ({"type": "webhook", "url": "not a url"}, "target.url"),
        ({"type": "webhook", "url": "ftp://example.com/"}, "target.url"),
        ({"type": "webhook", "url": "http://169.254.169.254/latest/meta-data"}, "target.url"),
        ({"type": "webhook", "url": "http://example.com/", "method": "BREW"}, "target.method"),
        ({"type": "webhook", "url": "http://example.com/", "headers": {"a b": "c"}}, "target.headers"),
        ({"type": "webhook", "url": "http://example.com/", "headers": {"x": "a\r\nb: c"}}, "target.headers"),
        ({"type": "function", "function": "os:system"}, "target.function"),
        ({"type": "command", "command": "rm"}, "target.command"),
        ({"type": "teleport"}, "target.type"),
        ({"url": "http://example.com/"}, "target.type"),
    ],
)
async def test_an_impossible_target_is_422_and_says_where(api, target, path):
    document = problem(await api.post("/v1/jobs", json={**JOB, "target": target}), 422)
    assert any(found.startswith(path) for found in paths(document)), document


async def test_what_is_not_built_says_so(api):
    document = problem(await api.post("/v1/jobs", json={**JOB, "schedule": {"rrule": "FREQ=DAILY"}}), 422)
    assert document["type"] == "urn:onthedot:problem:not-available"
    assert "not available" in document["detail"]


async def test_functions_and_commands_that_the_operator_registered_are_taken(api):
    for target in ({"type": "function", "function": "json:dumps"}, {"type": "command", "command": "backup"}):
        answer = await api.post("/v1/jobs", json={"schedule": {"every": "1h"}, "target": target})
        assert answer.status_code == 201, answer.text
        assert answer.json()["target"] == target


async def test_a_key_is_given_once(api, new_job):
    await new_job()
    document = problem(await api.post("/v1/jobs", json=JOB), 409)
    assert "nightly" in document["detail"]


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
async def test_what_can_not_be_an_id_is_404(api, method):
    for job_id in ("0", "-1", "x", "1.0", "9223372036854775808", "1" * 400, "1%00", "%F0%9F%98%80", "１"):
        problem(await api.request(method, f"/v1/jobs/{job_id}", json={}), 404)


@pytest.mark.parametrize("job_id", ["12345", "9223372036854775807"])
async def test_what_is_no_job_is_404(api, job_id):
    problem(await api.get(f"/v1/jobs/{job_id}"), 404)
    problem(await api.put(f"/v1/jobs/{job_id}", json=JOB), 404)
    problem(await api.patch(f"/v1/jobs/{job_id}", json={"name": "x"}), 404)
    problem(await api.delete(f"/v1/jobs/{job_id}"), 404)


async def test_put_replaces_and_an_equal_spec_changes_nothing(api, new_job):
    job = await new_job(name="Before", tags=["a"])
    same = await api.put(f"/v1/jobs/{job['id']}", json={**JOB, "name": "Before", "tags": ["a"]})
    assert (same.status_code, same.json()["version"]) == (200, 1)
    other = await api.put(f"/v1/jobs/{job['id']}", json={**JOB, "schedule": {"every": "1h"}})
    assert other.headers["etag"] == '"2"'
    assert (other.json()["name"], other.json()["tags"]) == (None, [])
    assert other.json()["schedule"] == {"every": "1h"}


async def test_patch_changes_what_it_names_and_null_takes_away(api, new_job):
    job = await new_job(name="Before", tags=["a", "b"], params={"x": {"y": 1, "z": 2}})
    changed = await api.patch(
        f"/v1/jobs/{job['id']}",
        json={"name": None, "tags": ["c"], "params": {"x": {"y": None}}, "schedule": {"cron": "30 4 * * *"}},
    )
    assert changed.status_code == 200, changed.text
    after = changed.json()
    assert (after["name"], after["tags"], after["params"]) == (None, ["c"], {"x": {"z": 2}})
    assert after["schedule"] == {"cron": "30 4 * * *", "tz": "Europe/Berlin"}
    assert after["version"] == 2


async def test_patch_takes_merge_patch_as_its_media_type_but_not_json_patch(api, new_job):
    job = await new_job()
    merge = {"content-type": "application/merge-patch+json"}
    assert (await api.patch(f"/v1/jobs/{job['id']}", content=b'{"name":"x"}', headers=merge)).status_code == 200
    other = {"content-type": "application/json-patch+json"}
    problem(await api.patch(f"/v1/jobs/{job['id']}", content=b"[]", headers=other), 415)


@pytest.mark.parametrize("patch", ["[]", '"x"', "1", "null", "true"])
async def test_a_patch_is_an_object(api, new_job, patch):
    job = await new_job()
    problem(await api.patch(f"/v1/jobs/{job['id']}", content=patch), 422)


@pytest.mark.parametrize(
    "patch", [{"schedule": None}, {"target": {"type": "command"}}, {"colour": 1}, {"paused": "yes"}, {"id": 7}]
)
async def test_a_patch_that_would_break_the_job_is_refused_and_changes_nothing(api, new_job, patch):
    job = await new_job()
    problem(await api.patch(f"/v1/jobs/{job['id']}", json=patch), 422)
    assert (await api.get(f"/v1/jobs/{job['id']}")).json()["version"] == 1


async def test_a_secret_is_never_shown_and_its_mask_keeps_it(api, new_job, app):
    target = {**JOB["target"], "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
    job = await new_job(target=target)
    assert job["target"]["secret"] == MASK
    shown = await api.get(f"/v1/jobs/{job['id']}")
    assert "whsec_" not in shown.text
    put = await api.put(f"/v1/jobs/{job['id']}", json={**JOB, "name": "n", "target": {**target, "secret": MASK}})
    assert put.status_code == 200, put.text
    patched = await api.patch(f"/v1/jobs/{job['id']}", json={"target": {"url": "http://127.0.0.1:5004/"}})
    assert patched.json()["target"]["secret"] == MASK
    record = await app.context.service.store.get_record(1, job["id"])
    assert record.spec.target.secret == target["secret"]


async def test_the_mask_is_no_secret_for_a_new_job(api):
    document = problem(await api.post("/v1/jobs", json={**JOB, "target": {**JOB["target"], "secret": MASK}}), 422)
    assert paths(document) == ["target.secret"]


async def test_put_by_key_creates_then_replaces(api):
    first = await api.put("/v1/jobs/by-key/weekly", json={**JOB, "key": "weekly"})
    assert first.status_code == 201
    assert first.headers["location"] == f"/v1/jobs/{first.json()['id']}"
    second = await api.put("/v1/jobs/by-key/weekly", json={"schedule": {"every": "1h"}, "target": JOB["target"]})
    assert (second.status_code, second.json()["id"], second.json()["version"]) == (200, first.json()["id"], 2)
    assert second.json()["key"] == "weekly"


@pytest.mark.parametrize("key", ["%20", "-x", "a b", "é", "a" * 201, "a%00b"])
async def test_put_by_key_refuses_what_is_no_key(api, key):
    problem(await api.put(f"/v1/jobs/by-key/{key}", json={**JOB, "key": None}), 422)


async def test_put_by_key_refuses_another_key_in_the_body(api):
    assert paths(problem(await api.put("/v1/jobs/by-key/weekly", json=JOB), 422)) == ["key"]


async def test_a_deleted_job_is_gone(api, new_job):
    job = await new_job()
    gone = await api.delete(f"/v1/jobs/{job['id']}")
    assert (gone.status_code, gone.content) == (204, b"")
    problem(await api.get(f"/v1/jobs/{job['id']}"), 404)
    problem(await api.delete(f"/v1/jobs/{job['id']}"), 404)
    assert (await api.post("/v1/jobs", json=JOB)).status_code == 201


async def test_if_match_lets_only_the_version_seen_be_changed(api, new_job):
    job = await new_job()
    address = f"/v1/jobs/{job['id']}"
    assert (await api.patch(address, json={"name": "x"}, headers={"if-match": '"1"'})).status_code == 200
    stale = {"if-match": '"1"'}
    problem(await api.patch(address, json={"name": "y"}, headers=stale), 412)
    problem(await api.put(address, json=JOB, headers=stale), 412)
    problem(await api.delete(address, headers=stale), 412)
    problem(await api.put("/v1/jobs/by-key/nightly", json=JOB, headers=stale), 412)
    assert (await api.patch(address, json={"name": "y"}, headers={"if-match": '"7", "2"'})).status_code == 200
    problem(await api.patch(address, json={"name": "z"}, headers={"if-match": '"7", "2"'}), 412)
    for other in ('W/"3"', '"other"'):
        document = problem(await api.patch(address, json={"name": "z"}, headers={"if-match": other}), 412)
        assert document["detail"] == f"job {job['id']} is at version 3; If-Match names another version"
    assert paths(problem(await api.patch(address, json={}, headers={"if-match": "x y"}), 422)) == ["If-Match"]
    assert (await api.delete(address, headers={"if-match": "*"})).status_code == 204


async def test_if_match_on_a_key_that_is_not_there_creates_nothing(api):
    answer = await api.put("/v1/jobs/by-key/new", json={**JOB, "key": "new"}, headers={"if-match": '"1"'})
    assert answer.status_code in (404, 412), answer.text
    problem(await api.get("/v1/jobs/by-key/new"), 404)


async def test_lists_come_in_pages_that_neither_repeat_nor_miss(api, new_job):
    made = [(await new_job(key=f"job-{number:02}"))["id"] for number in range(7)]
    seen: list[int] = []
    address, pages = "/v1/jobs?limit=3", 0
    while address:
        answer = await api.get(address)
        assert answer.status_code == 200, answer.text
        seen += [job["id"] for job in answer.json()["items"]]
        address, pages = answer.json()["next"], pages + 1
        assert answer.headers.get("link") == (None if not address else f'<{address}>; rel="next"')
    assert (sorted(seen), len(seen), pages) == (sorted(made), 7, 3)


async def test_lists_filter_by_each_of_their_filters(api, new_job):
    await new_job(key="Alpha", name="First", tags=["red"])
    await new_job(key="beta", name="alphabet", target={"type": "command", "command": "backup"})
    await new_job(key="gamma", schedule={"every": "1h"}, paused=True)

    async def keys(query: str) -> set[str]:
        answer = await api.get(f"/v1/jobs?{query}")
        assert answer.status_code == 200, answer.text
        return {job["key"] for job in answer.json()["items"]}

    assert await keys("q=ALPHA") == {"Alpha", "beta"}
    assert await keys("q=first") == {"Alpha"}
    assert await keys("tag=red") == {"Alpha"}
    assert await keys("status=paused") == {"gamma"}
    assert await keys("target=command") == {"beta"}
    assert await keys("schedule=every") == {"gamma"}
    assert await keys("next_before=2023-11-15T00:00:00Z") == set()
    assert await keys("next_after=2023-11-15T00:00:00Z") == {"Alpha", "beta"}
    assert await keys("q=%25") == set()
    assert await keys("q=a&status=active&target=webhook") == {"Alpha"}


async def test_the_next_link_keeps_the_filters(api, new_job):
    for number in range(3):
        await new_job(key=f"a-{number}", tags=["x&y=ü"])
    first = (await api.get("/v1/jobs", params={"tag": "x&y=ü", "limit": 2})).json()
    assert "tag=x%26y%3D%C3%BC" in first["next"]
    second = (await api.get(first["next"])).json()
    assert (len(first["items"]), len(second["items"]), second["next"]) == (2, 1, None)


async def test_a_cursor_is_good_for_its_own_question_only(api, new_job):
    for number in range(3):
        await new_job(key=f"a-{number}")
    following = (await api.get("/v1/jobs?limit=1")).json()["next"]
    assert paths(problem(await api.get(following + "&status=active"), 422)) == ["cursor"]


async def test_a_job_belongs_to_the_key_it_was_made_with_unless_it_says_so(keyed):
    write, admin = keyed["write"], keyed["admin"]
    hook = {"schedule": {"every": "1h"}, "target": {"type": "webhook", "url": "http://127.0.0.1:5003/"}}
    made = (await write.post("/v1/jobs", json=hook)).json()
    assert made["owner"] == "write"
    named = (await write.post("/v1/jobs", json={**hook, "owner": "ada"})).json()
    assert named["owner"] == "ada"
    put = await write.put("/v1/jobs/by-key/k", json=hook)
    assert put.json()["owner"] == "write"
    assert (await admin.put("/v1/jobs/by-key/k", json={**hook, "name": "x"})).json()["owner"] == "write"
    (batched,) = (await admin.post("/v1/jobs/batch", json=[hook])).json()
    timer = (await admin.post("/timers", json={"seconds": 3600, "url": "http://127.0.0.1:5003/"})).json()
    of_admin = [job["id"] for job in (await admin.get("/v1/jobs?owner=admin")).json()["items"]]
    assert of_admin == [timer["id"], batched["id"]]
    await admin.post("/v1/jobs/sync", json={"source": "f", "jobs": [{**hook, "key": "f"}]})
    assert (await admin.get("/v1/jobs/by-key/f")).json()["owner"] == "admin"
    patched = await admin.patch(f"/v1/jobs/{made['id']}", json={"owner": "bob"})
    assert patched.json()["owner"] == "bob"
    assert (await admin.patch(f"/v1/jobs/{made['id']}", json={"owner": None})).json()["owner"] is None


async def test_jobs_are_listed_by_owner_with_any_other_filter(api, new_job):
    for number, owner in enumerate(["ada", "bob", "ada", "ada"]):
        await new_job(key=f"k{number}", owner=owner, tags=["t"] if number < 3 else [], paused=number == 0)

    async def keys(query: str) -> list[str]:
        found = (await api.get(f"/v1/jobs?owner=ada{query}")).json()
        return [job["key"] for job in found["items"]]

    assert await keys("") == ["k3", "k2", "k0"]
    assert await keys("&tag=t") == ["k2", "k0"]
    assert await keys("&status=active") == ["k3", "k2"]
    assert await keys("&q=k") == ["k0", "k2", "k3"]
    assert await keys("&next_after=2023-01-01T00:00:00Z") == ["k2", "k3"]
    first = (await api.get("/v1/jobs?owner=ada&limit=2")).json()
    second = (await api.get(first["next"])).json()
    assert [job["key"] for job in first["items"] + second["items"]] == ["k3", "k2", "k0"]
    assert second["next"] is None


async def test_an_owner_is_text_of_up_to_200_characters(api):
    for wrong in ("", "x" * 201, 3, ["a"]):
        assert paths(problem(await api.post("/v1/jobs", json={**JOB, "owner": wrong}), 422)) == ["owner"]


@pytest.mark.parametrize("way", ["post", "put", "batch"])
async def test_a_job_may_run_at_once_when_it_is_made(api, way):
    body = {**JOB, "run_now": True}
    if way == "put":
        job = (await api.put("/v1/jobs/by-key/nightly", json=body)).json()
    elif way == "batch":
        job = (await api.post("/v1/jobs/batch", json=[body])).json()[0]
    else:
        job = (await api.post("/v1/jobs", json=body)).json()
    runs = (await api.get(f"/v1/jobs/{job['id']}/runs?status=PENDING")).json()["items"]
    assert sorted(run["kind"] for run in runs) == ["manual", "scheduled"]
    shown = (await api.get(f"/v1/jobs/{job['id']}")).json()
    assert "run_now" not in shown
    assert (await api.put("/v1/jobs/by-key/nightly", json=body)).json()["version"] == 1
    refused = problem(await api.patch(f"/v1/jobs/{job['id']}", json={"run_now": True}), 422)
    assert paths(refused) == ["run_now"]
    replaced = problem(await api.put(f"/v1/jobs/{job['id']}", json=body), 422)
    assert replaced["errors"] == refused["errors"], "to replace one by its id makes none"
    assert (await api.put(f"/v1/jobs/{job['id']}", json={**body, "run_now": False})).json()["version"] == 1


SECRETS = ["a new secret of 24 characters", "an old secret of 24 characters"]


async def test_a_job_with_all_that_webhooks_can_do_is_read_back_and_sent_back(api, new_job, app):
    target = {**JOB["target"], "body": {"run": {"$": "run_id"}, "who": {"$": "params.who"}}, "secrets": SECRETS}
    retry = {"plan": "standard", "until": "next_slot"}
    job = await new_job(target=target, params={"who": "me"}, policy={"retry": retry})
    assert job["target"] == {**target, "secrets": [MASK, MASK]}
    assert job["policy"]["retry"] == {**retry, "max_age": None}
    sent_back = {name: job[name] for name in ("key", "schedule", "target", "policy", "params")}
    same = await api.put(f"/v1/jobs/{job['id']}", json=sent_back)
    assert (same.status_code, same.json()["version"]) == (200, 1)
    stored = await app.context.service.store.get_record(1, job["id"])
    assert stored.spec.target.secrets == SECRETS


async def test_a_secret_is_rotated_by_patches(api, new_job, app):
    async def secrets() -> list[str]:
        job = await app.context.service.store.get_record(1, made["id"])
        return list(job.spec.target.signing_secrets)

    made = await new_job(target={**JOB["target"], "secret": SECRETS[1]})
    for target, expected in (
        ({"secrets": [SECRETS[0], MASK]}, SECRETS),
        ({"secret": MASK}, SECRETS[:1]),
    ):
        answer = await api.patch(f"/v1/jobs/{made['id']}", json={"target": target})
        assert answer.status_code == 200, answer.text
        assert await secrets() == expected


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"target": {**JOB["target"], "body": {"a": {"$": "job"}}}}, "target.body.a.$"),
        ({"target": {**JOB["target"], "body": {"a": {"$": "params.x"}}}}, "target.body.a.$"),
        ({"target": {**JOB["target"], "secret": SECRETS[0], "secrets": SECRETS}}, "target.secrets"),
        ({"policy": {"retry": {"plan": "quick", "attempts": 3}}}, "policy.retry.attempts"),
        ({"policy": {"retry": {"plan": "slow"}}}, "policy.retry.plan"),
        ({"policy": {"retry": {"until": "next_slot"}}, "schedule": {"in": "1h"}}, "policy.retry.until"),
    ],
)
async def test_what_does_not_go_together_is_422_and_says_where(api, changes, path):
    document = problem(await api.post("/v1/jobs", json={**JOB, **changes}), 422)
    assert paths(document) == [path]
    assert document["errors"][0]["accepted"]
    assert not any(secret in str(document) for secret in SECRETS)


async def test_a_plan_by_patch(api, new_job):
    job = await new_job()
    planned = (await api.patch(f"/v1/jobs/{job['id']}", json={"policy": {"retry": {"plan": "quick"}}})).json()
    assert planned["policy"]["retry"] == {"plan": "quick", "max_age": None}
    back = (await api.patch(f"/v1/jobs/{job['id']}", json={"policy": {"retry": {"plan": None}}})).json()
    assert back["policy"]["retry"] == job["policy"]["retry"]
