"""The main path over HTTP means the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
from typing import Any

from onthedot.clock import SystemClock
from onthedot.model.key import ApiKeySpec
from onthedot.model.targets import WebhookTarget
from onthedot.service import DEFAULT_TENANT
from tests.api.conftest import JOB, client_of, paths, problem, serving
from tests.api.executor import FAILED, TinyNode


async def test_a_jobs_life(store_url):
    async with serving(store_url, SystemClock()) as app, client_of(app) as api:
        node = TinyNode(app.context.service.store)
        await node.register()
        timer = await api.post("/timers", json={"seconds": 60, "url": "http://127.0.0.1:5003/"})
        assert (timer.status_code, timer.json()["time_left"]) == (201, 60)
        assert (await api.get(f"/timers/{timer.json()['id']}")).json()["time_left"] in (59, 60)

        headers = {"idempotency-key": "once"}
        made = await api.post("/v1/jobs", json={**JOB, "tags": ["x"]}, headers=headers)
        job = made.json()
        assert (made.status_code, job["state"]) == (201, "active")
        assert (await api.post("/v1/jobs", json={**JOB, "tags": ["x"]}, headers=headers)).json() == job
        problem(await api.post("/v1/jobs", json=JOB, headers=headers), 422)
        problem(await api.post("/v1/jobs", json=JOB), 409)

        address = f"/v1/jobs/{job['id']}"
        assert (await api.patch(address, json={"name": "Ünï"}, headers={"if-match": '"1"'})).json()["version"] == 2
        problem(await api.patch(address, json={"name": "x"}, headers={"if-match": '"1"'}), 412)
        assert [one["id"] for one in (await api.get("/v1/jobs?q=ünï&tag=x")).json()["items"]] == [job["id"]]

        run = (await api.post(f"{address}/run", headers={"idempotency-key": "run"})).json()
        assert (await api.post(f"{address}/run", headers={"idempotency-key": "run"})).json() == run
        assert await node.work(FAILED, log="it failed\n") == [run["id"]]
        assert (await api.get(f"/v1/runs/{run['id']}")).json()["status"] == "FAILED"
        assert (await api.get(f"/v1/runs/{run['id']}/logs")).text == "it failed\n"
        assert [one["id"] for one in (await api.get("/v1/dead")).json()["items"]] == [run["id"]]

        again = {"idempotency-key": "again"}
        driven = (await api.post("/v1/dead/redrive", headers=again)).json()
        assert len(driven["runs"]) == 1
        assert (await api.post("/v1/dead/redrive", headers=again)).json() == driven
        retried = (await api.post(f"/v1/runs/{run['id']}/retry", headers={"idempotency-key": "r"})).json()
        assert (await api.post(f"/v1/runs/{run['id']}/retry", headers={"idempotency-key": "r"})).json() == retried
        assert set(await node.work()) == {*driven["runs"], retried["id"]}

        assert (await api.get("/v1/stats")).json()["last_hour"]["DONE"] == 2
        assert (await api.get("/readyz")).status_code == 200
        assert "onthedot_store_up 1.0" in (await api.get("/metrics")).text
        assert (await api.get("/")).status_code == 200
        assert (await api.post(f"{address}/pause")).json()["state"] == "paused"
        assert (await api.delete(address)).status_code == 204


async def test_conditions_on_existence_create_only_or_replace_only(store_url):
    async with serving(store_url, SystemClock()) as app, client_of(app) as api:
        address, body = "/v1/jobs/by-key/new", {**JOB, "key": "new"}
        refused = problem(await api.put(address, json=body, headers={"if-match": "*"}), 412)
        assert refused["detail"] == "job with key 'new' not found"
        problem(await api.get(address), 404)
        assert (await api.put(address, json=body, headers={"if-none-match": "*"})).status_code == 201
        changed = {**body, "name": "another"}
        refused = problem(await api.put(address, json=changed, headers={"if-none-match": "*"}), 412)
        assert refused["detail"] == "job with key 'new' already exists"
        assert (await api.get(address)).json()["version"] == 1
        replaced = await api.put(address, json=changed, headers={"if-match": "*"})
        assert (replaced.status_code, replaced.json()["name"]) == (200, "another")
        named = problem(await api.put(address, json=body, headers={"if-none-match": '"1"'}), 422)
        assert paths(named) == ["If-None-Match"]


async def test_what_is_read_back_is_no_change(store_url):
    made_by_the_store = (
        "id",
        "version",
        "state",
        "reason",
        "next_run",
        "last_run",
        "created_at",
        "updated_at",
        "stats",
    )
    async with serving(store_url, SystemClock()) as app, client_of(app) as api:
        said: list[dict[str, Any]] = [
            {},
            {"requires": []},
            {"requires": ["gpu"], "owner": "ops"},
            {"owner": None, "on_success": []},
        ]
        for more in said:
            made = (await api.post("/v1/jobs", json={**JOB, **more, "key": None})).json()
            sent = {name: value for name, value in made.items() if name not in (*made_by_the_store, "pause")}
            address = f"/v1/jobs/{made['id']}"
            assert (await api.put(address, json=sent)).json() == made
            assert (await api.patch(address, json=sent)).json() == made
            for name in [name for name, value in sent.items() if value in (None, [])]:
                del sent[name]
            assert (await api.put(address, json=sent)).json() == made


async def test_passwords_in_urls_of_headers_are_masked_and_kept(store_url):
    shown = "https://app:••••••@replies.example/cb?token=••••••&x=1"
    async with serving(store_url, SystemClock()) as app, client_of(app) as api:
        target = {**JOB["target"], "headers": {"X-Reply-To": "https://app:pw1@replies.example/cb?token=t1&x=1"}}
        made = (await api.post("/v1/jobs", json={**JOB, "target": target})).json()
        assert made["target"]["headers"] == {"X-Reply-To": shown}
        address = f"/v1/jobs/{made['id']}"
        for read in (address, "/v1/jobs", f"{address}/versions"):
            text = (await api.get(read)).text
            assert "pw1" not in text
            assert "t1" not in text
        changed = {**JOB, "name": "sent back", "target": made["target"]}
        assert (await api.put(address, json=changed)).json()["name"] == "sent back"
        spec = (await app.context.service.store.get_record(DEFAULT_TENANT, made["id"])).spec
        assert isinstance(spec.target, WebhookTarget)
        assert spec.target.headers == target["headers"]
        elsewhere = {"target": {"headers": {"X-Reply-To": shown.replace("replies", "evil")}}}
        assert paths(problem(await api.patch(address, json=elsewhere), 422)) == ["target.headers.X-Reply-To"]


async def test_a_batch_and_its_pages(store_url):
    async with serving(store_url, SystemClock()) as app, client_of(app) as api:
        body = [{**JOB, "key": f"job-{n}"} for n in range(120)] + [{**JOB, "key": "job-7"}, {"key": "bad"}]
        answers = (await api.post("/v1/jobs/batch", json=body)).json()
        assert [one["status"] for one in answers] == [201] * 120 + [409, 422]
        seen, address = [], "/v1/jobs?limit=50&q=JOB-"
        while address:
            page = (await api.get(address)).json()
            seen += [one["key"] for one in page["items"]]
            address = page["next"]
        assert sorted(seen) == sorted(f"job-{n}" for n in range(120))


async def test_hazards_that_only_one_of_them_minds(store_url):
    async with serving(store_url, SystemClock()) as app, client_of(app) as api:
        for body in ({"name": "a\x00b"}, {"params": {"n": 2**63}}, {"params": {"\x00": 1}}):
            content = json.dumps({**JOB, **body})
            assert paths(problem(await api.post("/v1/jobs", content=content), 422))
        for query in ("q=%00", "tag=%00", "cursor=%00"):
            problem(await api.get(f"/v1/jobs?{query}"), 422)
        far = {"params": {"n": -(2**63), "f": 1e308, "deep": {"a": [{}]}}, "name": "🙂" * 500, "tags": ["é" * 100]}
        made = await api.post("/v1/jobs", json={**JOB, **far})
        assert made.status_code == 201, made.text
        assert made.json()["params"] == far["params"]


async def test_keys_and_tenants(store_url):
    async with serving(store_url, SystemClock()) as app:
        made = await app.context.service.create_key(ApiKeySpec(name="a", scope="write", tenant="one"))
        other = await app.context.service.create_key(ApiKeySpec(name="b", scope="write", tenant="two"))
        async with client_of(app, made.key) as mine, client_of(app, other.key) as theirs, client_of(app) as nobody:
            job = (await mine.post("/v1/jobs", json=JOB)).json()
            problem(await theirs.get(f"/v1/jobs/{job['id']}"), 404)
            assert (await theirs.post("/v1/jobs", json=JOB)).status_code == 201
            problem(await nobody.get("/v1/jobs"), 401)
            problem(await mine.get("/v1/keys"), 403)


async def test_a_pause_by_hand_and_what_replaces_the_job(store_url):
    async with serving(store_url, SystemClock()) as app, client_of(app) as api:
        address = f"/v1/jobs/{(await api.post('/v1/jobs', json=JOB)).json()['id']}"
        assert (await api.post(f"{address}/pause", json={"note": "incident 7"})).json()["state"] == "paused"
        patched = (await api.patch(address, json={"name": "another"})).json()
        assert (patched["state"], patched["pause"]["note"]) == ("paused", "incident 7")
        kept = (await api.put(address, json={**JOB, "paused": True})).json()
        assert (kept["state"], kept["pause"]["note"]) == ("paused", "incident 7")
        resumed = (await api.put(address, json=JOB)).json()
        assert (resumed["state"], resumed["pause"]) == ("active", None)
