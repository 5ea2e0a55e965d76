"""Requests over a real connection, each sent in one write, as curl and our client send them: these may go the fast way.

httpx's own transport writes the head and the body apart.
"""

from __future__ import annotations

import asyncio

import httpx

__all__ = ["OneWrite"]


class OneWrite(httpx.AsyncBaseTransport):
    """A connection per request; what is read until it ends is the answer."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        given = [(name, value) for name, value in request.headers.raw if name.lower() != b"connection"]
        lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
        lines += [b"%s: %s" % header for header in [*given, (b"connection", b"close")]]
        reader, writer = await asyncio.open_connection(*self._address)
        try:
            writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
            async with asyncio.timeout(20):
                answer = await reader.read()
        finally:
            writer.close()
        head, _, content = answer.partition(b"\r\n\r\n")
        status, *rest = head.split(b"\r\n")
        headers = [(name, value) for name, _, value in (line.partition(b": ") for line in rest)]
        return httpx.Response(int(status.split()[1]), headers=headers, content=content)
