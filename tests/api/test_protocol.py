"""What one connection may send, hold and leave unread; how many there may be."""

from __future__ import annotations

import asyncio
import http.client
from pathlib import Path

import httpx
import pytest

from onthedot.api.server import limits, protocol
from onthedot.api.server.limits import Bodies, Limits, Load
from onthedot.api.server.protocol import GuardedProtocol
from onthedot.clock import SystemClock
from onthedot.model.key import ApiKeySpec
from tests.api.abuse import CHUNKED, GET, Attack, victim
from tests.api.conftest import listening, serving
from tests.api.test_server import alive, status, talk
from tests.services.waiting import until
from tests.targets.receivers import server as receiving

BATCH = b"POST /v1/jobs/batch HTTP/1.1\r\nhost: localhost\r\n"


async def test_a_key_in_a_trailer_opens_nothing(sqlite_url: str) -> None:
    async with serving(sqlite_url, SystemClock()) as app, listening(app) as address:
        key = (await app.context.service.create_key(ApiKeySpec(name="a", scope="admin"))).key
        credentials = f"authorization: Bearer {key}\r\n".encode()
        rest = b"GET /v1/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n"
        body = b"\r\n1\r\nx\r\n0\r\n"
        assert status(await talk(address, rest + credentials + body + b"\r\n")) == 200
        assert status(await talk(address, rest + body + credentials + b"\r\n")) == 401


async def test_trailers_and_chunk_extensions_are_counted(server: tuple[str, int]) -> None:
    for endless in (
        b"0\r\n" + b"x-a: yyyyyyyyyyyyyyy\r\n" * 10_000,
        b"0\r\nx: " + b"y" * 200_000,
        b"2;" + b"a" * 200_000,
    ):
        answer = await talk(server, CHUNKED % b"/timers" + endless)
        assert answer == b"" or status(answer) in (400, 431)
    small = b"".join(b"1;x=y\r\n%c\r\n" % byte for byte in b'{"seconds": 30, "url": "http://127.0.0.1:5003/"}')
    head = (CHUNKED % b"/timers").replace(b"host", b"connection: close\r\nhost", 1)
    assert status(await talk(server, head + small + b"0\r\nx-sum: 1\r\n\r\n")) == 201


async def test_more_headers_than_anybody_needs_are_431(server: tuple[str, int]) -> None:
    def asked(number: int) -> bytes:
        lines = b"".join(b"x-%d: y\r\n" % n for n in range(number))
        return b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n" + lines + b"\r\n"

    assert status(await talk(server, asked(protocol.HEADERS_MOST - 2))) == 200
    assert status(await talk(server, asked(protocol.HEADERS_MOST))) == 431
    assert await alive(server)


async def test_a_thousand_requests_at_once_are_answered_one_by_one_and_in_order(server: tuple[str, int]) -> None:
    paths = [b"/healthz" if n % 3 else b"/nowhere/%d" % n for n in range(1000)]
    last = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    answer = await talk(server, b"".join(GET % path for path in paths) + last, seconds=30)
    found = [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert found == [*(200 if path == b"/healthz" else 404 for path in paths), 200]


async def test_requests_with_bodies_in_a_row_keep_their_bodies(server: tuple[str, int]) -> None:
    def timer(seconds: int, chunked: bool) -> bytes:
        body = b'{"seconds": %d, "url": "http://127.0.0.1:5003/%s"}' % (seconds, b"x" * 700)
        if chunked:
            return CHUNKED % b"/timers" + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        return b"POST /timers HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)

    sent = b"".join(timer(n + 100, chunked=n % 2 == 0) for n in range(20))
    answer = await talk(server, sent + (GET % b"/healthz").replace(b"host", b"connection: close\r\nhost", 1))
    parts = answer.split(b"HTTP/1.1 ")[1:]
    assert [int(part[:3]) for part in parts] == [201] * 20 + [200]
    assert [b'"time_left":%d' % (n + 100) in part for n, part in enumerate(parts[:20])] == [True] * 20


async def test_who_does_not_take_the_answer_is_left(server: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "WRITE_SECONDS", 0.5)
    left = asyncio.Event()
    lost = GuardedProtocol.connection_lost

    def spy(self: GuardedProtocol, exc: Exception | None) -> None:
        lost(self, exc)
        left.set()

    monkeypatch.setattr(GuardedProtocol, "connection_lost", spy)
    reader, writer = await asyncio.open_connection(*server)
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    writer.write((GET % b"/openapi.json") * 2000)  # some hundred megabytes: more than the kernel keeps for us
    await asyncio.wait_for(left.wait(), 20)
    writer.transport.abort()
    assert await alive(server)


async def test_the_rest_of_an_unwanted_body_is_not_waited_for(
    server: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "UNWANTED_SECONDS", 0.2)
    answer = await talk(server, CHUNKED % b"/nowhere" + b"5\r\nhello\r\n")  # and never the end of it
    assert status(answer) == 404


async def test_who_sends_all_before_reading_reads_why_it_was_refused(server: tuple[str, int]) -> None:
    """With "connection: close", as simple clients ask. Closed at once, the kernel would have reset the connection."""

    def ask() -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*server, timeout=20)
        connection.request("POST", "/v1/jobs", b"[" + b" " * 8_000_000 + b"]", {"connection": "close"})
        with connection.getresponse() as response:
            return response.status, response.read()

    for told in [await asyncio.to_thread(ask) for _ in range(3)]:
        assert told[0] == 413
        assert b"exceeds the limit" in told[1]
    assert await alive(server)


