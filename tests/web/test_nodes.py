"""The nodes page, and draining a node by page, API and client."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator

import httpx
import pytest

from onthedot.api.app import App
from onthedot.clock import FakeClock
from onthedot.model.key import ApiKeySpec
from onthedot.model.node import NodeLoad
from tests.api.conftest import client_of, serving
from tests.api.executor import OK, TinyNode

OURS = {"origin": "http://localhost:8000"}


@pytest.fixture
async def app(sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[App]:
    async with serving(sqlite_url, fake_clock) as app:
        yield app


@pytest.fixture
async def site(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


async def node_of(app: App, name: str = "tiny") -> TinyNode:
    node = TinyNode(app.context.service.store, name)
    await node.register()
    return node


def words_of(page: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


async def test_what_a_node_is_and_how_busy(site, app):
    assert "No nodes are running" in (await site.get("/nodes")).text
    node = await node_of(app, "<b>x</b>")
    await app.context.service.store.beat(node.info.id, NodeLoad(held=3, running=95, lateness_ms=12))
    text = (await site.get("/nodes")).text
    assert "<b>x</b>" not in text
    said = words_of(text)
    for expected in (
        "1 alive, running 95 of at most 100",
        "95 of 100 running 3 claimed ahead",
        "12 ms",
        "command: backup",
    ):
        assert expected in said, expected
    assert 'class="running full"' in text


async def test_the_clock_of_every_node_is_compared_with_the_databases(site, app):
    store = app.context.service.store
    for name, skew in (("even", 0), ("ahead", 12), ("behind", -61_000), ("silent", None)):
        node = await node_of(app, name)
        await store.beat(node.info.id, NodeLoad(clock_skew_ms=skew))
    text = (await site.get("/nodes")).text
    said = words_of(text)
    for expected in ("12 ms ahead", "1.0 min behind"):
        assert expected in said, said
    assert text.count('class="fig warn"') == 1
    listed = (await site.get("/v1/nodes")).json()["items"]
    assert {node["name"]: node["clock_skew_ms"] for node in listed} == {
        "even": 0,
        "ahead": 12,
        "behind": -61_000,
        "silent": None,
    }


async def test_runs_of_the_past_tell_the_name_of_their_node_after_it_has_left(site, app, fake_clock):
    """Also to a process that never saw it: the store knows."""
    store = app.context.service.store
    node = await node_of(app, "packer-7")
    job = {"schedule": {"every": "1m"}, "target": {"type": "webhook", "url": "http://127.0.0.1:9/x"}}
    job_id = (await site.post("/v1/jobs", json=job)).json()["id"]
    await fake_clock.advance(60)
    await node.work(OK)
    await store.leave(node.info.id)
    (run,) = (await site.get(f"/v1/jobs/{job_id}/runs")).json()["items"]
    assert run["node"] == node.info.id
    for path in (f"/jobs/{job_id}", "/runs", f"/runs/{run['id']}"):
        text = (await site.get(path)).text
        assert "packer-7" in text, path
        assert "stopped since" not in text, path
    chosen = await site.get("/runs", params={"node": run["node"]})
    assert "packer-7 (stopped)" in chosen.text
    names = await site.get("/v1/nodes/names", params={"ids": f"{run['node']},nobody"})
    assert names.json() == {"items": [{"id": run["node"], "name": "packer-7"}]}


@pytest.mark.parametrize("ids", [None, "", "a,,b", ",".join(f"n{each}" for each in range(101)), "x" * 101])
async def test_ids_of_nodes_that_are_wrong_are_refused_by_name(site, ids):
    answer = await site.get("/v1/nodes/names", params={} if ids is None else {"ids": ids})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["path"] == "ids"
    assert error["accepted"] == "1 to 100 IDs of nodes of 1 to 100 characters each, separated by commas"


async def test_draining_asks_first_and_stays(site, app):
    node = await node_of(app)
    path = f"/nodes/{node.info.id}/drain"
    assert path in (await site.get("/nodes")).text
    question = await site.get(path)
    assert "No other node runs jobs" in question.text
    answer = await site.post(path, headers=OURS)
    assert (answer.status_code, answer.headers["location"]) == (303, "/nodes")
    await app.context.service.store.beat(node.info.id, NodeLoad())
    said = words_of((await site.get("/nodes")).text)
    assert "tiny draining" in said
    assert "runs nothing: it can be stopped" in said
    assert (await site.get("/nodes/none/drain")).status_code == 404


async def test_who_may_drain(site, app):
    node, service = await node_of(app), app.context.service
    path = f"/v1/nodes/{node.info.id}/drain"
    as_key = {}
    for spec in (
        ApiKeySpec(name="writer", scope="write"),
        ApiKeySpec(name="guest", scope="admin", tenant="guests"),
        ApiKeySpec(name="admin", scope="admin"),
    ):
        as_key[spec.name] = {"authorization": f"Bearer {(await service.create_key(spec)).key}"}
    assert (await site.post(path, headers=as_key["writer"])).status_code == 403
    assert "disabled" in (await site.get("/nodes", headers=as_key["writer"])).text
    assert (await site.post(path, headers=as_key["guest"])).status_code == 403
    assert (await site.get("/v1/nodes", headers=as_key["admin"])).json()["items"][0]["state"] == "alive"
    for _ in range(2):
        drained = await site.post(path, headers=as_key["admin"])
        assert (drained.status_code, drained.json()["state"]) == (200, "draining")
    assert (await site.post("/v1/nodes/none/drain", headers=as_key["admin"])).status_code == 404
    await service.store.declare_lost(node.info.id, 0)
    assert (await site.post(path, headers=as_key["admin"])).status_code == 409
