"""Waiting for a database that is away when a node starts."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import structlog

from onthedot.clock import FakeClock
from onthedot.errors import StoreError, StoreUnavailable
from onthedot.launcher import wait_for_store
from onthedot.launcher.wait_for_store import SAID_EVERY, prepared_when_there, waiting_app
from onthedot.settings import Settings


class Opening:
    """Stands for `prepare`: fails as told, then gives itself."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.tries = 0
        self.closed = False
        self.hangs: asyncio.Event | None = None

    async def __call__(self, *_: Any) -> Any:
        self.tries += 1
        if self.hangs is not None:
            await self.hangs.wait()
        if self.failures:
            raise self.failures.pop(0)
        return self

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def opening(monkeypatch) -> Opening:
    opening = Opening()
    monkeypatch.setattr(wait_for_store, "prepare", opening)
    return opening


async def start(clock: FakeClock, stop: asyncio.Event | None = None) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.create_task(
        prepared_when_there(Settings(), None, stop=stop or asyncio.Event(), clock=clock)
    )
    await asyncio.sleep(0)
    return task


async def test_it_tries_until_the_store_is_there(opening, fake_clock):
    opening.failures = [StoreUnavailable("away")] * 12
    with structlog.testing.capture_logs() as said:
        task = await start(fake_clock)
        while not task.done():
            await fake_clock.advance(1.0)
    assert await task is opening
    assert opening.tries == 13
    assert 1 < len(said) < 12, "each few seconds, not at each try"
    assert {line["error"] for line in said} == {"away"}
    assert SAID_EVERY == 5.0


async def test_what_waiting_can_not_mend_comes_out(opening, fake_clock):
    opening.failures = [StoreUnavailable("away"), StoreError("no such database")]
    task = await start(fake_clock)
    while not task.done():
        await fake_clock.advance(1.0)
    with pytest.raises(StoreError, match="no such database"):
        task.result()
    assert opening.tries == 2


async def test_told_to_stop_between_two_tries(opening, fake_clock):
    opening.failures = [StoreUnavailable("away")] * 5
    stop = asyncio.Event()
    task = await start(fake_clock, stop)
    await fake_clock.advance(0.01)
    stop.set()
    assert await asyncio.wait_for(task, 5) is None
    assert opening.tries == 1


async def test_told_to_stop_in_the_middle_of_a_try(opening, fake_clock):
    opening.hangs = asyncio.Event()
    stop = asyncio.Event()
    task = await start(fake_clock, stop)
    stop.set()
    assert await asyncio.wait_for(task, 5) is None
    assert (opening.tries, opening.closed) == (1, False)


@pytest.mark.parametrize(
    ("method", "path", "status", "media"),
    [
        ("GET", "/healthz", 200, "application/json"),
        ("GET", "/readyz", 503, "application/json"),
        ("POST", "/v1/jobs", 503, "application/problem+json"),
        ("HEAD", "/", 503, "text/html; charset=utf-8"),
        ("HEAD", "/static/style.css", 200, "text/css"),
        ("HEAD", "/static/../secret", 503, "application/problem+json"),
    ],
)
async def test_what_is_answered_meanwhile(method, path, status, media):
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await waiting_app({"type": "http", "method": method, "path": path}, lambda: None, send)
    head, body = sent
    headers = dict(head["headers"])
    assert (head["status"], headers[b"content-type"].decode()) == (status, media)
    assert (b"retry-after" in headers) == (status == 503)
    if method == "HEAD":
        assert body["body"] == b""
    else:
        assert json.loads(body["body"])["status"] in ("ok", "not ready", 503)
        assert int(headers[b"content-length"]) == len(body["body"])