async def test_who_is_refused_and_sends_on_is_left(server: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "UNWANTED_SECONDS", 0.2)
    reader, writer = await asyncio.open_connection(*server)
    writer.write(BATCH + b"connection: close\r\ncontent-length: 900000000\r\n\r\n")
    assert status(await asyncio.wait_for(reader.read(), 5)) == 413
    with pytest.raises(ConnectionError):
        async with asyncio.timeout(10):
            while True:
                writer.write(b" " * 100_000)
                await writer.drain()
    writer.close()


async def test_idle_connections_make_room(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_CONNECTIONS", 32)
    monkeypatch.setattr(limits, "IDLE_SECONDS", 0.0)
    async with serving(sqlite_url, SystemClock()) as app, listening(app) as address:
        opened = [await asyncio.open_connection(*address) for _ in range(40)]
        assert await alive(address)
        for _, writer in opened:
            writer.close()


async def test_a_newcomer_is_served_although_others_hold_half_heads(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_CONNECTIONS", 32)
    async with serving(sqlite_url, SystemClock()) as app, listening(app) as address:
        hoard = [await asyncio.open_connection(*address, local_addr=(f"127.0.0.{2 + n % 2}", 0)) for n in range(32)]
        for _, writer in hoard:
            writer.write(b"GET /healthz HTTP/1.1\r\n")
        assert await alive(address)
        for _, writer in hoard:
            writer.close()


async def test_beyond_the_limit_it_says_so_and_others_are_served(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_CONNECTIONS", 32)
    async with serving(sqlite_url, SystemClock()) as app, listening(app) as address:
        busy = [await asyncio.open_connection(*address, local_addr=("127.0.0.2", 0)) for _ in range(16)]
        for _, writer in busy:
            writer.write(b"GET /healthz HTTP/1.1\r\n")
        reader, writer = await asyncio.open_connection(*address, local_addr=("127.0.0.2", 0))
        answer = await asyncio.wait_for(reader.read(), 10)
        assert status(answer) == 503
        assert b"\r\nretry-after: 1\r\n" in answer
        assert await alive(address)
        for _, each in [*busy, (reader, writer)]:
            each.close()


def test_limits_leave_descriptors_for_ourselves(monkeypatch: pytest.MonkeyPatch) -> None:
    for soft, connections in ((256, 32), (1024, 320), (4096, 1856), (1 << 20, 2000)):
        monkeypatch.setattr("resource.getrlimit", lambda _, soft=soft: (soft, soft))
        assert Limits.here() == Limits(connections=connections, per_address=connections // 2)


def test_what_waits_is_counted_for_all_together() -> None:
    counted = Load(Limits(waiting_bytes=100))
    assert counted.wait(60)
    assert not counted.wait(60)
    counted.done(60)
    assert counted.wait(100)


def test_large_bodies_of_one_tenant_leave_room_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_BYTES", 100)
    monkeypatch.setattr(limits, "TENANT_BODY_BYTES", 60)
    bodies = Bodies()
    assert bodies.more(1, 60)
    assert not bodies.more(1, 1)
    assert bodies.more(2, 40)
    assert not bodies.more(3, 1)
    bodies.done(1, 60)
    assert bodies.more(3, 60)


async def test_large_bodies_are_taken_as_long_as_there_is_room(
    server: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with httpx.AsyncClient(base_url="http://{}:{}".format(*server), timeout=30) as client:
        body = b"[" + b" " * 3_000_000 + b"]"
        monkeypatch.setattr(limits, "BODY_BYTES", 2_000_000)
        assert (await client.post("/v1/jobs/batch", content=body)).status_code == 503
        monkeypatch.setattr(limits, "BODY_BYTES", 4_000_000)
        for _ in range(3):  # the room is given back each time
            assert (await client.post("/v1/jobs/batch", content=body)).status_code == 200


async def test_webhooks_go_out_while_somebody_hoards_connections(tmp_path: Path) -> None:
    called = asyncio.Event()

    async def respond(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.set()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async with victim(tmp_path, descriptors=512) as server, receiving(respond) as hook:
        attack = Attack(server)
        hoarders = [attack.pour(b"", b"", most=0, source=f"127.0.0.{2 + n % 8}") for n in range(700)]
        tasks = [asyncio.ensure_future(hoarder) for hoarder in hoarders]
        await until(lambda: len(attack.answers) == len(tasks), "they are all there")
        try:
            body = b'{"seconds": 1, "url": "%s"}' % hook.encode()
            timer = b"POST /timers HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
            assert status(await server.ask(timer)) == 201
            await asyncio.wait_for(called.wait(), 20)
            assert len(list(Path(f"/proc/{server.node.pid}/fd").iterdir())) < 256
        finally:
            await attack.end(tasks)
