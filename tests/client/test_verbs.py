"""Each verb of the client is one request, and its answer a typed thing."""

from __future__ import annotations

import asyncio

import pytest

from onthedot.client import AsyncClient, Client
from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.key import ApiKeySpec
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget
from onthedot.model.timer import TimerSpec

SPEC = JobSpec(schedule=Schedule(every=Duration.parse("1m")), target=WebhookTarget(url="http://example.com/"))
AT = "2026-01-01T00:00:00.000Z"
CALLBACK = "https://jobs.example.com/otd/v1/runs/7-1/complete?token=1.abc"


@pytest.fixture
async def client(server, clock):
    async with AsyncClient(server.url, "otd_secret", clock=clock) as client:
        yield client


async def test_creating_sends_the_spec_the_key_and_a_name_for_the_request(server, client, job):
    server.answer(201, job())
    made = await client.create_job(SPEC)
    assert made.id == 7
    assert made.schedule.every == Duration.parse("1m")
    (seen,) = server.seen
    assert (seen.method, seen.path) == ("POST", "/v1/jobs")
    assert seen.body["schedule"] == {"every": "1m"}
    assert seen.headers["authorization"] == "Bearer otd_secret"
    assert len(seen.headers["idempotency-key"]) == 36
    assert seen.headers["user-agent"].startswith("onthedot-client/")


async def test_a_caller_may_name_the_request_itself(server, client, job):
    server.answer(201, job())
    await client.create_job(SPEC, idempotency_key="mine")
    assert server.seen[0].headers["idempotency-key"] == "mine"


VERBS = [
    ("get_job", (7,), "GET", "/v1/jobs/7", "job"),
    ("get_job_by_key", ("a.b-c",), "GET", "/v1/jobs/by-key/a.b-c", "job"),
    ("pause_job", (7,), "POST", "/v1/jobs/7/pause", "job"),
    ("resume_job", (7,), "POST", "/v1/jobs/7/resume", "job"),
    ("skip_slot", (7, AT), "POST", "/v1/jobs/7/skip", "job"),
    ("unskip_slot", (7, AT), "POST", "/v1/jobs/7/unskip", "job"),
    ("replace_job", (7, SPEC), "PUT", "/v1/jobs/7", "job"),
    ("put_job_by_key", ("k", SPEC), "PUT", "/v1/jobs/by-key/k", "job"),
    ("patch_job", (7, {"name": "x"}), "PATCH", "/v1/jobs/7", "job"),
    ("run_job", (7,), "POST", "/v1/jobs/7/run", "run"),
    ("get_run", ("7-1",), "GET", "/v1/runs/7-1", "run"),
    ("cancel_run", ("7-1",), "POST", "/v1/runs/7-1/cancel", "run"),
    ("retry_run", ("7-1",), "POST", "/v1/runs/7-1/retry", "run"),
    ("complete", (CALLBACK,), "POST", "/v1/runs/7-1/complete", "run"),
]


@pytest.mark.parametrize(("verb", "args", "method", "path", "kind"), VERBS)
async def test_a_verb_is_one_request(server, client, job, run, verb, args, method, path, kind):
    server.answer(200, job() if kind == "job" else run())
    answer = await getattr(client, verb)(*args)
    assert answer.id == (7 if kind == "job" else "7-1763234567890")
    assert [(seen.method, seen.path) for seen in server.seen] == [(method, path)]


@pytest.mark.parametrize("verb", ["replace_job", "patch_job", "delete_job"])
async def test_a_change_may_be_conditional(server, client, job, verb):
    server.answer(200, job())
    args = {"replace_job": (SPEC,), "patch_job": ({},), "delete_job": ()}[verb]
    await getattr(client, verb)(7, *args, if_match=3)
    assert server.seen[0].headers["if-match"] == '"3"'


@pytest.mark.parametrize("verb", ["pause_job", "resume_job", "run_job"])
async def test_a_verb_may_be_conditional_and_is_done_once(server, client, job, run, verb):
    server.answer(200, run() if verb == "run_job" else job())
    await getattr(client, verb)(7, if_match=3, idempotency_key="once")
    headers = server.seen[0].headers
    assert (headers["if-match"], headers["idempotency-key"]) == ('"3"', "once")


