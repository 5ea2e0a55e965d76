"""The receiver: counts, records, delays, fails and drops requests, as configured."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Self, cast

import httptools

from onthedot.clock import Clock, SystemClock
from onthedot.echo.arrival import Arrival

__all__ = ["EchoServer"]


class EchoServer:
    """A webhook receiver: `async with EchoServer() as echo:` listens on `echo.url` and records in `echo.received`.

    `delay` is in seconds. `fail` and `drop` are fractions, 0 to 1, of requests that get `status` or no response.
    `headers` are those of each response. Tests set `answer` to a function that takes the request and returns status,
    headers and body.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        delay: float = 0.0,
        fail: float = 0.0,
        status: int = 500,
        drop: float = 0.0,
        keep: bool = True,
        headers: Mapping[str, str] | None = None,
        on_arrival: Callable[[Arrival], None] | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.host, self.port = host, port
        self.delay, self.fail, self.status, self.drop = delay, fail, status, drop
        self.headers = tuple((headers or {}).items())
        self.received: list[Arrival] = []
        self.count = 0
        self.answer: Callable[[Arrival], tuple[int, dict[str, str], bytes]] | None = None
        self.clock = clock or SystemClock()
        self.connections: set[_Connection] = set()
        self.connected = 0
        self._keep, self._on_arrival, self._rng = keep, on_arrival, rng or random.Random()
        self._server: asyncio.Server | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}/"

    def decide(self) -> int:
        """The status for the next request; 0: drop it."""
        if self.drop and self._rng.random() < self.drop:
            return 0
        return self.status if self.fail and self._rng.random() < self.fail else 200

    @property
    def watched(self) -> bool:
        """Whether anything uses the requests, or they are only counted."""
        return self._keep or self._on_arrival is not None or self.answer is not None

    def record(self, arrival: Arrival | None) -> None:
        """Count a request; None: one that is not recorded."""
        self.count += 1
        if arrival is not None:
            if self._keep:
                self.received.append(arrival)
            if self._on_arrival is not None:
                self._on_arrival(arrival)
        for n, reached in self._waiting:
            if self.count >= n and not reached.done():
                reached.set_result(None)

    async def wait_for(self, n: int, timeout: float = 10.0) -> list[Arrival]:
        """Wait until at least `n` requests arrived; returns all. TimeoutError says how many there were."""
        if self.count >= n:
            return self.received
        waiter = (n, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        try:
            async with self.clock.timeout(timeout):
                await waiter[1]
        except TimeoutError:
            raise TimeoutError(f"{self.count} of {n} requests arrived in {timeout} s") from None
        finally:
            self._waiting.remove(waiter)
        return self.received

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), self.host, self.port, backlog=4096)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        self.close_connections()
        await self._server.wait_closed()

    def close_connections(self) -> None:
        """Close all connections; new ones are accepted."""
        for connection in list(self.connections):
            connection.close()


class _Connection(asyncio.Protocol):
    """One connection; httptools calls the on_… methods. Requests are answered in the order of arrival."""

    transport: asyncio.Transport

    def __init__(self, echo: EchoServer) -> None:
        self._echo = echo
        self._parser = httptools.HttpRequestParser(self)
        self._path, self._body = b"", b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._free_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one by behaviour, not by class
        self._echo.connections.add(self)
        self._echo.connected += 1

    def connection_lost(self, error: Exception | None) -> None:
        self._echo.connections.discard(self)

    def close(self) -> None:
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.transport.close()
        except httptools.HttpParserError:
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            self.transport.close()

    def on_message_begin(self) -> None:
        self._path, self._headers, self._body = b"", [], b""

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        echo, parser = self._echo, self._parser
        status, method = echo.decide(), parser.get_method()
        arrival = self._arrival(method, status) if echo.watched else None
        echo.record(arrival)
        reply = (arrival, status, method == b"HEAD", parser.should_keep_alive())
        if echo.delay:
            loop = asyncio.get_running_loop()
            self._free_at = max(self._free_at, loop.time()) + echo.delay
            loop.call_at(self._free_at, self._reply, *reply)
        else:
            self._reply(*reply)

    def _arrival(self, method: bytes, status: int) -> Arrival:
        return Arrival(
            at=self._echo.clock.now_ms(),
            method=method.decode(),
            path=self._path.decode("utf-8", errors="replace"),
            headers={
                name.decode("latin-1").lower(): value.decode("utf-8", errors="replace") for name, value in self._headers
            },
            body=self._body,
            status=status,
        )

    def _reply(self, arrival: Arrival | None, status: int, is_head: bool, keep_alive: bool) -> None:
        if self.transport.is_closing():
            return
        if arrival is not None and self._echo.answer is not None:
            status, headers, body = self._echo.answer(arrival)
            raw = _written(status, headers, body, is_head, keep_alive)
        else:
            raw = _plain(status, is_head, keep_alive, self._echo.headers)
        if status == 0:
            self.transport.abort()
            return
        self.transport.write(raw)
        if not keep_alive:
            self.transport.close()


@lru_cache(maxsize=64)
def _plain(status: int, is_head: bool, keep_alive: bool, headers: tuple[tuple[str, str], ...]) -> bytes:
    return _written(status, dict(headers), b"ok\n" if status == 200 else b"failed on request\n", is_head, keep_alive)


def _written(status: int, headers: dict[str, str], body: bytes, is_head: bool, keep_alive: bool) -> bytes:
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if not keep_alive:
        head += "connection: close\r\n"
    start = f"HTTP/1.1 {status} -\r\ncontent-length: {len(body)}\r\n{head}\r\n".encode()
    return start if is_head else start + body
