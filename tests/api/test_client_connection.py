"""Whether anybody still waits for the answer, asked of a real socket."""

from __future__ import annotations

import asyncio
import socket

import pytest

from onthedot.api.http.client_connection import Connected, hung_up
from onthedot.clock import SystemClock
from onthedot.errors import Abandoned
from onthedot.store.abandoned_requests import PATIENCE
from tests.services.waiting import until


class Listens(asyncio.Protocol):
    """The server's side of a connection that reads nothing: what arrives stays in the socket."""

    transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        self.transport = transport


@pytest.fixture
async def pair():
    listener = Listens()
    server = await asyncio.get_running_loop().create_server(lambda: listener, "127.0.0.1", 0)
    client = socket.create_connection(server.sockets[0].getsockname())
    await until(lambda: listener.transport is not None, "it is connected")
    assert listener.transport is not None
    yield client, listener.transport
    client.close()
    listener.transport.abort()
    server.close()
    await server.wait_closed()


async def test_who_waits_is_there_also_with_more_to_say(pair):
    client, transport = pair
    assert not hung_up(transport)
    client.sendall(b"POST / HTTP/1.1\r\n\r\n")
    assert not hung_up(transport)


async def test_who_hangs_up_is_gone_though_nobody_has_read_what_came_before(pair):
    client, transport = pair
    client.sendall(b"POST / HTTP/1.1\r\n\r\n" * 100)
    client.close()
    await until(lambda: hung_up(transport), "the end is seen behind what is unread")
    with pytest.raises(Abandoned, match="disconnected"):
        Connected(transport, SystemClock()).check()


async def test_half_closed_is_closed(pair):
    client, transport = pair
    client.shutdown(socket.SHUT_WR)
    await until(lambda: hung_up(transport), "the end is seen")


async def test_a_reset_connection_is_closed(pair):
    client, transport = pair
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()
    await until(lambda: hung_up(transport), "the reset is seen")


async def test_a_connection_that_we_closed_is_closed(pair):
    _, transport = pair
    transport.abort()
    assert hung_up(transport)


async def test_what_took_too_long_is_not_carried_out(fake_clock):
    asker = Connected(None, fake_clock)
    await fake_clock.advance(PATIENCE / 1000)
    asker.check()
    await fake_clock.advance(0.001)
    with pytest.raises(Abandoned, match="within 30 s"):
        asker.check()
    asker.check(late=False)
    asker.restart()
    asker.check()