async def test_a_pause_and_a_run_say_what_they_are_told_to_say(server, client, job, run):
    server.answer(200, job())
    await client.pause_job(7, note="moving", until=AT)
    assert server.seen[0].body == {"note": "moving", "until": AT}
    server.answers[:] = []
    server.answer(201, run())
    await client.run_job(7, params={"day": 1})
    assert server.seen[1].body == {"params": {"day": 1}}


async def test_the_status_of_a_job_in_short(server, client):
    said = {"execution_time": 5, "key": "5-7", "job_id": 7, "user_id": None, "status": "PENDING", "attempt": 0}
    server.answer(200, said)
    assert (await client.job_status(7)).key == "5-7"
    assert server.seen[0].path == "/v1/jobs/7/status"


async def test_a_patch_is_sent_as_one(server, client, job):
    server.answer(200, job())
    await client.patch_job(7, {"name": None, "policy": {"timeout": "5s"}})
    assert server.seen[0].headers["content-type"] == "application/merge-patch+json"
    assert server.seen[0].body == {"name": None, "policy": {"timeout": "5s"}}


async def test_deleting_answers_nothing(server, client):
    server.answer(204)
    assert await client.delete_job(7) is None
    assert (server.seen[0].method, server.seen[0].path) == ("DELETE", "/v1/jobs/7")


async def test_a_batch_has_one_answer_per_job(server, client):
    wrong = {"status": 422, "detail": "no", "errors": [{"path": "schedule", "message": "never"}]}
    server.answer(200, [{"status": 201, "id": 1, "key": "a"}, wrong])
    first, second = await client.create_many([SPEC, SPEC])
    assert (first.status, first.id, first.key) == (201, 1, "a")
    assert (second.status, second.id, second.errors[0].message) == (422, None, "never")


async def test_filters_that_are_none_are_not_sent(server, client, job):
    server.answer(200, {"items": [job()], "next": None})
    page = await client.list_jobs(q="nig", tag=None, limit=5)
    assert [item.id for item in page.items] == [7]
    assert server.seen[0].query == {"q": "nig", "limit": "5"}


async def test_an_iterator_follows_the_pages(server, client, job):
    server.answer(200, {"items": [job(1), job(2)], "next": "/v1/jobs?limit=500&tag=x&cursor=a%3Db"})
    server.answer(200, {"items": [job(3)], "next": None})
    assert [item.id async for item in client.iter_jobs(tag="x")] == [1, 2, 3]
    assert server.seen[0].query == {"limit": "500", "tag": "x"}
    assert server.seen[1].query == {"limit": "500", "tag": "x", "cursor": "a=b"}


async def test_pages_are_asked_for_only_when_they_are_used(server, client, run):
    server.answer(200, {"items": [run("1-1"), run("1-2")], "next": "/v1/runs?cursor=x"})
    async for item in client.iter_runs(job_id=7):
        assert item.id == "1-1"
        break
    assert len(server.seen) == 1


async def test_dead_letters(server, client, run):
    server.answer(200, {"items": [run(status="FAILED")], "next": None})
    server.answer(201, {"runs": ["7-1-r1"]})
    assert [item.status async for item in client.iter_dead()] == ["FAILED"]
    assert await client.redrive(["7-1"]) == ["7-1-r1"]
    assert server.seen[1].body == {"limit": 1000, "ids": ["7-1"]}
    await client.redrive(job_id=7, limit=5)
    assert server.seen[2].body == {"limit": 5, "job_id": 7}


async def test_backfill_and_explain(server, client):
    server.answer(201, {"runs": ["7-1-b1", "7-2-b2"]})
    assert await client.backfill_job(7, AT, AT, force=True) == ["7-1-b1", "7-2-b2"]
    assert server.seen[0].body == {"start": AT, "end": AT, "force": True}
    server.answers[:] = []
    server.answer(200, {"at": AT, "slot": True, "because": "x", "previous": None, "next": AT, "run": None})
    assert (await client.explain(7, AT)).because == "x"
    assert server.seen[1].query == {"at": AT}
    server.answers[:] = []
    server.answer(200, {"follows": [{"on": "on_finish", "id": 3, "key": None}], "followers": []})
    assert [each.id for each in (await client.chain_of(7)).follows] == [3]


