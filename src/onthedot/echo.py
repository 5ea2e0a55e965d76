"""`onthedot echo`: a receiver that logs what arrives, and can be slow, fail or hang up. For demos, tests and benches.

Plain asyncio and httptools, because it must never be what limits a bench: what nobody looks at is not made, and what is
always the same is written once. Measured on a busy machine, CPU a request: 18 to 27 µs with the log off (33 to 41
before), 53 to 68 with the log going to a file (72 to 84 before).
An arrival is logged before it is answered, so that after a crash the log never lacks an acknowledged one.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, Self, cast

import httptools
import msgspec

from onthedot.clock import Clock, SystemClock

__all__ = ["Arrival", "EchoServer", "run_echo"]

_SHOWN = 300


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it came in. `at` in ms since the epoch; header names in lower case."""

    at: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    status: int  # what it is answered with; 0: nothing, the connection is dropped

    @property
    def run_id(self) -> str | None:
        return self.headers.get("webhook-id")

    @property
    def late_ms(self) -> int | None:
        """How long after its slot it came; None without x-onthedot-scheduled-for."""
        try:
            slot = datetime.fromisoformat(self.headers["x-onthedot-scheduled-for"])
            return self.at - round(slot.timestamp() * 1000)
        except (KeyError, ValueError):
            return None

    def line(self) -> str:
        """For people."""
        words = [_time_of_day(self.at), self.method, self.path, str(self.status or "dropped")]
        if (run_id := self.run_id) is not None:
            words.append(f"run={run_id}")
        if (attempt := self.headers.get("x-onthedot-attempt")) is not None:
            words.append(f"attempt={attempt}")
        if (late := self.late_ms) is not None:
            words.append(f"late={late}ms")
        if self.body:
            words.append(_printable(self.body))
        return " ".join(words)

    def json(self) -> str:
        """For programs: one object per line."""
        seen: dict[str, Any] = {"at": self.at, "method": self.method, "path": self.path, "status": self.status}
        seen |= {"run_id": self.run_id, "late_ms": self.late_ms, "headers": self.headers}
        seen["body"] = self.body.decode("utf-8", errors="replace")
        return msgspec.json.encode(seen).decode()


def _time_of_day(at: int) -> str:
    """What strftime writes, in a fifth of its time."""
    seconds, ms = divmod(at, 1000)
    return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ms:03}"


def _printable(body: bytes) -> str:
    text = body[:_SHOWN].decode("utf-8", errors="replace")
    if text.isprintable():
        return text + ("…" if len(body) > _SHOWN else "")
    shown = "".join(c if c.isprintable() else "�" if c < " " and c not in "\r\n\t" else " " for c in text)
    return shown + ("…" if len(body) > _SHOWN else "")


class EchoServer:
    """The receiver as an object: `async with EchoServer() as echo:` listens on `echo.url`; see `echo.received`.

    `delay` in seconds; `fail` and `drop` are rates from 0 to 1: answered with `status`, or dropped without an answer.
    A test sets `answer` to decide by itself: given the arrival, it returns status, headers and body.
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
        on_arrival: Callable[[Arrival], None] | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.host, self.port = host, port
        self.delay, self.fail, self.status, self.drop = delay, fail, status, drop
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
        """The status for the next arrival; 0: drop it."""
        if self.drop and self._rng.random() < self.drop:
            return 0
        return self.status if self.fail and self._rng.random() < self.fail else 200

    @property
    def watched(self) -> bool:
        """Does anybody look at what arrives, or is it only counted?"""
        return self._keep or self._on_arrival is not None or self.answer is not None

    def record(self, arrival: Arrival | None) -> None:
        """None: one that nobody looks at."""
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
        """Until at least `n` arrived; returns all. TimeoutError says how many there were."""
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
        """Hang up on everybody; who comes again is served."""
        for connection in list(self.connections):
            connection.close()


class _Connection(asyncio.Protocol):
    """One connection; httptools calls the on_… methods. Requests on it are answered in the order they came."""

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
            raw = _plain(status, is_head, keep_alive)
        if status == 0:
            self.transport.abort()
            return
        self.transport.write(raw)
        if not keep_alive:
            self.transport.close()


@lru_cache(maxsize=64)
def _plain(status: int, is_head: bool, keep_alive: bool) -> bytes:
    return _written(status, {}, b"ok\n" if status == 200 else b"failed, as told\n", is_head, keep_alive)


def _written(status: int, headers: dict[str, str], body: bytes, is_head: bool, keep_alive: bool) -> bytes:
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if not keep_alive:
        head += "connection: close\r\n"
    start = f"HTTP/1.1 {status} -\r\ncontent-length: {len(body)}\r\n{head}\r\n".encode()
    return start if is_head else start + body


def run_echo(
    port: int = 5003,
    host: str = "127.0.0.1",
    delay: float = 0.0,
    fail: float = 0.0,
    drop: float = 0.0,
    json: bool = False,
    status: int = 500,
    quiet: bool = False,
) -> None:
    """Listen and log until interrupted. Raises OSError if the port is taken."""

    def show(arrival: Arrival) -> None:
        sys.stdout.write((arrival.json() if json else arrival.line()) + "\n")
        sys.stdout.flush()

    echo = EchoServer(
        host=host,
        port=port,
        delay=delay,
        fail=fail,
        status=status,
        drop=drop,
        keep=False,
        on_arrival=None if quiet else show,
    )
    with asyncio.Runner(loop_factory=_fast_loop()) as runner:
        runner.run(_serve(echo))


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not on every system
        return None
    return uvloop.new_event_loop


async def _serve(echo: EchoServer) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with echo:
        sys.stderr.write(f"listening on {echo.url} (Ctrl-C stops)\n")
        sys.stderr.flush()
        await stopped.wait()
    sys.stderr.write(f"{echo.count} requests received\n")
