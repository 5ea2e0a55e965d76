"""The real server on a real socket, and clients that mean harm."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from onthedot.api.server import protocol
from onthedot.clock import SystemClock
from tests.api.conftest import JOB, listening, serving
from tests.services.waiting import until

TIMER = b'{"seconds": 30, "url": "http://127.0.0.1:5003/"}'


async def talk(address: tuple[str, int], sent: bytes, *, seconds: float = 10) -> bytes:
    """Send bytes, hear the other side out until it closes."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        async with asyncio.timeout(seconds):
            writer.write(sent)
            await writer.drain()
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: localhost", "connection: close", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


async def alive(address: tuple[str, int]) -> bool:
    return status(await talk(address, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")) == 200


async def test_a_timer_is_made_over_the_wire(server):
    answer = await talk(server, post("/timers", TIMER))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert status(answer) == 201
    assert json.loads(body)["time_left"] == 30
    assert b"\r\nserver:" not in head.lower()


BAD = {
    "not http": b"hello\r\n\r\n",
    "tls": bytes.fromhex("16030100a5010000a10303") + b"\x00" * 50,
    "http2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "binary": bytes(range(256)),
    "strange version": b"GET / HTTP/9.9\r\n\r\n",
    "nul in a header": b"GET / HTTP/1.1\r\nhost: a\x00b\r\n\r\n",
    "space before colon": b"GET / HTTP/1.1\r\nhost : a\r\n\r\n",
    "two lengths": b"POST /timers HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}",
    "negative length": b"POST /timers HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n{}",
    "length and chunks": b"POST /timers HTTP/1.1\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad chunk": b"POST /timers HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    "raw bytes in the path": b"GET /\xff\xfe HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    "star": b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    "bad host": b"GET /v1/jobs HTTP/1.1\r\nhost: a b/c?\r\nconnection: close\r\n\r\n",
}


async def test_bad_http_is_refused_and_the_server_lives(server):
    for name, sent in BAD.items():
        answer = await talk(server, sent)
        assert answer == b"" or 400 <= status(answer) < 500, f"{name}: {answer!r}"
        if answer:
            assert b"application/problem+json" in answer, f"{name}: {answer!r}"
            assert b"Traceback" not in answer
    assert await alive(server)


async def test_odd_but_legal_http_works(server):
    legal = {
        "absolute address": b"GET http://localhost/healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        "http 1.0": b"GET /healthz HTTP/1.0\r\n\r\n",
        "double slash": b"GET //healthz// HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        "escaped": b"GET /%68ealthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    }
    for name, sent in legal.items():
        assert status(await talk(server, sent)) == 200, name


async def test_requests_in_a_row_on_one_connection_are_answered_in_order(server):
    first = b"GET /nope HTTP/1.1\r\nhost: localhost\r\n\r\n"
    last = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    answer = await talk(server, first + post("/timers", TIMER).replace(b"connection: close\r\n", b"") + last)
    assert [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]] == [404, 201, 200]


async def test_headers_without_end_are_cut_off(server):
    endless = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n" + b"x-pad: " + b"a" * (1 << 20)
    answer = await talk(server, endless)
    assert answer == b"" or status(answer) == 431
    many = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n" + b"".join(b"x-%d: y\r\n" % n for n in range(20_000))
    answer = await talk(server, many)
    assert answer == b"" or status(answer) == 431
    long_path = b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    answer = await talk(server, long_path)
    assert answer == b"" or status(answer) in (404, 431)
    assert await alive(server)


async def test_headers_that_do_not_come_end_the_connection(server, monkeypatch):
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.1)
    assert await talk(server, b"") == b""
    assert await talk(server, b"GET /healthz HTTP/1.1\r\nhost: loc") == b""
    assert await alive(server)


async def test_headers_that_come_drop_by_drop_end_the_connection_too(server, monkeypatch):
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.2)
    reader, writer = await asyncio.open_connection(*server)
    writer.write(b"GET /healthz HTTP/1.1\r\n")
    closed = asyncio.create_task(reader.read())
    async with asyncio.timeout(10):
        while not closed.done():
            writer.write(b"x-a: b\r\n")
            await asyncio.wait([closed], timeout=0.02)
    writer.close()
    assert closed.exception() is not None or closed.result() == b""
    assert await alive(server)


async def test_a_body_is_not_taken_beyond_its_limit_whatever_is_promised(server):
    promised = post("/timers", TIMER).replace(b"content-length: 48", b"content-length: 99999999999")
    assert status(await talk(server, promised)) == 413
    head = b"POST /timers HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    answer = await talk(server, head + chunk * 40)
    assert answer == b"" or status(answer) == 413
    assert await alive(server)


async def test_a_client_that_leaves_in_the_middle_of_everything_harms_nobody(server):
    for sent in (b"", b"GET", post("/timers", TIMER)[:-10], b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n"):
        _, writer = await asyncio.open_connection(*server)
        writer.write(sent)
        writer.transport.abort()
    assert await alive(server)


async def test_an_upgrade_is_not_made(server):
    asked = (
        b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(*server)
    writer.write(asked)
    async with asyncio.timeout(10):
        line = await reader.readline()
    writer.close()
    assert b"101" not in line
    assert await alive(server)


async def test_events_reach_a_listener_and_an_orderly_stop_does_not_wait_for_it(sqlite_url):
    async with serving(sqlite_url, SystemClock()) as app:
        async with listening(app) as (host, port), httpx.AsyncClient(base_url=f"http://{host}:{port}") as client:
            async with client.stream("GET", "/v1/events") as stream:
                assert stream.headers["content-type"].startswith("text/event-stream")
                assert stream.headers["cache-control"] == "no-store"
                lines = stream.aiter_lines()
                assert await anext(lines) == "retry: 2000"
                app.context.streams._telemetry.emit("run.finished", tenant=1, job_id=3, status="DONE")
                while not (line := await anext(lines)).startswith("event:"):
                    pass
                assert line == "event: run.finished"
                assert json.loads((await anext(lines)).removeprefix("data: "))["job_id"] == 3
                stopping = asyncio.get_running_loop().time()
                app.close_streams()
                assert [line async for line in lines if line] == []
            assert app.context.streams.count == 0
        assert asyncio.get_running_loop().time() - stopping < 4


async def test_a_listener_that_leaves_is_forgotten(sqlite_url):
    async with serving(sqlite_url, SystemClock()) as app, listening(app) as (host, port):
        async with httpx.AsyncClient() as client, client.stream("GET", f"http://{host}:{port}/v1/events") as stream:
            assert stream.status_code == 200
            await anext(stream.aiter_lines())
            assert app.context.streams.count == 1
        await until(lambda: not app.context.streams.count, "nobody listens any more")
        async with httpx.AsyncClient() as client:
            assert (await client.head(f"http://{host}:{port}/v1/events")).status_code == 200


@pytest.mark.parametrize("number", [200])
async def test_many_at_once_are_all_answered(server, number):
    async with httpx.AsyncClient(base_url="http://{}:{}".format(*server), timeout=30) as client:
        made = await asyncio.gather(*(client.post("/v1/jobs", json={**JOB, "key": f"job-{n}"}) for n in range(number)))
        assert {answer.status_code for answer in made} == {201}
        assert len({answer.json()["id"] for answer in made}) == number