async def test_logs_are_text(server, client):
    server.answer(200, "line 1\nline 2 ✓\n")
    assert await client.run_logs("7-1") == "line 1\nline 2 ✓\n"


async def test_timers(server, client):
    server.answer(201, {"id": 3, "time_left": 10})
    timer = await client.create_timer(TimerSpec(seconds=10, url="http://example.com/"))
    assert (timer.id, timer.time_left) == (3, 10)
    assert server.seen[0].body == {"hours": 0, "minutes": 0, "seconds": 10, "url": "http://example.com/"}
    assert (await client.get_timer(3)).time_left == 10
    assert server.seen[1].path == "/timers/3"


async def test_preview_and_sync(server, client):
    server.answer(200, {"fires": [AT], "description": "At 03:00", "remarks": []})
    assert (await client.preview(Schedule(cron="0 3 * * *"), after=AT, count=1)).fires == [AT]
    assert server.seen[0].body == {"schedule": {"cron": "0 3 * * *"}, "count": 1, "after": AT}
    server.answers[:] = []
    server.answer(200, {"created": ["a"], "updated": [], "unchanged": ["b"], "removed": []})
    report = await client.sync_jobs("jobs.json", [SPEC], prune=True)
    assert (report.created, report.unchanged) == (["a"], ["b"])
    assert server.seen[1].body["source"] == "jobs.json"
    assert server.seen[1].body["prune"] is True


async def test_keys(server, client):
    info = {"id": 1, "name": "ci", "scope": "write", "tenant": "default", "prefix": "otd_abc"}
    info |= {"created_at": AT, "expires_at": None, "revoked_at": None}
    server.answer(201, {"key": "otd_abcdef", "info": info})  # as a server of the release before answers
    made = await client.create_key(ApiKeySpec(name="ci", scope="write", expires=Duration.parse("90d")))
    assert (made.id, made.key) == (1, "otd_abcdef")
    assert server.seen[0].body["expires"] == "90d"
    server.answers[:] = []
    server.answer(200, {"items": [info]})
    assert [key.name for key in await client.list_keys()] == ["ci"]
    server.answers[:] = []
    server.answer(204)
    await client.revoke_key(1)
    assert (server.seen[2].method, server.seen[2].path) == ("DELETE", "/v1/keys/1")


async def test_what_a_newer_server_adds_is_ignored(server, client, job):
    server.answer(200, {**job(), "colour": "red"})
    assert (await client.get_job(7)).id == 7


async def test_the_plain_client_does_the_same(server, job, run):
    """In a thread: it has a loop of its own and may not be used on a running one."""
    server.answer(200, job())
    server.answer(200, {"items": [run("1-1")], "next": "/v1/runs?cursor=x"})
    server.answer(200, {"items": [run("1-2")], "next": None})

    def use() -> tuple[int, list[str], str]:
        with Client(server.url + "/") as plain:
            return plain.get_job(7).id, [item.id for item in plain.iter_runs()], plain.url

    assert await asyncio.to_thread(use) == (7, ["1-1", "1-2"], server.url)


def test_the_plain_client_has_every_verb_of_the_other():
    verbs = {name for name in dir(AsyncClient) if not name.startswith("_")}
    assert verbs == {name for name in dir(Client) if not name.startswith("_")}


async def test_a_receiver_tells_how_it_ended_by_the_callback_url_it_got(server, client, run):
    server.answer(200, run())
    await client.complete(CALLBACK, status="failed", error="no rows", retryable=False)
    (seen,) = server.seen
    assert seen.query == {"token": "1.abc"}
    assert seen.body == {"status": "failed", "error": "no rows", "retryable": False}


async def test_a_receiver_tells_how_far_it_has_got(server, client):
    server.answer(204, None)
    await client.progress(CALLBACK, percent=40, message="rows")
    (seen,) = server.seen
    assert (seen.path, seen.query) == ("/v1/runs/7-1/progress", {"token": "1.abc"})
    assert seen.body == {"percent": 40, "message": "rows"}


async def test_what_is_no_callback_url_is_sent_nowhere(server, client):
    with pytest.raises(ValueError, match="not a callback URL"):
        await client.complete("https://jobs.example.com/v1/runs/7-1")
    assert server.seen == []
