"""API keys over HTTP: shown once, listed by their first characters, revoked."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import httpx
import pytest

from onthedot.api.auth import COOKIE
from onthedot.clock import SystemClock
from onthedot.model.key import ApiKeySpec
from onthedot.telemetry import Event, telemetry
from tests.api.conftest import listening, paths, problem, serving


async def test_a_key_is_shown_once_and_then_only_its_beginning(keyed):
    admin = keyed["admin"]
    made = await admin.post("/v1/keys", json={"name": "ci", "scope": "write", "expires": "90d"})
    assert made.status_code == 201, made.text
    key, info = made.json()["key"], made.json()["info"]
    assert key.startswith("otd_")
    assert len(key) > 40
    assert made.headers["location"] == f"/v1/keys/{info['id']}"
    assert made.json()["id"] == info["id"]
    assert (info["name"], info["scope"], info["tenant"], info["revoked_at"]) == ("ci", "write", "default", None)
    assert info["expires_at"] == "2024-02-12T22:13:20.000Z"
    listed = await admin.get("/v1/keys")
    assert key not in listed.text
    (found,) = [item for item in listed.json()["items"] if item["id"] == info["id"]]
    assert found == info
    assert key.startswith(found["prefix"])


async def test_a_revoked_key_stays_in_the_list_with_its_date(keyed):
    admin = keyed["admin"]
    info = (await admin.post("/v1/keys", json={"name": "ci"})).json()["info"]
    assert (await admin.delete(f"/v1/keys/{info['id']}")).status_code == 204
    (found,) = [item for item in (await admin.get("/v1/keys")).json()["items"] if item["id"] == info["id"]]
    assert found["revoked_at"] == "2023-11-14T22:13:20.000Z"


async def test_keys_of_another_tenant(keyed):
    admin = keyed["admin"]
    made = (await admin.post("/v1/keys", json={"name": "theirs", "tenant": "acme", "scope": "admin"})).json()
    assert made["info"]["id"] not in [item["id"] for item in (await admin.get("/v1/keys")).json()["items"]]
    (listed,) = (await admin.get("/v1/keys?tenant=acme")).json()["items"]
    assert listed == made["info"]
    problem(await admin.get("/v1/keys?tenant=nobody"), 404)
    bearer = {"authorization": f"Bearer {made['key']}"}
    assert (await admin.get("/v1/keys?tenant=acme", headers=bearer)).json()["items"] == [listed]
    problem(await admin.get("/v1/keys?tenant=default", headers=bearer), 403)
    problem(await admin.delete(f"/v1/keys/{listed['id']}"), 404)
    assert (await admin.delete(f"/v1/keys/{listed['id']}?tenant=acme")).status_code == 204


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, ["name"]),
        ({"name": ""}, ["name"]),
        ({"name": "x" * 201}, ["name"]),
        ({"name": "x", "scope": "root"}, ["scope"]),
        ({"name": "x", "expires": "-1d"}, ["expires"]),
        ({"name": "x", "tenant": 7}, ["tenant"]),
        ({"name": "x", "tenant": ""}, ["tenant"]),
        ({"name": "x", "tenant": "t" * 201}, ["tenant"]),
        ({"name": "x", "key": "otd_mine"}, ["key"]),
    ],
)
async def test_a_wrong_key_says_what_is_wrong(keyed, body, wrong):
    assert paths(problem(await keyed["admin"].post("/v1/keys", json=body), 422)) == wrong


@pytest.mark.parametrize("key_id", ["0", "x", "999999", "9" * 30])
async def test_revoking_what_is_not_there_is_404(keyed, key_id):
    problem(await keyed["admin"].delete(f"/v1/keys/{key_id}"), 404)


async def test_the_default_tenants_admin_makes_keys_for_others(keyed):
    made = await keyed["admin"].post("/v1/keys", json={"name": "x", "tenant": "third"})
    assert made.json()["info"]["tenant"] == "third"


async def test_another_tenants_admin_makes_keys_for_its_own_only(keyed):
    other = keyed["other"]
    made = await other.post("/v1/keys", json={"name": "x", "scope": "admin"})
    assert (made.status_code, made.json()["info"]["tenant"]) == (201, "other")
    assert (await other.post("/v1/keys", json={"name": "x", "tenant": "other"})).status_code == 201
    problem(await other.post("/v1/keys", json={"name": "x", "tenant": "third"}), 403)
    assert {item["tenant"] for item in (await other.get("/v1/keys")).json()["items"]} == {"other"}


async def test_a_key_that_is_over_before_it_begins_is_refused_or_dead(keyed, app):
    made = await keyed["admin"].post("/v1/keys", json={"name": "x", "expires": "0s"})
    if made.status_code == 201:
        headers = {"authorization": f"Bearer {made.json()['key']}"}
        problem(await keyed["nobody"].get("/v1/jobs", headers=headers), 401)
    else:
        problem(made, 422)


async def test_making_and_revoking_is_told_to_the_operator_without_the_key(api):
    heard: list[Event] = []
    stop = telemetry.subscribe(heard.append)
    try:
        made = (await api.post("/v1/keys", json={"name": "first", "scope": "admin"})).json()
        mine = {"authorization": f"Bearer {made['key']}"}
        assert (await api.delete(f"/v1/keys/{made['info']['id']}", headers=mine)).status_code == 204
    finally:
        stop()
    key_id = made["info"]["id"]
    by = {"key_id": key_id, "address": "127.0.0.1"}
    told = [(event.name, event.fields) for event in heard if event.name.startswith("key.")]
    assert told == [
        ("key.created", {**by, "name": "first", "scope": "admin", "of": "default", "by_key": None}),
        ("key.revoked", {**by, "by_key": key_id}),
    ]
    assert made["key"] not in str(told)


@pytest.mark.parametrize("way", ["revoked", "logout", "first key"])
async def test_event_streams_end_with_what_opened_them(way, sqlite_url):
    """On a real server: within seconds, though nothing happens on the stream."""
    async with serving(sqlite_url, SystemClock()) as app, listening(app) as (host, port):
        service = app.context.service
        async with httpx.AsyncClient(base_url=f"http://{host}:{port}", timeout=20) as client:
            headers: dict[str, str] = {}
            end: Any = partial(service.create_key, ApiKeySpec(name="k", scope="read"))
            if way != "first key":
                made = await service.create_key(ApiKeySpec(name="k", scope="read"))
                headers, end = {"authorization": f"Bearer {made.key}"}, partial(service.revoke_key, 1, made.info.id)
                if way == "logout":
                    session, _ = await service.log_in(made.key)
                    headers, end = {"cookie": f"{COOKIE}={session.token}"}, partial(service.log_out, session)
            async with client.stream("GET", "/v1/events", headers=headers) as answer:
                assert answer.status_code == 200
                lines = answer.aiter_lines()
                assert await anext(lines) == "retry: 2000"
                await end()
                async with asyncio.timeout(10):
                    assert [line async for line in lines if line] == []
            assert app.context.streams.count == 0
