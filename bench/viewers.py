"""Open dashboards as far as the server sees them: `python -m bench.viewers PORT COUNT` prints `ready`, and goes on
until it is ended. Each listens for changes and fetches the live part of the overview, at the pace of the page's script.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time

from bench.ours.wire import Wire

SOON = 1.0
"""Seconds between two refreshes while things happen, as in live.js."""
AT_LEAST, APART = 0.05, 0.6
HEAD = b"GET %s HTTP/1.1\r\nhost: 127.0.0.1\r\naccept-encoding: gzip\r\n"


class Viewer(Wire):
    """The connection for the live part; knows the tag of what it has."""

    tag = b""
    changed = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"etag":
            self.tag = value

    async def refresh(self) -> None:
        condition = b"if-none-match: %s\r\n" % self.tag if self.tag else b""
        status, _ = await self.ask(HEAD % b"/" + b"x-onthedot-live: 1\r\n" + condition + b"\r\n")
        if status not in (200, 304):
            raise RuntimeError(f"the live part was answered with {status}")
        self.changed += status == 200


async def watch(port: int, open_now: asyncio.Semaphore) -> None:
    loop = asyncio.get_running_loop()
    async with open_now:
        _, viewer = await loop.create_connection(Viewer, "127.0.0.1", port)
        await viewer.refresh()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEAD % b"/v1/events?digest=true" + b"\r\n")
        await reader.readuntil(b"retry: ")
    updated, apart = time.monotonic(), random.random() * APART
    while True:
        await reader.readuntil(b"event: changed")
        await asyncio.sleep(max(AT_LEAST + apart, SOON - (time.monotonic() - updated)))
        await viewer.refresh()
        updated = time.monotonic()


async def main(port: int, count: int) -> None:
    few = asyncio.Semaphore(10)
    watching = [asyncio.create_task(watch(port, few)) for _ in range(count)]
    opened = asyncio.create_task(_all_open(few, watching))
    done, _ = await asyncio.wait([opened, *watching], return_when=asyncio.FIRST_COMPLETED)
    await next(iter(done))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.gather(*watching)


async def _all_open(few: asyncio.Semaphore, watching: list[asyncio.Task[None]]) -> None:
    """Whoever waits for the semaphore came after all of them."""
    await asyncio.sleep(0)
    for _ in watching:
        async with few:
            pass


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
