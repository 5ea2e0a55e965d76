"""Runs over HTTP: lists, one run, its log, cancel and retry."""

from __future__ import annotations

import pytest

from onthedot.model.run import Outcome
from tests.api.conftest import paths, problem
from tests.api.executor import FAILED, OK

EVERY = {"schedule": {"every": "1m"}, "policy": {"retry": {"attempts": 1}}}


@pytest.fixture
async def history(new_job, node, fake_clock):
    """A job that ran three times: done, failed, done; its next run waits."""
    job = await new_job(**EVERY)
    ids = []
    for outcome in (OK, FAILED, OK):
        await fake_clock.advance(60)
        ids += await node.work(outcome, log="hello\n")
    assert len(ids) == 3
    return job["id"], ids


async def test_the_newest_comes_first_and_what_is_not_due_only_when_asked_for(api, history):
    job_id, ids = history
    items = (await api.get("/v1/runs")).json()["items"]
    assert [run["id"] for run in items] == ids[::-1]
    assert [run["status"] for run in items] == ["DONE", "FAILED", "DONE"]
    (pending,) = (await api.get("/v1/runs?status=PENDING")).json()["items"]
    assert (pending["job_id"], pending["status"]) == (job_id, "PENDING")


async def test_a_run_tells_everything_that_the_contract_promises(api, history):
    _, ids = history
    run = (await api.get(f"/v1/runs/{ids[1]}")).json()
    assert set(run) >= {
        "id", "job_id", "key", "scheduled_for", "due_at", "status", "attempt", "node", "started_at", "finished_at",
        "lateness_ms", "duration_ms", "outcome", "error", "attempts",
    }  # fmt: skip
    assert (run["status"], run["error"], run["duration_ms"], run["lateness_ms"]) == ("FAILED", "410 Gone", 12, 2)
    assert run["node"] == "tiny-1"
    (attempt,) = run["attempts"]
    assert (attempt["attempt"], attempt["outcome"], attempt["error"]) == (1, "error", "410 Gone")
    assert attempt["finished_at"].endswith("Z")


async def test_lists_filter_by_status_job_and_time_and_page(api, history, new_job):
    job_id, ids = history
    await new_job(key="other")

    async def found(query: str, address: str = "/v1/runs") -> list[str]:
        answer = await api.get(f"{address}?{query}")
        assert answer.status_code == 200, answer.text
        return [run["id"] for run in answer.json()["items"]]

    assert await found("status=FAILED") == [ids[1]]
    assert await found(f"job_id={job_id}") == ids[::-1]
    assert await found(f"job_id={job_id + 1}") == []
    slot = (await api.get(f"/v1/runs/{ids[1]}")).json()["scheduled_for"]
    assert await found(f"since={slot}") == [ids[2], ids[1]]
    assert await found(f"until={slot}") == [ids[1], ids[0]]
    assert await found("", f"/v1/jobs/{job_id}/runs") == ids[::-1]
    assert await found("status=DONE", f"/v1/jobs/{job_id}/runs") == [ids[2], ids[0]]
    page = (await api.get("/v1/runs?limit=2")).json()
    assert [run["id"] for run in (await api.get(page["next"])).json()["items"]] == [ids[0]]


async def test_the_job_shows_how_it_went(api, history):
    job_id, ids = history
    job = (await api.get(f"/v1/jobs/{job_id}")).json()
    assert (job["stats"]["runs"], job["stats"]["failures"], job["stats"]["last_status"]) == (3, 1, "DONE")
    assert (job["stats"]["last_run_id"], job["stats"]["avg_duration_ms"]) == (ids[2], 12.0)
    assert job["last_run"] is not None


async def test_the_log_is_plain_text(api, history, new_job):
    answer = await api.get(f"/v1/runs/{history[1][0]}/logs")
    assert (answer.status_code, answer.text) == (200, "hello\n")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_run_without_output_has_an_empty_log(api, new_job):
    job = await new_job()
    run = (await api.post(f"/v1/jobs/{job['id']}/run")).json()
    assert (await api.get(f"/v1/runs/{run['id']}/logs")).text == ""


async def test_a_waiting_run_is_cancelled_at_once_and_only_once(api, new_job):
    job = await new_job()
    run = (await api.post(f"/v1/jobs/{job['id']}/run")).json()
    cancelled = await api.post(f"/v1/runs/{run['id']}/cancel")
    assert (cancelled.status_code, cancelled.json()["status"]) == (202, "CANCELLED")
    again = await api.post(f"/v1/runs/{run['id']}/cancel")
    assert again.status_code in (202, 409)


