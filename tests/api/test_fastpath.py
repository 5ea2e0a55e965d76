"""Creates that come whole skip the framework, and nobody can tell by the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from onthedot.api.app import App
from onthedot.api.fastpath.creates import FastPath
from onthedot.api.fastpath.protocol import ApiProtocol
from onthedot.clock import FakeClock
from onthedot.errors import StoreUnavailable
from onthedot.model.key import ApiKeySpec
from onthedot.service import Service
from tests.api.conftest import JOB, listening, serving

Address = tuple[str, int]
TIMER = {"hours": 0, "minutes": 0, "seconds": 30, "url": "http://127.0.0.1:5003/"}


def asked(
    path: str, body: Any, *headers: str, version: str = "1.1", method: str = "POST", host: str = "localhost"
) -> bytes:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/{version}", f"host: {host}", f"content-length: {len(raw)}", *headers]
    return "\r\n".join([*lines, "connection: close", "", ""]).encode() + raw


async def said(address: Address, *pieces: bytes) -> bytes:
    """All that is answered until the server closes."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        async with asyncio.timeout(20):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            return await reader.read()
    finally:
        writer.close()


def parts(answer: bytes) -> tuple[bytes, dict[bytes, bytes], bytes]:
    """Status line, headers but the date, body."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.split(b"\r\n")
    headers = dict(line.split(b": ", 1) for line in lines)
    assert len(headers) == len(lines), f"a header twice: {lines}"
    assert headers.pop(b"date")
    return status, headers, body


class Two:
    """The same app twice, on stores of their own: one with the short way, one without."""

    def __init__(self, short: App, long: App, at_short: Address, at_long: Address) -> None:
        self.apps = (short, long)
        self.at_short, self.at_long = at_short, at_long

    async def same(self, sent: bytes) -> tuple[int, dict[bytes, bytes], Any]:
        short, long = parts(await said(self.at_short, sent)), parts(await said(self.at_long, sent))
        assert short == long
        return int(short[0].split()[1]), short[1], json.loads(short[2])


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were served the short way, in order."""
    served: list[str] = []
    answer = FastPath.answer

    async def spy(self: FastPath, route: Any, *args: Any) -> Any:
        served.append(route.path)
        return await answer(self, route, *args)

    monkeypatch.setattr(FastPath, "answer", spy)
    take = FastPath.take

    def spied(self: FastPath, known: Any, *args: Any) -> bool:
        taken = take(self, known, *args)
        if taken:
            served.append(known.head.route.path)
        return taken

    monkeypatch.setattr(FastPath, "take", spied)
    return served


@pytest.fixture
async def two(tmp_path: Path, fake_clock: FakeClock) -> AsyncIterator[Two]:
    async with AsyncExitStack() as stack:
        short = await stack.enter_async_context(serving(f"sqlite:///{tmp_path}/short.db", fake_clock))
        long = await stack.enter_async_context(serving(f"sqlite:///{tmp_path}/long.db", fake_clock, fast=False))
        yield Two(
            short,
            long,
            await stack.enter_async_context(listening(short)),
            await stack.enter_async_context(listening(long)),
        )


async def test_one_switch_turns_it_off(two: Two) -> None:
    with_it, without = two.apps
    assert with_it.fastpath is not None
    assert without.fastpath is None


async def test_a_job_and_a_timer(two: Two, fast: list[str]) -> None:
    status, headers, job = await two.same(asked("/v1/jobs", JOB))
    assert (status, job["key"], headers[b"location"]) == (201, "nightly", b"/v1/jobs/1")
    assert headers[b"etag"] == b'"1"'
    assert headers[b"cache-control"] == b"no-store"
    assert b"content-security-policy" in headers
    status, headers, timer = await two.same(asked("/timers", TIMER))
    assert (status, timer, headers[b"location"]) == (201, {"id": 2, "time_left": 30}, b"/timers/2")
    assert fast == ["/v1/jobs", "/timers"]


