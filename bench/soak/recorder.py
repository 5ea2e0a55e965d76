"""The receiver of a soak: every call is in its file before it is answered, so what is not there was not received.

    python -m bench.soak.recorder PORT FILE

`/flaky` is answered 500 in every second span of `PHASE` seconds, so that alerts open and recover. `/alert` takes what
a channel of alerts sends.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from typing import cast

import uvloop

from bench.receiver import request_size

__all__ = ["PHASE", "answered", "line", "main"]

PHASE = 20
_ID = re.compile(rb"\r\nwebhook-id: *([^\r]+)", re.IGNORECASE)
_ATTEMPT = re.compile(rb"\r\nx-onthedot-attempt: *(\d+)", re.IGNORECASE)
_ANSWERS = {
    200: b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n",
    500: b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 7\r\n\r\nfailed\n",
}


def answered(path: bytes, now: float) -> int:
    return 500 if path == b"/flaky" and int(now / PHASE) % 2 else 200


def line(request: bytes, now: float) -> tuple[bytes, int]:
    """What is written of a request, and the status of the answer."""
    head, _, body = request.partition(b"\r\n\r\n")
    path = head.split(b" ", 2)[1]
    if path == b"/alert":
        told = json.loads(body)
        return f"alert {now:.3f} {told['event']} {told['condition']} {told['count']}\n".encode(), 200
    run, attempt, status = _ID.search(head), _ATTEMPT.search(head), answered(path, now)
    if run is None or attempt is None:
        raise ValueError(f"not a webhook of a run: {head[:300]!r}")
    return b"call %.3f %s %s %d\n" % (now, run[1].strip(), attempt[1], status), status


class Recording(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, file: int) -> None:
        self._file = file
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one by behaviour, not by class

    def data_received(self, data: bytes) -> None:
        rest = self._rest + data
        lines: list[bytes] = []
        answers: list[bytes] = []
        while (size := request_size(rest)) is not None:
            written, status = line(rest[:size], time.time())
            lines.append(written)
            answers.append(_ANSWERS[status])
            rest = rest[size:]
        self._rest = rest
        if lines:
            os.write(self._file, b"".join(lines))
            self.transport.write(b"".join(answers))


async def _serve(port: int, file: int) -> None:
    server = await asyncio.get_running_loop().create_server(
        lambda: Recording(file), "127.0.0.1", port, backlog=4096, reuse_address=True
    )
    async with server:
        await server.serve_forever()


def main(port: str, name: str) -> None:
    file = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(int(port), file))


if __name__ == "__main__":
    main(*sys.argv[1:])
