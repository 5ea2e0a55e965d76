"""Later results over HTTP: the token is the only credential."""

from __future__ import annotations

from typing import Any

import pytest

from onthedot.model.callback import callback_token
from onthedot.model.key import ApiKeySpec
from onthedot.model.run import Outcome
from onthedot.store.abandoned_requests import ASKER
from tests.api.conftest import client_of, paths, problem, serving
from tests.services.waiting import until

ACCEPTED = Outcome(kind="ok", detail={"status_code": 202})
ADMIN = ApiKeySpec(name="admin", scope="admin")
POLICY = {"completion": "callback", "completion_timeout": "10m"}


@pytest.fixture
async def waiting(api, app, new_job, node, fake_clock):
    """A run whose call was accepted; its address with the token of its first try."""
    await new_job(schedule={"every": "1m"}, policy=POLICY)
    await fake_clock.advance(60)
    (run_id,) = await node.work(ACCEPTED)
    secret = await app.context.service.store.callback_secret("unused")

    def address(verb: str = "complete", of: int = 1, run: str = run_id) -> str:
        return f"/v1/runs/{run}/{verb}?token={callback_token(secret, run_id, of)}"

    return run_id, address


FULL = ("followers", "request", "response")
"""What a run alone has and other answers leave out."""


async def test_a_receiver_completes_it(api, waiting):
    run_id, address = waiting
    shown = (await api.get(f"/v1/runs/{run_id}")).json()
    assert (shown["status"], shown["waiting"], shown["result"]) == ("EXECUTING", "callback", None)
    answer = await api.post(address(), json={"status": "done", "result": {"rows": 3}})
    assert answer.status_code == 200, answer.text
    run = answer.json()
    assert (run["id"], run["status"], run["result"]) == (run_id, "DONE", {"rows": 3})
    shown = (await api.get(f"/v1/runs/{run_id}")).json()
    assert {name: shown[name] for name in run if name not in FULL} == {
        name: run[name] for name in run if name not in FULL
    }
    again = await api.post(address(), json={"status": "failed"})
    assert (again.status_code, again.json()) == (200, run), "a repeat changes nothing"


async def test_without_a_key_where_keys_are_asked_for(api, app, waiting):
    _, address = waiting
    ASKER.set(None)  # the clock was turned since the last request of this test
    await app.context.service.create_key(ADMIN)
    assert (await api.get("/v1/runs")).status_code == 401
    assert (await api.post(address("progress"), json={"percent": 5})).status_code == 204
    assert (await api.post(address(), json={"status": "done"})).status_code == 200


@pytest.mark.parametrize("verb", ["complete", "progress"])
@pytest.mark.parametrize("change", ["no token", "another try's", "one letter", "another run's", "empty"])
async def test_no_other_token_will_do(api, waiting, verb, change):
    run_id, address = waiting
    good = address(verb)
    at, token = good.split("?token=")
    wrong = {
        "no token": at,
        "another try's": f"{at}?token=2{token[1:]}",
        "one letter": f"{at}?token={token[:-1]}{'A' if token[-1] != 'A' else 'B'}",
        "another run's": address(verb, run=f"{run_id}-m1"),
        "empty": f"{at}?token=1.",
    }[change]
    answer = await api.post(wrong, json={"status": "done"} if verb == "complete" else {"percent": 1})
    problem(answer, 401)
    assert (await api.get(f"/v1/runs/{run_id}")).json()["status"] == "EXECUTING"


async def test_what_ended_otherwise_is_409_and_recorded(api, waiting):
    run_id, address = waiting
    assert (await api.post(f"/v1/runs/{run_id}/cancel")).json()["status"] == "CANCELLED"
    told = problem(await api.post(address(), json={"status": "done"}), 409)
    assert "CANCELLED" in told["detail"]
    assert "was refused" in (await api.get(f"/v1/runs/{run_id}/logs")).text
    problem(await api.post(address("progress"), json={"percent": 1}), 409)


async def test_a_failure_is_tried_again_as_the_policy_says(api, waiting):
    _, address = waiting
    run = (await api.post(address(), json={"status": "failed", "error": "no rows"})).json()
    assert (run["status"], run["error"], run["tries"]) == ("PENDING", "no rows", 1)


