"""A receiver of webhooks that must never be what limits a bench: it looks for the end of a request and answers 200.

No parser, no object per request: it reads the length of the body where a request names it, and counts. On two cores it
still shares them with the node and the database, so the bench prints what it used.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

__all__ = ["Receiving", "main", "request_size"]

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n"
_LENGTH = b"\r\ncontent-length:"
_CHUNKED = b"\r\ntransfer-encoding: chunked"
_END = b"\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"


class Receiving(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self) -> None:
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one by behaviour, not by class

    def data_received(self, data: bytes) -> None:
        rest = self._rest + data if self._rest else data
        answers = 0
        while (size := request_size(rest)) is not None:
            rest = rest[size:]
            answers += 1
        self._rest = rest
        if answers:
            self.transport.write(ANSWER * answers)


def request_size(data: bytes) -> int | None:
    """How many bytes the first request takes; None: it is not all there."""
    head = data.find(_END)
    if head < 0:
        return None
    lower = data[:head].lower()
    at = lower.find(_LENGTH)
    if at >= 0:
        stop = lower.find(b"\r\n", at + 2)
        size = head + len(_END) + int(lower[at + len(_LENGTH) : stop if stop >= 0 else head])
    elif _CHUNKED in lower:
        last = data.find(_LAST_CHUNK, head)
        if last < 0:
            return None
        size = last + len(_LAST_CHUNK)
    else:
        size = head + len(_END)
    return size if len(data) >= size else None


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Receiving, "127.0.0.1", port, backlog=4096)
    async with server:
        await server.serve_forever()


def main(port: int) -> None:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(port))


if __name__ == "__main__":
    main(int(sys.argv[1]))