WRONG: dict[str, tuple[int, bytes]] = {
    "no json": (400, asked("/v1/jobs", b"{")),
    "nothing": (400, asked("/v1/jobs", b"")),
    "not utf-8": (400, asked("/timers", b'{"url": "\xff"}')),
    "empty": (422, asked("/v1/jobs", {})),
    "unknown field": (422, asked("/v1/jobs", {**JOB, "colour": "red"})),
    "several mistakes": (422, asked("/v1/jobs", {**JOB, "schedule": {"cron": "x"}, "policy": {"timeout": "-1s"}})),
    "never": (422, asked("/v1/jobs", {**JOB, "schedule": {"at": "2000-01-01T00:00:00Z"}})),
    "a NUL": (422, asked("/v1/jobs", {**JOB, "name": "a\x00b"})),
    "no timer": (422, asked("/timers", {**TIMER, "seconds": 0})),
    "not available": (422, asked("/v1/jobs", {**JOB, "schedule": {"rrule": "FREQ=DAILY"}})),
    "media": (415, asked("/v1/jobs", JOB, "content-type: text/html")),
    "charset": (415, asked("/v1/jobs", JOB, "content-type: application/json; charset=latin-1")),
    "compressed": (415, asked("/v1/jobs", JOB, "content-encoding: gzip")),
    "idempotency key": (422, asked("/v1/jobs", JOB, "idempotency-key: " + "x" * 201)),
    "unknown bearer": (401, asked("/v1/jobs", JOB, "authorization: Bearer otd_no")),
    "no bearer": (401, asked("/v1/jobs", JOB, "authorization: Basic YTpi")),
    "the first of two": (401, asked("/v1/jobs", JOB, "authorization: Bearer otd_no", "authorization: Basic YTpi")),
    "another site's page": (403, asked("/v1/jobs", JOB, "origin: https://evil.example")),
    "another site's fetch": (403, asked("/timers", TIMER, "sec-fetch-site: cross-site")),
    "a rebound name": (403, asked("/v1/jobs", JOB, host="evil.example")),
}


@pytest.mark.parametrize("name", WRONG)
async def test_mistakes_are_answered_the_same(two: Two, fast: list[str], name: str) -> None:
    wanted, sent = WRONG[name]
    status, headers, document = await two.same(sent)
    assert (status, document["status"]) == (wanted, wanted)
    assert headers[b"content-type"] == b"application/problem+json"
    assert len(fast) == 1


async def test_conflicts_and_repeats_are_answered_the_same(two: Two, fast: list[str]) -> None:
    first = asked("/v1/jobs", JOB, "idempotency-key: a")
    assert (await two.same(first))[2] == (await two.same(first))[2]
    assert (await two.same(asked("/v1/jobs", {**JOB, "name": "x"}, "idempotency-key: a")))[0] == 422
    assert (await two.same(asked("/v1/jobs", JOB)))[0] == 409
    assert len(fast) == 4


async def test_scopes_hold(two: Two, fast: list[str]) -> None:
    for scope, wanted in (("read", 403), ("write", 201)):
        key = (await two.apps[0].context.service.create_key(ApiKeySpec(name=scope, scope=scope))).key  # type: ignore[arg-type]
        answer = await said(two.at_short, asked("/timers", TIMER, f"authorization: Bearer {key}"))
        assert int(answer.split()[1]) == wanted
    assert int((await said(two.at_short, asked("/timers", TIMER))).split()[1]) == 401
    assert len(fast) == 3