async def test_a_run_that_has_ended_can_not_be_cancelled(api, history):
    answer = await api.post(f"/v1/runs/{history[1][0]}/cancel")
    assert answer.status_code in (202, 409)
    assert (await api.get(f"/v1/runs/{history[1][0]}")).json()["status"] == "DONE"


async def test_a_retry_is_a_new_run_and_the_old_one_stays_as_it_was(api, history):
    _, ids = history
    made = await api.post(f"/v1/runs/{ids[1]}/retry")
    assert made.status_code == 201, made.text
    run = made.json()
    assert (run["kind"], run["status"], run["id"] != ids[1]) == ("redrive", "PENDING", True)
    assert made.headers["location"] == f"/v1/runs/{run['id']}"
    assert (await api.get(f"/v1/runs/{ids[1]}")).json()["status"] == "FAILED"


async def test_a_run_that_has_not_ended_can_not_be_retried(api, new_job):
    job = await new_job()
    run = (await api.post(f"/v1/jobs/{job['id']}/run")).json()
    problem(await api.post(f"/v1/runs/{run['id']}/retry"), 409)


@pytest.mark.parametrize("verb", ["", "/logs", "/cancel", "/retry"])
async def test_what_is_no_run_is_404(api, verb):
    method = "POST" if verb in ("/cancel", "/retry") else "GET"
    for run_id in ("x", "1", "1-", "-1", "1-1-x1", "1-1", f"{10**20}-1", f"1-{10**16}", "1-1%00", "1-1-m", "1-1-m9"):
        problem(await api.request(method, f"/v1/runs/{run_id}{verb}"), 404)


async def test_the_runs_of_no_job_are_404(api):
    problem(await api.get("/v1/jobs/404/runs"), 404)


@pytest.mark.parametrize("query", ["job_id=0", "job_id=x", "job_id=9223372036854775808", "since=x", "status=done"])
async def test_weird_filters_are_422(api, query):
    assert paths(problem(await api.get(f"/v1/runs?{query}"), 422)) == [query.split("=")[0]]


async def test_filters_by_key_error_node_trigger_and_lateness(api, history, node):
    job_id, ids = history
    manual = (await api.post(f"/v1/jobs/{job_id}/run")).json()["id"]

    async def found(query: str) -> list[str]:
        return [run["id"] for run in (await api.get(f"/v1/runs?{query}")).json()["items"]]

    assert await found("key=nightly") == [manual, *ids[::-1]]
    assert await found(f"key=nightly&job_id={job_id + 1}") == []
    assert await found("key=unknown") == []
    assert await found("q=gone") == [ids[1]]
    assert await found(f"node={node.info.id}&status=DONE") == [ids[2], ids[0]]
    assert await found("trigger=manual") == [manual]
    assert await found("late=true") == []
    assert await found(f"job_id={job_id}&late=false&trigger=schedule") == ids[::-1]


async def test_a_run_shows_its_request_without_secrets_as_its_job_was_then(api, new_job, node, fake_clock):
    url = "http://127.0.0.1:5003/hook?token=s3cret&day=1"
    target = {"type": "webhook", "url": url, "headers": {"Authorization": "Bearer s3cret", "X-Team": "ops"}}
    job = await new_job(**EVERY, target=target, params={"n": 1})
    await fake_clock.advance(60)
    (run,) = await node.work(Outcome(kind="error", error="503", detail={"status_code": 503, "response": "later"}))
    await fake_clock.advance(60)
    await api.patch(f"/v1/jobs/{job['id']}", json={"target": {"url": "http://127.0.0.1:5003/moved"}})
    shown = await api.get(f"/v1/runs/{run}")
    assert "s3cret" not in shown.text
    request = shown.json()["request"]
    assert (request["method"], request["body"]) == ("POST", {"n": 1})
    assert request["url"].startswith("http://127.0.0.1:5003/hook?")
    assert request["headers"]["x-team"] == "ops"
    assert request["headers"]["webhook-id"] == run
    assert shown.json()["response"] == {"status_code": 503, "body": "later"}
    (pending,) = (await api.get("/v1/runs?status=PENDING")).json()["items"]
    assert "request" not in pending
    assert (await api.get(f"/v1/runs/{pending['id']}")).json()["request"] is None
