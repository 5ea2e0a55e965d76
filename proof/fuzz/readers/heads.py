"""A request as the API's connection reads it: never an exception, never a trailer among the headers, never more than
the limits, and the same requests however they are cut."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import uvicorn

from onthedot.api.fastpath.creates import UNUSUAL
from onthedot.api.fastpath.head_cache import Head, HeadCache
from onthedot.api.server.flow import CountedServerState
from onthedot.api.server.protocol import HEADERS_MOST, GuardedProtocol
from proof.fuzz.reader import Reader, Wrong

__all__ = ["HEADS"]


HEAD = Head("route", None, True)
CHANGES = (
    b"",
    b"x",
    b"\r\n",
    b"\n",
    b" ",
    b"\t",
    b"\0",
    b"1",
    b"Idempotency-Key: b\r\n",
    b"content-length: 2\r\n",
    b":",
)


class _Handle:
    def cancel(self) -> None:
        pass


class _Loop:
    """Time stands still; what is to be done soon is done when the bytes are read."""

    def __init__(self) -> None:
        self.soon: list[Any] = []

    def time(self) -> float:
        return 1.0

    def call_later(self, *_: Any) -> _Handle:
        return _Handle()

    def call_soon(self, callback: Any, *args: Any) -> _Handle:
        self.soon.append((callback, args))
        return _Handle()


class _Transport:
    def __init__(self) -> None:
        self.closing = False
        self.written = b""

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def write(self, data: bytes) -> None:
        self.written += data

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 9) if name == "peername" else None

    def get_write_buffer_size(self) -> int:
        return 0


class _Answered:
    response_complete = response_started = True
    keep_alive = True
    disconnected = False
    body = b""
    message_event = asyncio.Event()


async def _nobody(scope: Any, receive: Any, send: Any) -> None:
    """The application: it is not reached."""


_config = uvicorn.Config(_nobody, http=GuardedProtocol, ws="none", lifespan="off", log_config=None)
_config.load()


class _Connection(GuardedProtocol):
    """Takes down what it was asked, and answers at once."""

    def __init__(self) -> None:
        self.requests: list[list[Any]] = []
        self.fake = _Loop()
        super().__init__(_config, CountedServerState(), {}, self.fake)

    def head_complete(self) -> None:
        self.requests.append([self.parser.get_method(), bytes(self.url), tuple(self.headers), b"", False])
        self.cycle = _Answered()  # type: ignore[assignment]

    def body_part(self, part: bytes) -> None:
        self.requests[-1][3] += part

    def message_complete(self) -> None:
        self.requests[-1][4] = True


def _read(portions: list[bytes]) -> tuple[list[list[Any]], bytes]:
    connection, transport = _Connection(), _Transport()
    connection.connection_made(transport)  # type: ignore[arg-type]
    for portion in portions:
        connection.data_received(portion)
        while connection.fake.soon:
            callback, args = connection.fake.soon.pop(0)
            callback(*args)
    refused = transport.written
    connection.connection_lost(None)
    return connection.requests, refused


def check(raw: bytes, rng: random.Random) -> bool:
    requests, refused = _read([raw])
    cuts = sorted(rng.randrange(len(raw) + 1) for _ in range(rng.randrange(4)))
    cut, cut_refused = _read([raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True) if b > a])
    if requests != cut or refused != cut_refused:
        raise Wrong(f"whole {requests} {refused!r}, cut at {cuts} {cut} {cut_refused!r}")
    for _, _, headers, _, _ in requests:
        if len(headers) > HEADERS_MOST:
            raise Wrong(f"{len(headers)} headers")
    if requests and b"x-trailer" not in _first(raw) and any(name == b"x-trailer" for name, _ in requests[0][2]):
        raise Wrong(f"a trailer among the headers: {requests[0][2]}")
    if refused and not refused.startswith((b"HTTP/1.1 4", b"HTTP/1.1 503 ")):
        raise Wrong(f"answered {refused!r}")
    if len(requests) == 1 and requests[0][4] and not any(name in UNUSUAL for name, _ in requests[0][2]):
        _known(raw, requests[0], rng)
    return bool(requests)


def _first(raw: bytes) -> bytes:
    """Up to where the first head must have ended, in lower case."""
    return raw.partition(b"\r\n\r\n")[0].lower()


def _known(raw: bytes, request: list[Any], rng: random.Random) -> None:
    """A head that is kept is found again by its own bytes alone, and what is found under it is what the parser reads:
    also in bytes that were made of it."""
    heads = HeadCache()
    heads.keep(raw, request[2], HEAD)
    found = heads.find(raw)
    if found is None:
        return
    if found.body != request[3] or found.idempotency_key != _key(request):
        raise Wrong(f"another request: {found}")
    if heads.find(b"x" + raw) is not None:
        raise Wrong("found by other bytes")
    other = bytearray(raw)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(other) + 1)
        other[at : at + rng.randrange(3)] = rng.choice(CHANGES)
    changed = heads.find(bytes(other))
    if changed is None:
        return
    requests, refused = _read([bytes(other)])
    if refused or len(requests) != 1 or not requests[0][4]:
        raise Wrong(f"{bytes(other)!r} is known, and the parser says {requests} {refused!r}")
    if (requests[0][3], _key(requests[0])) != (changed.body, changed.idempotency_key):
        raise Wrong(f"{bytes(other)!r} is known as {changed}, and the parser says {requests[0]}")


def _key(request: list[Any]) -> str | None:
    """The Idempotency-Key that the parser read."""
    return next((value.decode("latin-1") for name, value in request[2] if name == b"idempotency-key"), None)


HEADS = Reader(
    "heads",
    check,
    (
        b"GET /v1/jobs?limit=5 HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer x\r\n\r\n",
        b'POST /timers HTTP/1.1\r\nhost: a\r\ncontent-length: 14\r\n\r\n{"seconds": 1}',
        b"POST /v1/jobs HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\nx-trailer: y\r\n\r\n",
        b"POST /timers HTTP/1.1\r\nHost: a\r\nidempotency-key: 7-a\r\nAccept: */*\r\nContent-Length: 2\r\n\r\n{}",
        b"GET / HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\nhost: b\r\n\r\n",
        b"PUT /v1/jobs/by-key/a%20b HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n{}",
        b"OPTIONS * HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    ),
    (
        b"GET ", b"POST ", b" HTTP/1.1\r\n", b"HTTP/1.0", b"\r\n\r\n", b"\r\n", b"content-length: ",
        b"transfer-encoding: chunked", b"host: ", b"idempotency-key: ", b"Content-Length: 2\r\n",
        b"authorization: ", b"x-trailer: ", b"0\r\n\r\n", b"1\r\nx\r\n", b";ext", b"connection: close",
        b"upgrade: h2c", b"?", b"/", b"http://a/",
        b": ", b"\t", b"x: y\r\n" * 40,
    ),
)  # fmt: skip