async def test_a_store_that_is_away_and_a_fault_of_ours(two: Two, fast: list[str], monkeypatch: Any) -> None:
    for error, wanted in ((StoreUnavailable("away"), 503), (RuntimeError("secret"), 500)):

        async def fail(*_: Any, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(Service, "create_timer", fail)
        status, headers, body = parts(await said(two.at_short, asked("/timers", TIMER)))
        assert int(status.split()[1]) == wanted
        assert headers[b"content-type"] == b"application/problem+json"
        assert b"secret" not in body
    assert len(fast) == 2


OTHERWISE: dict[str, list[bytes]] = {
    "cookies": [asked("/timers", TIMER, "cookie: a=b")],
    "chunks": [
        b"POST /timers HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        b"%x\r\n%s\r\n0\r\n\r\n" % (len(json.dumps(TIMER)), json.dumps(TIMER).encode())
    ],
    "an address with a query": [asked("/timers?a=b", TIMER)],
    "an address written otherwise": [asked("/%74imers", TIMER)],
    "another method": [asked("/v1/jobs", b"", method="GET")],
}


@pytest.mark.parametrize("name", OTHERWISE)
async def test_whatever_is_out_of_the_ordinary_takes_the_ordinary_way(two: Two, fast: list[str], name: str) -> None:
    short, long = await said(two.at_short, *OTHERWISE[name]), await said(two.at_long, *OTHERWISE[name])
    assert parts(short) == parts(long)
    assert fast == []


async def test_a_body_that_comes_later_is_waited_for(two: Two, fast: list[str]) -> None:
    """Expect says that nothing more is sent before the server asks for it: so it surely comes in two pieces."""
    reader, writer = await asyncio.open_connection(*two.at_short)
    head, _, body = asked("/timers", TIMER, "expect: 100-continue").partition(b"\r\n\r\n")
    async with asyncio.timeout(20):
        writer.write(head + b"\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
        writer.write(body)
        assert b"HTTP/1.1 201 Created" in await reader.read()
    writer.close()
    assert fast == []


async def test_a_body_in_pieces_is_put_together(server: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first piece holds half of the body: what was collected for the short way goes the ordinary way."""
    head, _, body = asked("/timers", TIMER).partition(b"\r\n\r\n")
    reader, writer = await asyncio.open_connection(*server)
    turned = asyncio.Event()
    turn = ApiProtocol._take_the_ordinary_way

    def spy(self: ApiProtocol) -> None:
        turn(self)
        turned.set()

    monkeypatch.setattr(ApiProtocol, "_take_the_ordinary_way", spy)
    async with asyncio.timeout(20):
        writer.write(head + b"\r\n\r\n" + body[:10])
        await turned.wait()
        writer.write(body[10:])
        assert b"HTTP/1.1 201 Created" in await reader.read()
    writer.close()


async def test_one_connection_short_and_long_in_turn(two: Two, fast: list[str]) -> None:
    """Sent all at once: answered one after the other, in order. What follows an fast one waits in line."""
    keep = [asked("/timers", TIMER).replace(b"connection: close\r\n", b"") for _ in range(3)]
    get = b"GET /timers/1 HTTP/1.1\r\nhost: localhost\r\n\r\n"
    answer = await said(two.at_short, keep[0] + get + keep[1] + asked("/timers", TIMER))
    assert [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]] == [201, 200, 201, 201]
    reader, writer = await asyncio.open_connection(*two.at_short)
    async with asyncio.timeout(20):
        for n in range(4, 9):
            writer.write(keep[0])
            answer = await reader.readuntil(b"}")
            assert b'"id":%d' % n in answer
            assert b"connection: close" not in answer
    writer.close()
    assert fast == ["/timers"] * 8, "each stood alone when its turn came"


async def test_http_1_0_is_answered_and_closed(two: Two, fast: list[str]) -> None:
    sent = asked("/timers", TIMER, version="1.0").replace(b"connection: close\r\n", b"")
    assert parts(await said(two.at_short, sent)) == parts(await said(two.at_long, sent))
    assert fast == ["/timers"]


async def test_requests_are_counted_whatever_the_way(two: Two, fast: list[str]) -> None:
    for sent in (asked("/timers", TIMER), asked("/timers", {}), asked("/timers", TIMER, "cookie: a=b")):
        await said(two.at_short, sent)
    counted = two.apps[0].context.metrics.requests
    assert counted.answered("POST", "/timers", 201) == 2
    assert counted.answered("POST", "/timers", 422) == 1


async def test_who_leaves_before_the_answer_harms_nobody(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its timer is made all the same, and the others are answered."""
    began, go = asyncio.Event(), asyncio.Event()
    create = Service.create_timer

    async def held(self: Service, *args: Any) -> Any:
        began.set()
        await go.wait()
        return await create(self, *args)

    monkeypatch.setattr(Service, "create_timer", held)
    _, writer = await asyncio.open_connection(*two.at_short)
    writer.write(asked("/timers", TIMER))
    async with asyncio.timeout(20):
        await began.wait()
        writer.transport.abort()
        stays = asyncio.create_task(said(two.at_short, asked("/timers", TIMER)))
        go.set()
        assert b"HTTP/1.1 201 Created" in await stays


async def test_an_orderly_stop_waits_for_the_answer(tmp_path: Path, fake_clock: FakeClock, monkeypatch: Any) -> None:
    began, go = asyncio.Event(), asyncio.Event()
    create = Service.create_timer

    async def held(self: Service, *args: Any) -> Any:
        began.set()
        await go.wait()
        return await create(self, *args)

    stop = ApiProtocol.shutdown

    def stopping(self: ApiProtocol) -> None:
        stop(self)
        go.set()

    monkeypatch.setattr(Service, "create_timer", held)
    monkeypatch.setattr(ApiProtocol, "shutdown", stopping)
    async with serving(f"sqlite:///{tmp_path}/stop.db", fake_clock) as app:
        async with listening(app) as address:
            sent = asked("/timers", TIMER).replace(b"connection: close\r\n", b"")
            waits = asyncio.create_task(said(address, sent))
            async with asyncio.timeout(20):
                await began.wait()
        answer = await waits
    assert b"HTTP/1.1 201 Created" in answer
    assert b"connection: close" in answer, "the server told it that it goes"
