"""A connection against real peers: every way to cut, close and misbehave."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onthedot.model.run import Outcome
from onthedot.model.targets import WebhookTarget
from onthedot.targets.contract import Call
from onthedot.targets.webhook.egress import EgressRule
from onthedot.targets.webhook.http1.connection import Unanswered
from onthedot.targets.webhook.kind import Webhooks
from tests.services.waiting import until
from tests.targets.conftest import MakeCall
from tests.targets.receivers import answer_of, server, written
from tests.targets.sending import send
from tests.targets.test_response import ANSWERS

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@pytest.fixture
async def webhooks() -> AsyncIterator[Webhooks]:
    async with Webhooks(EgressRule(allow_private=True), version="1") as webhooks:
        yield webhooks
        pool = webhooks._pool
        assert pool is not None
    assert not pool.open
    assert not pool.idle
    assert not pool._by_origin


def sockets(webhooks: Webhooks) -> tuple[int, int]:
    """Open, and idle of those."""
    assert webhooks._pool is not None
    return len(webhooks._pool.open), webhooks._pool.idle


@pytest.mark.parametrize("name", sorted(ANSWERS))
async def test_every_answer_and_what_becomes_of_its_connection(webhooks: Webhooks, make_call: MakeCall, name: str):
    raw, status, body, reusable = ANSWERS[name]
    async with server(written(raw)) as url:
        outcome = await send(webhooks, make_call(WebhookTarget(url=url)))
        assert outcome.detail == {"status_code": status} | ({"response": body.decode()} if body else {})
        await until(lambda: sockets(webhooks) == ((1, 1) if reusable else (0, 0)))


@pytest.mark.parametrize("ending", ["stays", "closes"])
def test_the_same_in_whatever_packets(ending: str):
    """One receiver, one client, and as many ways to cut the answers as hypothesis likes."""
    portions: list[bytes] = []
    with asyncio.Runner() as runner:

        async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await written(*portions, close=ending == "closes")(reader, writer)

        receiver = server(respond)
        url = runner.run(receiver.__aenter__())
        webhooks = Webhooks(EgressRule(allow_private=True), version="1")
        runner.run(webhooks.__aenter__())
        call = Call(run_id="7-1", job_id=7, slot=1, attempt=1, target=WebhookTarget(url=url))

        @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(name=st.sampled_from(sorted(ANSWERS)), data=st.data())
        def check(name: str, data: st.DataObject) -> None:
            raw, status, body, _ = ANSWERS[name]
            cuts = sorted(data.draw(st.sets(st.integers(1, len(raw) - 1), max_size=8)))
            portions[:] = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
            outcome = runner.run(send(webhooks, call))
            if ending == "closes" and "without responding" in (outcome.error or ""):
                outcome = runner.run(send(webhooks, call))  # the kept connection was closed just now
            assert outcome.detail == {"status_code": status} | ({"response": body.decode()} if body else {})

        try:
            check()
        finally:
            runner.run(webhooks.__aexit__())
            runner.run(receiver.__aexit__(None, None, None))


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (b"", "the receiver closed the connection without responding"),
        (b"HTTP/1.1 200", "the receiver closed the connection without responding"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "the receiver closed the connection without responding"),
        (b"220 smtp.example ESMTP\r\n", "invalid HTTP response: "),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 1_000_000 + b"\r\n\r\n", "invalid HTTP response: the headers exceed"),
    ],
)
async def test_no_answer(webhooks: Webhooks, make_call: MakeCall, raw: bytes, what: str):
    async with server(written(raw, close=True)) as url:
        outcome = await send(webhooks, make_call(WebhookTarget(url=url)))
    assert outcome.kind == "error"
    assert outcome.retryable
    assert (outcome.error or "").startswith(what)
    await until(lambda: sockets(webhooks) == (0, 0))


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (b"", "connection lost: "),
        (b"HTTP/1.1 200 OK\r\n", "connection lost: "),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc", None),
        (b"HTTP/1.1 200 OK\r\n\r\nabc", None),
    ],
)
async def test_reset(webhooks: Webhooks, make_call: MakeCall, said: bytes, outcome: str | None):
    """The connection is reset, not closed: after the head the verdict stands, before it there is none."""
    sent = asyncio.Event()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        sock: socket.socket = writer.get_extra_info("socket")
        if said:
            await until(lambda: read_by(webhooks, len(said)))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        sent.set()

    async with server(respond) as url:
        found = await send(webhooks, make_call(WebhookTarget(url=url)))
        assert sent.is_set()
    if outcome is None:
        assert found == Outcome(kind="ok", detail={"status_code": 200, "response": "abc"})
    else:
        assert found.retryable
        assert (found.error or "").startswith(outcome)


def read_by(webhooks: Webhooks, size: int) -> bool:
    """The client has seen what was said so far."""
    assert webhooks._pool is not None
    for connection in webhooks._pool.open:
        reading = connection._reading
        if reading is not None and (reading.status or reading._read >= size):
            return True
    return False


async def test_an_answer_before_the_request_was_read(webhooks: Webhooks, make_call: MakeCall):
    """413 at the sight of the head; the rest of the request is not for the next one to trip over."""
    async with server(written(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n"), limit=1024) as url:
        outcome = await send(webhooks, make_call(WebhookTarget(url=url, body="x" * 20_000_000)))
        assert outcome.detail["status_code"] == 413
        await until(lambda: sockets(webhooks) == (0, 0))


async def test_a_large_body_arrives_whole(webhooks: Webhooks, make_call: MakeCall):
    size = 5_000_000
    read: list[int] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        read.append(len(await reader.readexactly(size)))
        writer.write(OK)

    async with server(respond) as url:
        for _ in range(2):
            assert (await send(webhooks, make_call(WebhookTarget(url=url, body="x" * size)))).ok
        assert sockets(webhooks) == (1, 1)
    assert read == [size, size]


@pytest.mark.parametrize("words", [b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n", b"x", OK])
async def test_words_on_an_idle_connection_are_nobodys_answer(webhooks: Webhooks, make_call: MakeCall, words: bytes):
    writers: list[asyncio.StreamWriter] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.write(OK)

    async with server(respond) as url:
        assert (await send(webhooks, make_call(WebhookTarget(url=url)))).ok
        assert sockets(webhooks) == (1, 1)
        writers[0].write(words)
        await until(lambda: sockets(webhooks) == (0, 0))
        assert (await send(webhooks, make_call(WebhookTarget(url=url)))).ok
        assert len(writers) == 2


async def test_a_late_body_of_a_204_does_not_answer_the_next_request(webhooks: Webhooks, make_call: MakeCall):
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 204 No Content\r\ncontent-length: %d\r\n\r\n" % len(OK))
        await writer.drain()
        writer.write(OK)

    async with server(respond) as url:
        for _ in range(20):
            outcome = await send(webhooks, make_call(WebhookTarget(url=url)))
            assert outcome == Outcome(kind="ok", detail={"status_code": 204})


async def test_cancelled_at_any_instant_nothing_stays_open(webhooks: Webhooks, make_call: MakeCall):
    async with server(written(OK)) as url:
        for steps in range(12):
            running = asyncio.ensure_future(send(webhooks, make_call(WebhookTarget(url=url))))
            for _ in range(steps):
                await asyncio.sleep(0)
            running.cancel()
            await asyncio.wait([running])
            await until(lambda: sockets(webhooks) in ((0, 0), (1, 1)))
        assert (await send(webhooks, make_call(WebhookTarget(url=url)))).ok


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"])
async def test_giving_up_closes_the_connection_wherever_it_strikes(
    webhooks: Webhooks, make_call: MakeCall, monkeypatch: pytest.MonkeyPatch, said: bytes
):
    monkeypatch.setattr("onthedot.targets.webhook.http1.connection.BODY_WAIT", 60.0)
    arrived, closed = asyncio.Event(), asyncio.Event()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        arrived.set()
        await reader.read()
        closed.set()

    async with server(respond) as url:
        sending = asyncio.ensure_future(send(webhooks, make_call(WebhookTarget(url=url))))
        await asyncio.wait_for(arrived.wait(), 10)
        await until(lambda: not said or read_by(webhooks, len(said)))
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await asyncio.wait_for(closed.wait(), 10)
        await until(lambda: sockets(webhooks) == (0, 0))


async def test_one_connection_for_each_that_runs_at_once(webhooks: Webhooks, make_call: MakeCall):
    here, go = asyncio.Event(), asyncio.Event()
    count = 0

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        if count == 3:
            here.set()
        await go.wait()
        writer.write(OK)

    async with server(respond) as url:
        sends = [asyncio.ensure_future(send(webhooks, make_call(WebhookTarget(url=url)))) for _ in range(3)]
        await asyncio.wait_for(here.wait(), 5)
        assert sockets(webhooks) == (3, 0)
        go.set()
        assert all(outcome.ok for outcome in await asyncio.gather(*sends))
        assert sockets(webhooks) == (3, 3)


async def test_ipv6(webhooks: Webhooks, make_call: MakeCall):
    seen: list[Any] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(writer.get_extra_info("peername")[0])
        writer.write(OK)

    async with server(respond, host="::1") as url:
        assert (await send(webhooks, make_call(WebhookTarget(url=url)))).ok
    assert seen == ["::1"]


async def test_asking_a_connection_that_is_gone_is_an_answer_too(webhooks: Webhooks):
    async with server(written(OK)) as url:
        assert webhooks._pool is not None
        connection = await webhooks._pool.connect(
            (False, "127.0.0.1", int(url[:-1].rpartition(":")[2])), is_address=True
        )
        connection.abort()
        await until(lambda: sockets(webhooks) == (0, 0))
        with pytest.raises(Unanswered, match="closed the connection without responding"):
            await answer_of(connection, b"GET / HTTP/1.1\r\n\r\n")
