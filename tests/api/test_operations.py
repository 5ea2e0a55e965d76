"""Health, readiness, metrics, nodes, totals, documents."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import msgspec
import pytest

from onthedot.api.app import create_app
from onthedot.errors import StoreUnavailable
from onthedot.model.destination import DestinationLoad
from onthedot.model.key import ApiKeySpec
from onthedot.model.node import NodeLoad
from onthedot.telemetry import Telemetry
from onthedot.telemetry.metrics import Metrics
from tests.api.conftest import client_of, problem
from tests.api.executor import FAILED


async def test_alive_is_answered_without_looking_at_anything(api, app, monkeypatch):
    async def away(*_: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(type(app.context.service.store), "list_nodes", away)
    answer = await api.get("/healthz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    assert answer.json()["version"]


async def test_ready_asks_the_store_now(api, app, monkeypatch):
    assert (await api.get("/readyz")).json() == {"status": "ready", "store": "ok", "engine": "ok"}

    async def away(*_: object) -> None:
        raise StoreUnavailable("postgresql://user:password@host is away")

    with monkeypatch.context() as patched:
        patched.setattr(type(app.context.service.store), "list_nodes", away)
        answer = await api.get("/readyz")
        assert (answer.status_code, answer.json()["status"]) == (503, "not ready")
        assert answer.headers["retry-after"] == "1"
        assert "password" not in answer.text
    assert (await api.get("/readyz")).status_code == 200


async def test_ready_tells_that_the_clock_was_ahead(api, app, monkeypatch):
    monkeypatch.setattr(type(app.context.service.store), "clock_note", "the clock was ahead; 3 jobs …")
    answer = await api.get("/readyz")
    assert (answer.status_code, answer.json()["clock"]) == (200, "the clock was ahead; 3 jobs …")


async def test_ready_gives_a_store_that_hangs_two_seconds(app, fake_clock, monkeypatch):
    import asyncio

    asked, never = asyncio.Event(), asyncio.Event()

    async def hangs(*_: object) -> None:
        asked.set()
        await never.wait()

    monkeypatch.setattr(type(app.context.service.store), "list_nodes", hangs)
    async with client_of(app) as client:
        request = asyncio.create_task(client.get("/readyz"))
        await asked.wait()
        await fake_clock.advance(2.1)
        answer = await request
    assert (answer.status_code, answer.json()["store"]) == (503, "no response within 2 s")


async def test_ready_asks_the_engine_too(app):
    why: list[str | None] = ["the node is stopping"]
    other = create_app(app.context.service, ready=lambda: why[0], events=Telemetry())
    async with client_of(other) as client:
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()["engine"]) == (503, "the node is stopping")
        why[0] = None
        assert (await client.get("/readyz")).status_code == 200


async def test_metrics_tell_of_the_store_and_of_the_requests(api, app, new_job, node):
    job = await new_job()
    await api.post(f"/v1/jobs/{job['id']}/run")
    await api.get("/v1/jobs/404")
    await api.get("/nope")
    answer = await api.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    lines = answer.text.splitlines()
    assert "onthedot_runs_due 1.0" in lines
    assert "onthedot_store_up 1.0" in lines
    assert 'onthedot_nodes{state="alive"} 1.0' in lines
    assert 'onthedot_http_requests_total{method="POST",route="/v1/jobs",status="201"} 1.0' in lines
    assert 'onthedot_http_requests_total{method="GET",route="/v1/jobs/{job_id}",status="404"} 1.0' in lines
    assert 'onthedot_http_requests_total{method="GET",route="unmatched",status="404"} 1.0' in lines
    assert not [line for line in lines if "nightly" in line]


async def test_metrics_get_through_when_the_store_does_not(api, app, monkeypatch):
    async def away(*_: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(type(app.context.service.store), "backlog", away)
    answer = await api.get("/metrics")
    assert answer.status_code == 200
    assert "onthedot_store_up 0.0" in answer.text.splitlines()


async def test_metrics_get_through_to_a_key_that_was_valid_a_minute_ago(app, fake_clock, monkeypatch):
    service, store = app.context.service, type(app.context.service.store)
    keys = [await service.create_key(ApiKeySpec(name=name)) for name in ("used", "revoked", "unused")]

    async def away(*_: object) -> None:
        raise StoreUnavailable("gone")

    async def statuses() -> list[int]:
        found = []
        for key in keys:
            async with client_of(app, key.key) as client:
                found.append((await client.get("/metrics")).status_code)
                assert (await client.get("/v1/jobs")).status_code in (503, 401), "nothing else is served"
        return found

    async with client_of(app, keys[0].key) as used, client_of(app, keys[1].key) as revoked, client_of(app) as nobody:
        assert [(await client.get("/metrics")).status_code for client in (used, revoked)] == [200, 200]
        await service.store.revoke_key(1, keys[1].info.id)
        await fake_clock.advance(3)
        assert [(await client.get("/metrics")).status_code for client in (used, revoked)] == [200, 401]
        await fake_clock.advance(3)
        with monkeypatch.context() as patched:
            for name in ("find_key", "any_key", "backlog", "list_nodes", "list_jobs"):
                patched.setattr(store, name, away)
            answer = await used.get("/metrics")
            assert "onthedot_store_up 0.0" in answer.text.splitlines()
            assert await statuses() == [200, 503, 503]
            assert (await nobody.get("/metrics")).status_code in (401, 503)
            assert (await used.get("/readyz")).status_code == 503
            await fake_clock.advance(58)
            assert await statuses() == [503, 503, 503], "a minute after it was seen"
        assert (await used.get("/metrics")).status_code == 200
        for name in ("find_key", "revoke_key"):
            monkeypatch.setattr(store, name, away)
        with pytest.raises(StoreUnavailable):
            await service.revoke_key(1, keys[0].info.id)
        assert (await used.get("/metrics")).status_code == 503, "whatever became of that"


async def test_metrics_of_an_open_server_get_through_and_a_store_that_hangs_is_not_waited_for(
    api, app, fake_clock, monkeypatch
):
    import asyncio

    assert (await api.get("/metrics")).status_code == 200
    await fake_clock.advance(3)
    asked, never = asyncio.Event(), asyncio.Event()

    async def hangs(*_: object) -> None:
        asked.set()
        await never.wait()

    async def away(*_: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(type(app.context.service.store), "any_key", hangs)
    monkeypatch.setattr(type(app.context.service.store), "backlog", away)
    request = asyncio.create_task(api.get("/metrics"))
    await asked.wait()
    await fake_clock.advance(2.1)
    assert (await request).status_code == 200
    monkeypatch.setattr(type(app.context.service.store), "any_key", away)
    answer = await api.get("/metrics", headers={"x-forwarded-for": "10.1.1.1"})
    assert answer.status_code == 403, "and only on this machine"


async def test_methods_nobody_knows_are_one_series(api, app):
    for number in range(20):
        await api.request(f"M{number}", "/v1/jobs")
    text = (await api.get("/metrics")).text
    assert 'method="other",route="unmatched",status="405"} 20.0' in text or 'method="other"' in text
    assert "M19" not in text


async def test_metrics_of_the_node_are_those_it_was_given(app):
    metrics, wire = Metrics(), Telemetry()
    metrics.listen(wire)
    async with client_of(create_app(app.context.service, metrics=metrics, events=wire)) as client:
        wire.emit("run.claimed", n=5)
        assert "onthedot_runs_claimed_total 5.0" in (await client.get("/metrics")).text.splitlines()


async def test_nodes_are_listed_with_what_they_do(api, app, node):
    await app.context.service.store.beat(node.info.id, NodeLoad(held=3, running=1, lateness_ms=2))
    (found,) = (await api.get("/v1/nodes")).json()["items"]
    assert (found["name"], found["state"], found["held"], found["running"]) == ("tiny", "alive", 3, 1)
    assert found["offers"] == node.info.offers


async def test_destinations_are_listed_with_their_breakers(api, app, node):
    store = app.context.service.store
    assert (await api.get("/v1/destinations")).json() == {"items": []}
    since = 1_700_000_000_000
    facts: dict[str, Any] = {"breaker": "open", "failures": 10, "since": since, "next_probe": since + 10_000}
    told = [DestinationLoad(requires="webhook@https://a.example", **facts)]
    await store.beat(node.info.id, NodeLoad(destinations=told))
    (found,) = (await api.get("/v1/destinations")).json()["items"]
    assert (found["destination"], found["breaker"], found["failures"]) == ("https://a.example", "open", 10)
    assert [each["node"] for each in found["nodes"]] == [node.info.id]
    assert found["next_probe"] == found["nodes"][0]["next_probe"] == "2023-11-14T22:13:30.000Z"
    lines = (await api.get("/metrics")).text.splitlines()
    assert 'onthedot_destination_breakers{state="open"} 1.0' in lines
    assert 'onthedot_destination_breakers{state="half_open"} 0.0' in lines
    assert "onthedot_destination_runs_waiting 0.0" in lines
    assert not [line for line in lines if "a.example" in line], "anybody can name any number of them"
    assert (await api.get("/v1/destinations?limit=5")).status_code == 422


async def test_totals_count_what_there_is(api, new_job, node):
    await new_job(key="a")
    job = await new_job(key="b")
    await api.post(f"/v1/jobs/{job['id']}/run")
    await node.work(FAILED)
    totals = (await api.get("/v1/stats")).json()
    assert totals["jobs"]["active"] == 2
    assert (totals["dead"], totals["last_hour"]["FAILED"]) == (1, 1)


async def test_events_answer_as_a_stream_and_refuse_when_there_are_too_many(app, monkeypatch):
    monkeypatch.setattr(app.context.streams, "_most", 0)
    async with client_of(app) as client:
        answer = await client.get("/v1/events")
        problem(answer, 429)
        assert answer.headers["retry-after"] == "5"


async def test_the_document_is_openapi_3_1_and_every_reference_leads_somewhere(api):
    document = (await api.get("/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    names = set(document["components"]["schemas"])

    def references(value: object) -> set[str]:
        if isinstance(value, dict):
            here = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return here.union(*(references(item) for item in value.values()))
        return set().union(*map(references, value)) if isinstance(value, list) else set()

    assert references(document) == {f"#/components/schemas/{name}" for name in names}
    assert {"JobSpec", "JobView", "RunView", "TimerSpec", "Problem", "Schedule"} <= names


async def test_each_operation_says_what_it_takes_answers_and_refuses(api, app):
    document = (await api.get("/openapi.json")).json()
    seen = set()
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            assert described["summary"], (path, method)
            assert described["operationId"] not in seen
            seen.add(described["operationId"])
            named = {parameter["name"] for parameter in described["parameters"] if parameter["in"] == "path"}
            assert named == {part.strip("{}") for part in path.split("/") if part.startswith("{")}
            assert any(status < "300" for status in described["responses"])
            for status, answer in described["responses"].items():
                if status >= "400" and path != "/readyz":
                    assert list(answer["content"]) == ["application/problem+json"], (path, method, status)
    assert len(seen) == len([one for one in app.operations if one.listed])


async def test_a_job_reads_back_as_the_document_says(api, new_job):
    document = (await api.get("/openapi.json")).json()
    schema = {"$ref": "#/components/schemas/JobView", "components": document["components"]}
    validator = jsonschema_rs.Draft202012Validator(schema)
    assert validator.is_valid(await new_job(policy={"timeout": "5s", "retry": {"attempts": 2}}, params={"a": [1]}))
    assert not validator.is_valid({"id": "x"})


async def test_docs_are_one_page_of_ours_with_everything_on_it(api, app):
    page = await api.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for declared in app.operations:
        if declared.listed:
            assert f'id="{declared.name}"' in page.text
    assert "<script" not in page.text
    assert "style=" not in page.text
    assert "http://127.0.0.1:8000/timers" in page.text
    assert not [line for line in page.text.splitlines() if "src=" in line]
    style = await api.get("/docs/style.css")
    assert (style.status_code, style.headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert "@import" not in style.text
    assert "url(" not in style.text


async def test_the_docs_escape_what_they_show(app):
    from onthedot.api.routes.docs import render

    document = msgspec.json.decode(msgspec.json.encode(app.openapi))
    document["info"]["description"] = "<b>`<i>`"
    page = render(document)
    assert "&lt;b&gt;<code>&lt;i&gt;</code>" in page
    assert "<i>" not in page
