"""As little of an HTTP client as possible: what is measured is the server."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from typing import Any, cast

import httptools

from onthedot.model.decoding import encode_json
from onthedot.version import __version__

__all__ = ["ClientRequest", "Wire", "request", "wired"]

Answered = Callable[[int, bytes], None]


def request(
    method: str, path: str, body: object = None, media: str = "application/json", key: str | None = None
) -> bytes:
    raw = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    if key is not None:
        head += f"authorization: Bearer {key}\r\n"
    if body is not None:
        head += f"content-type: {media}\r\ncontent-length: {len(raw)}\r\n"
    return head.encode() + b"\r\n" + raw


class ClientRequest:
    """A create as `onthedot.client` sends it, byte for byte: with an API key, and each with an Idempotency-Key of its
    own. A test holds it to what the client really sends."""

    def __init__(self, path: str, body: object, key: str, port: int) -> None:
        raw = encode_json(body)
        self._front = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nuser-agent: onthedot-client/{__version__}\r\n"
            f"authorization: Bearer {key}\r\ncontent-type: application/json\r\nidempotency-key: "
        ).encode()
        self._back = (
            "\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\nContent-Length: " + f"{len(raw)}\r\n\r\n"
        ).encode() + raw

    def make(self) -> bytes:
        return b"%s%s%s" % (self._front, str(uuid.uuid4()).encode(), self._back)


class Wire(asyncio.Protocol):
    """One connection, one request at a time: `send` it, and `answered` is called with status and body."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._answered: Answered | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one by behaviour, not by class

    def send(self, raw: bytes, answered: Answered) -> None:
        self._answered = answered
        self.transport.write(raw)

    async def ask(self, raw: bytes) -> tuple[int, bytes]:
        done: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
        self.send(raw, lambda status, body: done.set_result((status, body)))
        return await done

    async def json(self, raw: bytes) -> Any:
        """The answer's body; an answer that is no success is an error."""
        status, body = await self.ask(raw)
        if status >= 400:
            raise RuntimeError(f"answered {status}: {body[:500].decode(errors='replace')}")
        return json.loads(body) if body else None

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        status, body = self._parser.get_status_code(), b"".join(self._body)
        self._parser, self._body = httptools.HttpResponseParser(self), []
        answered, self._answered = self._answered, None
        if answered is not None:
            answered(status, body)

    def connection_lost(self, error: Exception | None) -> None:
        answered, self._answered = self._answered, None
        if answered is not None:
            answered(599, b"the server hung up")


async def wired(port: int) -> Wire:
    _, wire = await asyncio.get_running_loop().create_connection(Wire, "127.0.0.1", port)
    return wire
