"""Incident bundles: all that is known of a run in one file, and no secret in it wherever secrets may stand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from onthedot.api.app import App
from onthedot.clock import FakeClock
from onthedot.model.bundle import IncidentBundle
from onthedot.model.decoding import convert
from onthedot.model.incident import Trouble, job_subject, node_subject
from onthedot.model.run import Outcome
from onthedot.model.secret_text import MASK, is_secret_name
from onthedot.store.alerts.incidents import open_incidents
from tests.api.conftest import JOB, client_of, serving
from tests.api.executor import OK, TinyNode


@pytest.fixture
async def app(store_url: str, fake_clock: FakeClock) -> AsyncIterator[App]:
    async with serving(store_url, fake_clock) as app:
        yield app


@pytest.fixture
async def api(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


@pytest.fixture
async def node(app: App) -> TinyNode:
    node = TinyNode(app.context.service.store)
    await node.register()
    return node


SECRETS = {
    "signing": "whsec_" + "c2lnbmluZ1NlY3JldE9mMjQhISEhISEhISE=",
    "older signing": "whsec_" + "b2xkZXJTZWNyZXRPZjI0ISEhISEhISEhISE=",
    "header": "Bearer hdr-4711",
    "own header": "xkey-4712",
    "url password": "pw-4713",
    "url token": "tok-4714",
    "earlier url token": "tok-4715",
    "body": "body-4716",
    "job param": "par-4717",
    "run param": "run-4718",
    "in log only": "log-4719",
    "in result": "res-4720",
    "private key": "MIIE4721",
}


def target(token: str) -> dict[str, Any]:
    return {
        "type": "webhook",
        "url": f"https://hooks.example/in?token={token}&page=2",
        "headers": {"Authorization": SECRETS["header"], "X-Api-Key": SECRETS["own header"], "accept": "text/plain"},
        "body": {"login": {"password": SECRETS["body"]}, "amount": 12},
        "secrets": [SECRETS["signing"], SECRETS["older signing"]],
    }


async def failed_run(api: httpx.AsyncClient, node: TinyNode, clock: FakeClock) -> str:
    """A job that is full of secrets, changed once, went well once, and then had a run with params of its own fail,
    whose receiver repeats all of them."""
    unknown = ("in log only", "private key", "url password")  # nobody can know them but by what stands around them
    repeated = " | ".join(value for name, value in SECRETS.items() if name not in unknown)
    made = {
        **JOB,
        "policy": {"retry": {"attempts": 1}},
        "params": {"user": "ann", "db_password": SECRETS["job param"]},
    }
    job = (await api.post("/v1/jobs", json={**made, "target": target(SECRETS["earlier url token"])})).json()
    assert "id" in job, job
    first = (await api.post(f"/v1/jobs/{job['id']}/run")).json()
    assert await node.work(OK) == [first["id"]]
    await api.put(f"/v1/jobs/{job['id']}", json={**made, "target": target(SECRETS["url token"])})
    await clock.advance(60)
    params = {"pin": 3, "credentials": {"user": "bob", "key": SECRETS["run param"]}}
    run = (await api.post(f"/v1/jobs/{job['id']}/run", json={"params": params})).json()
    detail = {"status_code": 500, "response": f"you sent {repeated}", "result": {"secret": SECRETS["in result"]}}
    error = f"500 from https://me:{SECRETS['url password']}@hooks.example: {repeated}"
    log = f"{repeated}\npassword={SECRETS['in log only']}\n-----BEGIN PRIVATE KEY-----\n{SECRETS['private key']}\n"
    assert await node.work(Outcome(kind="error", error=error, detail=detail), log=log) == [run["id"]]
    return str(run["id"])


async def test_it_holds_all_that_is_known_and_no_secret(api, node, fake_clock):
    run_id = await failed_run(api, node, fake_clock)
    answer = await api.get(f"/v1/runs/{run_id}/bundle")
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == f'attachment; filename="onthedot-run-{run_id}.json"'
    text = json.dumps(answer.json(), ensure_ascii=False)
    assert {name: value for name, value in SECRETS.items() if value.removeprefix("Bearer ") in text} == {}
    found = answer.json()
    bundle = convert(found, IncidentBundle)
    assert bundle.run is not None
    assert bundle.job is not None
    assert bundle.explanation is not None
    assert bundle.last_good_run is not None
    assert (bundle.run.id, bundle.run.status, bundle.last_good_run.status) == (run_id, "FAILED", "DONE")
    assert found["run"]["request"]["headers"]["accept"] == "text/plain"
    assert found["run"]["request"]["body"] == {"login": {"password": MASK}, "amount": 12}
    assert found["run"]["params"] == {"pin": 3, "credentials": {"user": MASK, "key": MASK}}
    assert found["job"]["params"] == {"user": "ann", "db_password": MASK}
    assert [version.version for version in bundle.versions] == [2, 1]
    assert bundle.run.id in [each.id for each in bundle.recent_runs]
    assert [change.verb for change in bundle.changes] == ["run", "edit", "run"]
    assert [(node.id, node.name) for node in bundle.node_names] == [("tiny-1", "tiny")]
    assert [node.name for node in bundle.nodes] == ["tiny"]
    assert bundle.log is not None
    assert f"password={MASK}" in bundle.log
    assert bundle.missing == {}


async def test_no_name_of_ours_is_taken_for_a_secret(api, node, fake_clock):
    """They would be masked with the rest."""
    run_id = await failed_run(api, node, fake_clock)
    found = (await api.get(f"/v1/runs/{run_id}/bundle")).json()

    def names(value: Any) -> set[str]:
        if isinstance(value, dict):
            return set(value) | {name for each in value.values() for name in names(each)}
        return {name for each in value for name in names(each)} if isinstance(value, list) else set()

    theirs = {"Authorization", "X-Api-Key", "authorization", "x-api-key", "password", "db_password", "credentials"}
    ours = {name for name in names(found) if is_secret_name(name)} - theirs
    assert ours <= {"secrets", "secret", "webhook-signature"}, "a signing secret, a result's own, and a header's"


async def test_of_a_deleted_job_what_is_left_and_why_the_rest_is_not_there(api, node, fake_clock):
    run_id = await failed_run(api, node, fake_clock)
    assert (await api.delete(f"/v1/jobs/{run_id.partition('-')[0]}")).status_code == 204
    bundle = (await api.get(f"/v1/runs/{run_id}/bundle")).json()
    assert (bundle["job"], bundle["versions"], bundle["explanation"]) == (None, [], None)
    assert "not found" in bundle["missing"]["job"]
    assert bundle["run"]["status"] == "FAILED"
    assert SECRETS["in log only"] not in json.dumps(bundle)


async def test_of_an_incident_with_its_run_and_of_one_without(app, api, node, fake_clock):
    run_id = await failed_run(api, node, fake_clock)
    job_id, store = int(run_id.partition("-")[0]), app.context.service.store
    now = await store.now()
    facts: dict[str, Any] = {"tenant": 1, "reason": f"failed: {SECRETS['url token']}", "cause": "500", "at": now}
    troubles = [
        Trouble(subject=job_subject(job_id), condition="failed", job_id=job_id, occurrence=run_id, **facts),
        Trouble(subject=node_subject("gone"), condition="node_lost", title="gone", **{**facts, "reason": "lost"}),
    ]
    await store.driver.transact_slow(lambda tx: open_incidents(tx, troubles))
    lost, failed = (await api.get("/v1/alerts")).json()["items"]
    if lost["condition"] != "node_lost":
        lost, failed = failed, lost
    answer = await api.get(f"/v1/alerts/{failed['id']}/bundle")
    assert answer.headers["content-disposition"] == f'attachment; filename="onthedot-incident-{failed["id"]}.json"'
    bundle = answer.json()
    assert (bundle["run"]["id"], bundle["incident"]["id"]) == (run_id, failed["id"])
    assert bundle["incident"]["reason"] == f"failed: {MASK}"
    assert [each["id"] for each in bundle["incidents"]] == [failed["id"]]
    bundle = (await api.get(f"/v1/alerts/{lost['id']}/bundle")).json()
    assert (bundle["run"], bundle["job"], bundle["incident"]["title"]) == (None, None, "gone")
    assert [each["name"] for each in bundle["nodes"]] == ["tiny"]


@pytest.mark.parametrize(
    "path", ["/v1/runs/1-1/bundle", "/v1/alerts/77/bundle", "/v1/alerts/x/bundle", "/v1/runs/x/bundle"]
)
async def test_what_is_not_there_is_404(api, path):
    assert (await api.get(path)).status_code == 404


async def test_another_tenant_s_run_is_not_there(app, api, node, fake_clock):
    run_id = await failed_run(api, node, fake_clock)
    for name, tenant in (("a", "default"), ("b", "other")):
        key = (await api.post("/v1/keys", json={"name": name, "scope": "admin", "tenant": tenant})).json()["key"]
        async with client_of(app, key) as client:
            assert (await client.get(f"/v1/runs/{run_id}/bundle")).status_code == (200 if name == "a" else 404)
        if name == "a":
            api.headers["authorization"] = f"Bearer {key}"
