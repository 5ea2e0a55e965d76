"""A server that answers as it is told, the real one, and a clock that does not make anybody wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from typing import Any

import msgspec
import pytest
from aiohttp import web

from onthedot.api.app import create_app
from onthedot.api.server.server import make_server
from onthedot.clock import SystemClock
from onthedot.launcher.serving import listening
from onthedot.service import Service
from onthedot.settings import Settings
from onthedot.store import open_store
from onthedot.targets import EgressRule, build_targets

Answer = tuple[int, Any, dict[str, str]]


class Seen(msgspec.Struct):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class Scripted:
    """Answers in the order given; the last one for ever. None: the connection is cut."""

    def __init__(self) -> None:
        self.answers: list[Answer | None] = []
        self.seen: list[Seen] = []
        self.url = ""

    def answer(self, status: int = 200, body: Any = None, **headers: str) -> None:
        self.answers.append((status, body, headers))

    def cut(self) -> None:
        self.answers.append(None)

    def problem(self, status: int, kind: str, detail: str = "no", errors: Any = (), **headers: str) -> None:
        body = {"type": f"urn:onthedot:problem:{kind}", "title": "x", "status": status, "detail": detail}
        self.answer(status, {**body, "errors": list(errors)}, **headers)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = msgspec.json.decode(raw) if raw else None
        self.seen.append(Seen(request.method, request.path, dict(request.query), headers, body))
        given = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if given is None:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        status, answer, more = given
        text = answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
        return web.Response(status=status, text="" if answer is None else text, headers=more)


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    scripted = Scripted()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", scripted.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    scripted.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield scripted
    await runner.cleanup()


class Impatient(SystemClock):
    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def clock() -> Impatient:
    return Impatient()


JobMaker = Callable[..., dict[str, Any]]


@pytest.fixture
def job() -> JobMaker:
    def make(job_id: int = 7, **fields: Any) -> dict[str, Any]:
        return {
            "id": job_id,
            "key": f"job-{job_id}",
            "name": None,
            "schedule": {"every": "1m"},
            "target": {"type": "webhook", "url": "http://example.com/"},
            "policy": {"timeout": "3s"},
            "params": {},
            "tags": [],
            "paused": False,
            "version": 1,
            "state": "active",
            "reason": None,
            "next_run": "2026-01-01T00:00:00.000Z",
            "last_run": None,
            "created_at": "2026-01-01T00:00:00.000Z",
            "updated_at": "2026-01-01T00:00:00.000Z",
            "stats": {"runs": 0, "failures": 0},
            **fields,
        }

    return make


@pytest.fixture
def run() -> JobMaker:
    def make(run_id: str = "7-1763234567890", **fields: Any) -> dict[str, Any]:
        return {
            "id": run_id,
            "job_id": 7,
            "key": None,
            "kind": "scheduled",
            "scheduled_for": "2026-01-01T00:00:00.000Z",
            "due_at": "2026-01-01T00:00:00.000Z",
            "status": "DONE",
            "reason": None,
            "attempt": 1,
            "tries": 1,
            "losses": 0,
            "node": "n1",
            "started_at": None,
            "finished_at": None,
            "lateness_ms": 1,
            "duration_ms": 2,
            "outcome": {"status_code": 200},
            "error": None,
            "attempts": [],
            **fields,
        }

    return make


@pytest.fixture
async def address(sqlite_url) -> AsyncIterator[str]:
    """API and service without an engine: nothing fires, everything can be asked."""
    store = await open_store(sqlite_url)
    targets = build_targets(egress=EgressRule(allow_private=True))
    service = Service(store, targets, SystemClock(), Settings())
    listener = listening("127.0.0.1", 0)
    server = make_server(create_app(service), "127.0.0.1", 0)
    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    await serving
    await service.close()
    await store.close()
