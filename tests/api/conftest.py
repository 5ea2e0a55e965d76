"""The real application on the real service and a real store; requests go through the whole of it, in process.

api        a client of an open server on loopback (SQLite, a clock that stands still)
locked     the same server once keys exist, with one client per scope and two tenants
server     the real uvicorn on a real socket
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import httpx
import pytest

from onthedot.api.app import App, create_app
from onthedot.api.fastpath import ENABLED
from onthedot.api.server.server import make_server
from onthedot.clock import Clock, FakeClock, SystemClock
from onthedot.model.key import SCOPES, ApiKeySpec
from onthedot.service import Service
from onthedot.settings import CommandSetting, Settings
from onthedot.store import open_store
from onthedot.targets import EgressRule, build_targets
from onthedot.telemetry import Telemetry
from onthedot.web import routes as pages
from tests.api.executor import TinyNode
from tests.api.one_write import OneWrite
from tests.services.waiting import until

JOB: dict[str, Any] = {
    "key": "nightly",
    "schedule": {"cron": "0 3 * * *", "tz": "Europe/Berlin"},
    "target": {"type": "webhook", "url": "http://127.0.0.1:5003/"},
}


@asynccontextmanager
async def serving(url: str, clock: Clock, *, fast: bool = ENABLED, **settings: Any) -> AsyncIterator[App]:
    """An app on a store of its own. `fast`: with the fast path for creates."""
    store = await open_store(url, clock=clock)
    objects = tempfile.TemporaryDirectory(prefix="onthedot-objects-")
    settings.setdefault("object_store", objects.name)
    targets = build_targets(
        Settings(functions=("json",), commands={"backup": CommandSetting(argv=("true",))}),
        egress=EgressRule.parse(allow_private=True),
    )
    service = Service(store, targets, clock, Settings(store=url, **settings))
    try:
        yield create_app(service, clock=clock, events=Telemetry(), extra_routes=pages, fast=fast)
    finally:
        await service.close()
        await store.close()
        objects.cleanup()


def client_of(app: App, key: str | None = None, **options: Any) -> httpx.AsyncClient:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    transport = options.pop("transport", None) or httpx.ASGITransport(app=app, raise_app_exceptions=True)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost:8000", headers=headers, **options)


both_ways = pytest.mark.parametrize("app", ["fast", "plain"], indirect=True)
"""`api` speaks over a connection, to a server with the fast path for creates and to one without."""


@pytest.fixture
async def app(request: pytest.FixtureRequest, sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[App]:
    async with serving(sqlite_url, fake_clock, fast=getattr(request, "param", "fast") == "fast") as app:
        yield app


@pytest.fixture
async def api(request: pytest.FixtureRequest, app: App) -> AsyncIterator[httpx.AsyncClient]:
    if "app" not in getattr(getattr(request.node, "callspec", None), "params", {}):
        async with client_of(app) as client:
            yield client
        return
    async with listening(app) as address, client_of(app, transport=OneWrite(address)) as client:
        yield client


@pytest.fixture
async def keyed(app: App) -> AsyncIterator[dict[str, httpx.AsyncClient]]:
    """Clients by name: nobody, read, write, admin, other (admin of another tenant)."""
    made: dict[str, str] = {}
    for scope in SCOPES:
        made[scope] = (await app.context.service.create_key(ApiKeySpec(name=scope, scope=scope))).key
    made["other"] = (await app.context.service.create_key(ApiKeySpec(name="other", scope="admin", tenant="other"))).key
    clients = {"nobody": client_of(app), **{name: client_of(app, key) for name, key in made.items()}}
    yield clients
    for client in clients.values():
        await client.aclose()


@pytest.fixture
async def new_job(api: httpx.AsyncClient) -> Callable[..., Awaitable[dict[str, Any]]]:
    async def create(**fields: Any) -> dict[str, Any]:
        answer = await api.post("/v1/jobs", json={**JOB, **fields})
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    return create


@pytest.fixture
async def server(sqlite_url: str) -> AsyncIterator[tuple[str, int]]:
    """Where the real server listens."""
    async with serving(sqlite_url, SystemClock()) as app, listening(app) as address:
        yield address


@asynccontextmanager
async def listening(app: App, port: int = 0) -> AsyncIterator[tuple[str, int]]:
    server = make_server(app, "127.0.0.1", port)
    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]  # pytest's own stay
    serve = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started, "the server listens")
        yield server.servers[0].sockets[0].getsockname()[:2]
    finally:
        server.should_exit = True
        await serve


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    """The answer is a problem document of this status; its fields."""
    assert answer.status_code == status, f"{answer.status_code} {answer.text}"
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["status"] == status
    assert document["type"].startswith("urn:onthedot:problem:")
    assert document["title"]
    assert document["detail"]
    assert "Traceback" not in answer.text
    return document


def paths(document: dict[str, Any]) -> list[str]:
    return [error["path"] for error in document["errors"]]


@pytest.fixture
async def node(app: App) -> TinyNode:
    node = TinyNode(app.context.service.store)
    await node.register()
    return node
