"""Connections that are kept: which, for how long, and what is left of them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import pytest

from onthedot.echo import EchoServer
from onthedot.model.targets import WebhookTarget
from onthedot.targets.webhook.egress import EgressRule
from onthedot.targets.webhook.http1.connection import Unanswered
from onthedot.targets.webhook.http1.connections import ConnectionPool
from onthedot.targets.webhook.http1.connector import Connector
from onthedot.targets.webhook.kind import Webhooks
from tests.services.waiting import until
from tests.targets.conftest import MakeCall
from tests.targets.receivers import answer_of, server, trusting, written
from tests.targets.sending import send

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@asynccontextmanager
async def pooled() -> AsyncIterator[ConnectionPool]:
    gate = Connector(EgressRule(allow_private=True))
    pool = ConnectionPool(gate, trusting())
    try:
        yield pool
    finally:
        await pool.close()
        gate.close()
    assert (len(pool.open), pool.idle, pool._by_origin, pool._sweeper) == (0, 0, {}, None)


async def asked(pool: ConnectionPool, echo: EchoServer, *, fresh: bool = False) -> None:
    """One request, as a webhook makes it."""
    origin = (False, echo.host, echo.port)
    connection = None if fresh else pool.take(origin)
    connection = connection or await pool.connect(origin, is_address=True)
    await answer_of(connection, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    pool.put(connection)


async def test_the_newest_is_used_first(echo: EchoServer):
    async with pooled() as pool:
        origin = (False, echo.host, echo.port)
        for _ in range(3):
            await asked(pool, echo, fresh=True)
        newest = list(pool._idle)[-1]
        assert pool.take(origin) is newest
        pool.put(newest)
        assert not newest.reusable or pool.idle == 3


async def test_each_origin_has_its_own(echo: EchoServer):
    async with pooled() as pool, EchoServer() as other:
        await asked(pool, echo)
        await asked(pool, other)
        assert pool.idle == 2
        assert pool.take((False, echo.host, 1)) is None
        assert pool.take((False, "localhost", echo.port)) is None
        assert pool.take((True, echo.host, echo.port)) is None
        taken = pool.take((False, other.host, other.port))
        assert taken is not None
        assert taken.origin == (False, other.host, other.port)
        assert pool.take((False, other.host, other.port)) is None


async def test_what_is_idle_for_too_long_is_closed(echo: EchoServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("onthedot.targets.webhook.http1.connections.IDLE", 0.05)
    async with pooled() as pool:
        for _ in range(3):
            await asked(pool, echo, fresh=True)
        assert pool.idle == 3
        await until(lambda: not pool.open and not echo.connections)
        assert pool.idle == 0
        assert pool._sweeper is None
        await asked(pool, echo)
        assert echo.connected == 4


async def test_and_not_used_even_before_it_is_swept_away(echo: EchoServer, monkeypatch: pytest.MonkeyPatch):
    async with pooled() as pool:
        await asked(pool, echo)
        (connection,) = pool._idle
        pool._idle[connection] = 0.0  # its time was up long ago
        assert pool.take((False, echo.host, echo.port)) is None
        await until(lambda: not echo.connections)


async def test_a_busy_one_is_not_swept_away(echo: EchoServer):
    async with pooled() as pool:
        for _ in range(2):
            await asked(pool, echo, fresh=True)
        busy = pool.take((False, echo.host, echo.port))
        assert busy is not None
        for connection in pool._idle:
            pool._idle[connection] = 0.0
        pool._sweep()
        assert busy.alive
        assert pool.idle == 0
        await until(lambda: pool.open == {busy})


@pytest.mark.parametrize(("hint", "kept"), [("timeout=60", 4.0), ("timeout=3", 2.0), ("timeout=1", None), ("x", 4.0)])
async def test_a_second_less_than_the_receiver_says(echo: EchoServer, hint: str, kept: float | None):
    echo.answer = lambda arrival: (200, {"keep-alive": hint}, b"")
    async with pooled() as pool:
        before = asyncio.get_running_loop().time()
        await asked(pool, echo)
        after = asyncio.get_running_loop().time()
        if kept is None:
            assert pool.idle == 0
            await until(lambda: not echo.connections)
        else:
            (until_,) = pool._idle.values()
            assert before + kept <= until_ <= after + kept


async def test_of_too_many_idle_ones_the_oldest_goes(echo: EchoServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("onthedot.targets.webhook.http1.connections.KEPT", 2)
    async with pooled() as pool:
        await asked(pool, echo, fresh=True)
        (oldest,) = pool._idle
        for _ in range(2):
            await asked(pool, echo, fresh=True)
        assert pool.idle == 2
        assert oldest not in pool._idle
        await until(lambda: len(echo.connections) == 2)


async def test_what_the_receiver_closes_is_forgotten(echo: EchoServer):
    async with pooled() as pool:
        for _ in range(3):
            await asked(pool, echo, fresh=True)
        echo.close_connections()
        await until(lambda: not pool.open)
        assert pool.idle == 0
        assert pool._by_origin == {}


async def test_a_busy_connection_is_cut_when_the_node_stops():
    cut = asyncio.Event()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        cut.set()

    async with server(respond) as url:
        async with pooled() as pool:
            connection = await pool.connect((False, "127.0.0.1", int(url[:-1].rpartition(":")[2])), is_address=True)
            asking = asyncio.ensure_future(answer_of(connection, b"GET / HTTP/1.1\r\n\r\n"))
            await until(lambda: connection._reading)
        with pytest.raises(Unanswered, match="without responding"):
            await asking
        await asyncio.wait_for(cut.wait(), 5)


async def test_nobody_waits_long_for_a_receiver_that_does_not_say_goodbye(
    echo: EchoServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("onthedot.targets.webhook.http1.connections.FAREWELL", 0.01)
    async with asyncio.timeout(5), pooled() as pool:
        await asked(pool, echo)
        (connection,) = pool.open
        monkeypatch.setattr(type(connection), "close", lambda self: None)  # as TLS may do: it waits for the other side


async def test_descriptors_do_not_pile_up(make_call: MakeCall):
    """Answers of every kind, a thousand times: as many descriptors as before."""
    answers = [OK, b"HTTP/1.1 200 OK\r\n\r\nabc", b"nonsense", b"HTTP/1.1 204 -\r\n\r\nbody", b"HTTP/1.1 500 -\r\n"]
    turn = 0

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal turn
        turn += 1
        await written(answers[turn % len(answers)], close=turn % len(answers) != 0)(reader, writer)

    async with server(respond) as url:
        before = psutil.Process().num_fds()
        async with Webhooks(EgressRule(allow_private=True), version="1") as webhooks:
            for _ in range(50):
                sends = (send(webhooks, make_call(WebhookTarget(url=url))) for _ in range(20))
                await asyncio.gather(*sends)
        gc.collect()
        await until(lambda: psutil.Process().num_fds() <= before)
    assert turn >= 990
