"""HTTP/1.1 over the socket of a container engine: one connection for each request, closed after it.

A connection to a local socket costs less than keeping track of which ones an engine that was restarted has cut.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import msgspec

from onthedot.targets.container_engine.access import EngineAddress

__all__ = ["EngineAway", "EngineHttp", "EngineResponse"]

CONNECT_WITHIN = 5.0
CLOSED_WITHIN = 0.2
LARGEST_BODY = 64 << 20
_PORTION = 64 * 1024
_MOST_HEADERS = 200


class EngineAway(Exception):
    """The engine can't be reached, or does not answer: nobody knows whether it did what it was asked."""


class EngineResponse:
    """The head of a response; its body as it comes."""

    def __init__(
        self, status: int, headers: dict[str, str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.status, self.headers, self._reader, self._writer = status, headers, reader, writer

    async def send(self, content: bytes) -> None:
        """On a connection that the engine has turned into a stream of bytes; this was all."""
        self._writer.transport.set_write_buffer_limits(0)
        self._writer.write(content)
        await self._writer.drain()
        self._writer.close()
        with suppress(OSError, TimeoutError):  # who has heard enough may close it first, or, with TLS, never
            async with asyncio.timeout(CLOSED_WITHIN):
                await self._writer.wait_closed()

    async def portions(self) -> AsyncIterator[bytes]:
        if self.status in (204, 304):
            return
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int((await self._line()).partition(b";")[0], 16):
                async for portion in self._exactly(size):
                    yield portion
                await self._line()
            await self._line()
        elif (length := self.headers.get("content-length")) is not None:
            async for portion in self._exactly(int(length)):
                yield portion
        else:
            while portion := await self._reader.read(_PORTION):
                yield portion

    async def body(self) -> bytes:
        found = bytearray()
        async for portion in self.portions():
            found += portion
            if len(found) > LARGEST_BODY:
                raise ValueError(f"a response of more than {LARGEST_BODY >> 20} MB")
        return bytes(found)

    async def _exactly(self, size: int) -> AsyncIterator[bytes]:
        while size:
            portion = await self._reader.read(min(size, _PORTION))
            if not portion:
                raise ConnectionResetError("the connection was closed in the middle of a response")
            size -= len(portion)
            yield portion

    async def _line(self) -> bytes:
        line = await self._reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionResetError("the connection was closed in the middle of a response")
        return line


class EngineHttp:
    def __init__(self, address: EngineAddress) -> None:
        self.address = address.socket
        self._address, self._parts = address, urlsplit(address.socket)

    @asynccontextmanager
    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: dict[str, str] | None = None,
        within: float | None,
    ) -> AsyncIterator[EngineResponse]:
        """`within` seconds all of it is over, whatever the body is read for; None: for as long as it takes."""
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(within):
                async with asyncio.timeout(CONNECT_WITHIN):
                    reader, writer = await self._connect()
                writer.write(_request(method, path, body, headers or {}))
                await writer.drain()
                yield await _head(reader, writer)
        except TimeoutError:
            raise EngineAway(f"{self.address}: no response within {within or CONNECT_WITHIN:g} s") from None
        except (OSError, EOFError) as error:
            why = getattr(error, "strerror", None) or error
            raise EngineAway(f"{self.address}: {why}") from error
        except ValueError as error:  # what answers is no engine
            raise EngineAway(f"{self.address}: not a valid response: {error}") from error
        finally:
            if writer is not None and not _is_through(writer):
                writer.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._parts.scheme == "unix":
            return await asyncio.open_unix_connection(self._parts.path)
        return await asyncio.open_connection(self._parts.hostname, self._parts.port, ssl=self._address.context())


def _is_through(writer: asyncio.StreamWriter) -> bool:
    """Closed, and all is sent: asyncio fails if that is aborted."""
    return writer.transport.is_closing() and not writer.transport.get_write_buffer_size()


def _request(method: str, path: str, body: object, headers: dict[str, str]) -> bytes:
    """`body`: bytes as they are, anything else as JSON."""
    content = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
    lines = [f"{method} {path} HTTP/1.1", "Host: engine", "Connection: close", f"Content-Length: {len(content)}"]
    if content and not isinstance(body, bytes):
        lines.append("Content-Type: application/json")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


async def _head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> EngineResponse:
    first = await reader.readline()
    words = first.split(None, 2)
    if not first:
        raise ConnectionResetError("the connection was closed without a response")
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise ValueError(repr(first[:80]))
    headers: dict[str, str] = {}
    for _ in range(_MOST_HEADERS):
        line = await reader.readline()
        if line in (b"\r\n", b"\n"):
            return EngineResponse(int(words[1]), headers, reader, writer)
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon:
            raise ValueError(repr(line[:80]))
        headers[name.strip().lower()] = value.strip()
    raise ValueError("too many headers")
