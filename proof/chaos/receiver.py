"""What gets called. Each call is in the file before its answer is on the way; nothing is ever deduplicated.

How it answers is in the address: /ok, /flaky, /bad, /fatal, /later or /slow, decided by the run and its token, so that
nothing depends on the order of arrival. `down` resets every connection after having read the request; `slow` delays
answers.
No planned answer takes between 1.5 s and 4 s: near the nodes' time-out of 3 s nobody could say who was right.

A caller who hangs up before the answer is noted too, and an answer that left later than planned. Who is told where to
call back does so later, or never (`calling_back`).
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
import zlib
from typing import Any, cast

import httptools
import msgspec

from onthedot.launcher.launch import fast_loop
from proof.chaos.calling_back import CallingBack, try_of
from proof.chaos.wire import obey

__all__ = ["ANSWERS", "RETRY_AFTER", "decide"]

ANSWERS = {
    "ok": b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    "error": b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n",
    "refused": b"HTTP/1.1 404 Never\r\ncontent-length: 0\r\n\r\n",
    "later": b"HTTP/1.1 503 Later\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n",
}
RETRY_AFTER = 1000
"""ms: what `later` asks for."""


LATE = 0.1
"""Seconds: an answer that left so much later than planned is noted, because then the plan proves nothing."""


def decide(mood: str, run: str, token: int, mode: str) -> tuple[str, int]:
    """The answer and how many ms it takes."""
    dice = zlib.crc32(f"{run}/{token}/{mode}".encode()) % 10_000
    if mode == "down":
        return "cut", 0
    took = dice % 2
    if mood == "slow":
        took = 300 + dice % 1100 if dice < 9500 else 4000 + dice % 500
    if mode == "slow":
        took += 200 + dice % 900 if dice < 8000 else 4000
    if 1500 <= took < 4000:
        took = 1499
    if mood == "bad" or (mood == "flaky" and dice % 10 < 4):
        return "error", took
    if mood == "later" and dice % 10 < 5:
        return "later", took
    return ("refused", took) if mood == "fatal" else ("ok", took)


class Receiver:
    def __init__(self, path: str) -> None:
        self.mode = "up"
        self.calls = 0
        self.calls_back = CallingBack(self.called_back)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, line: list[Any]) -> None:
        self.calls += 1
        self._append(line)

    def note(self, what: str, run: str, token: int) -> None:
        """What became of a call: `hung_up`, `answered`."""
        self._append([time.monotonic_ns() // 1000, what, run, token])

    def called_back(self, run: str, of: int, told: str, status: int) -> None:
        """What a receiver told later, and what it was answered. 0: nothing, however often it asked."""
        self._append([time.monotonic_ns() // 1000, "called_back", run, of, told, status])

    def _append(self, line: list[Any]) -> None:
        os.write(self._file, msgspec.json.encode(line) + b"\n")


class Connection(asyncio.Protocol):
    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._came = (0, 0)
        self._open: tuple[str, int] | None = None  # the call that has no answer yet

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name

    def connection_lost(self, exc: Exception | None) -> None:
        if self._open is not None:
            self._receiver.note("hung_up", *self._open)
            self._open = None

    def data_received(self, data: bytes) -> None:
        self._came = time.monotonic_ns() // 1000, time.time_ns() // 1000
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if self._transport is not None:
                self._transport.abort()

    def on_message_begin(self) -> None:
        self._url, self._headers = b"", {}

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_message_complete(self) -> None:
        headers, mood = self._headers, self._url.strip(b"/").decode()
        run, token = headers[b"webhook-id"].decode(), int(headers[b"x-onthedot-attempt"])
        answer, took = decide(mood, run, token, self._receiver.mode)
        node, job = headers.get(b"x-chaos-node", b"").decode(), int(headers[b"x-onthedot-job"])
        callback = headers.get(b"x-onthedot-callback", b"").decode()
        stamp = headers.get(b"webhook-timestamp")
        self._receiver.write(
            [*self._came, run, job, token, node, answer, took, try_of(callback), None if stamp is None else int(stamp)]
        )
        if callback and answer == "ok":
            self._receiver.calls_back.follow(callback, run, token, took)
        self._open = run, token
        loop = asyncio.get_running_loop()
        loop.call_later(took / 1000, self._answer, answer, loop.time() + took / 1000)

    def _answer(self, answer: str, planned: float) -> None:
        if self._transport is None or self._open is None or self._transport.is_closing():
            return
        if asyncio.get_running_loop().time() > planned + LATE:
            self._receiver.note("answered", *self._open)
        self._open = None
        if answer == "cut":
            self._transport.abort()
        else:
            self._transport.write(ANSWERS[answer])


async def main(path: str) -> None:
    receiver = Receiver(path)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(receiver), "127.0.0.1", 0, backlog=4096)
    port = server.sockets[0].getsockname()[1]

    async def handle(order: dict[str, Any]) -> Any:
        receiver.mode = order.get("mode", receiver.mode)
        return {"port": port, "calls": receiver.calls}

    await obey(handle)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        runner.run(main(sys.argv[1]))