async def test_one_that_is_not_to_be_tried_again(api, waiting):
    _, address = waiting
    run = (await api.post(address(), json={"status": "failed", "retryable": False})).json()
    assert (run["status"], run["error"]) == ("FAILED", "the receiver reported a failure")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "status"),
        ({"status": "ok"}, "status"),
        ({"status": "done", "results": 1}, "results"),
        ({"status": "done", "error": "x"}, "error"),
        ({"status": "done", "retryable": True}, "retryable"),
        ({"status": "failed", "error": "x" * 2001}, "error"),
        ({"status": "done", "result": "x" * 70_000}, "result"),
    ],
)
async def test_what_is_wrong_is_named(api, waiting, body, path):
    _, address = waiting
    assert paths(problem(await api.post(address(), json=body), 422)) == [path]


@pytest.mark.parametrize(
    ("body", "path"), [({"percent": 101}, "percent"), ({"message": "x" * 501}, "message"), ({"of": 3}, "of")]
)
async def test_what_is_wrong_with_progress_is_named(api, waiting, body, path):
    _, address = waiting
    assert paths(problem(await api.post(address("progress"), json=body), 422)) == [path]


async def test_more_than_that_is_too_large(api, waiting):
    _, address = waiting
    problem(await api.post(address(), json={"status": "done", "result": "x" * 300_000}), 413)


async def test_progress_shows_and_a_thousand_reports_are_two_writes(api, app, waiting, fake_clock):
    run_id, address = waiting
    store, written = app.context.service.store, []
    write = store.set_progress

    async def counted(*said):
        await write(*said)
        written.append(said)

    app.context.service.progress._write = counted
    for percent in range(1000):
        answer = await api.post(address("progress"), json={"percent": percent / 10})
        assert answer.status_code == 204, answer.text
    assert len(written) == 1, "the first at once"
    await fake_clock.advance(1)
    await until(lambda: len(written) == 2, "the last one is written, too")
    assert [said[2] for said in written] == [{"percent": 0.0}, {"percent": 99.9}]
    shown = (await api.get(f"/v1/runs/{run_id}")).json()["progress"]
    assert shown["percent"] == 99.9
    assert shown["at"].endswith("Z")


async def test_without_an_address_that_receivers_reach_it_is_refused(sqlite_url, fake_clock):
    job = {"schedule": {"every": "1m"}, "target": {"type": "webhook", "url": "http://10.0.0.1/"}, "policy": POLICY}
    async with serving(sqlite_url, fake_clock, host="0.0.0.0") as app:
        key = (await app.context.service.create_key(ADMIN)).key
        async with client_of(app, key) as client:
            told = problem(await client.post("/v1/jobs", json=job), 422)
    assert paths(told) == ["policy.completion"]
    assert "PUBLIC_URL" in told["detail"]


async def test_with_one_it_is_not(sqlite_url, fake_clock):
    job = {"schedule": {"every": "1m"}, "target": {"type": "webhook", "url": "http://10.0.0.1/"}, "policy": POLICY}
    settings: dict[str, Any] = {"host": "0.0.0.0", "public_url": "https://jobs.example.com"}
    async with serving(sqlite_url, fake_clock, **settings) as app:
        key = (await app.context.service.create_key(ADMIN)).key
        async with client_of(app, key) as client:
            assert (await client.post("/v1/jobs", json=job)).status_code == 201


async def test_only_what_is_called_can_call_back(api):
    job = {"schedule": {"every": "1m"}, "target": {"type": "command", "command": "backup"}, "policy": POLICY}
    assert paths(problem(await api.post("/v1/jobs", json=job), 422)) == ["policy.completion"]


@pytest.mark.parametrize(("completion", "status"), [("callback", 201), ("answer", 422)])
async def test_a_body_can_have_the_callback_if_there_is_one(api, completion, status):
    target = {"type": "webhook", "url": "https://example.com/hook", "body": {"tell": {"$": "callback"}}}
    answer = await api.post(
        "/v1/jobs", json={"schedule": {"in": "1h"}, "target": target, "policy": {"completion": completion}}
    )
    assert answer.status_code == status, answer.text
    if status == 422:
        assert answer.json()["errors"][0]["path"] == "target.body.tell.$"
