"""The way to PostgreSQL, one door per process, and what can go wrong on it.

cut       all connections are reset, now
refuse    and new ones too, until healed
delay     each portion of bytes waits, both ways
silence   one way or both nothing passes until healed; then it does, late, as TCP would have it
swallow   the next commits reach the server, their answers never reach the client, the connection is reset
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from typing import Any, Literal

from onthedot.launcher.launch import fast_loop
from proof.chaos.commits import Commits
from proof.chaos.wire import obey

__all__ = ["Door"]

Way = Literal["up", "down"]


class Door:
    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._pairs: dict[int, tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = {}
        self._next = 0
        self._swallowing: set[int] = set()
        self._open: dict[Way, asyncio.Event] = {"up": asyncio.Event(), "down": asyncio.Event()}
        self._server: asyncio.Server
        self.swallowed = 0
        self.heal()

    def heal(self) -> None:
        self.refuses = False
        self.delay = 0.0
        self.swallow = 0
        for event in self._open.values():
            event.set()

    def silence(self, *ways: Way) -> None:
        for way in ways:
            self._open[way].clear()

    def cut(self) -> int:
        pairs = list(self._pairs.values())
        for pair in pairs:
            for writer in pair:
                writer.transport.abort()
        return len(pairs)

    async def serve(self) -> int:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=512)
        return int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        self._server.close()
        self.cut()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _no_delay(writer)
        if self.refuses:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        except OSError:
            writer.transport.abort()
            return
        _no_delay(far_writer)
        self._next += 1
        number = self._next
        self._pairs[number] = writer, far_writer
        pumps = [
            asyncio.create_task(self._pump("up", number, reader, far_writer)),
            asyncio.create_task(self._pump("down", number, far_reader, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            for end in self._pairs.pop(number):
                end.transport.abort() if number in self._swallowing else end.close()
            self._swallowing.discard(number)

    async def _pump(self, way: Way, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        commits = Commits()
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if self.delay:
                    await asyncio.sleep(self.delay)
                await self._open[way].wait()
                if way == "up" and commits.sends(data) and self.swallow:
                    self.swallow -= 1
                    self._swallowing.add(number)
                elif way == "down" and number in self._swallowing:
                    self.swallowed += 1
                    return
                writer.write(data)
                await writer.drain()


def _no_delay(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


async def main(upstream: int) -> None:
    doors: dict[str, Door] = {}

    async def handle(order: dict[str, Any]) -> Any:
        """`door` None: all of them. Answers with the port of a new door, or how many connections were concerned."""
        name, what = order.get("door"), order["do"]
        if what == "open":
            doors[name or ""] = door = Door(upstream)
            return await door.serve()
        chosen = list(doors.values()) if name is None else [doors[name]]
        count = 0
        for door in chosen:
            match what:
                case "cut":
                    count += door.cut()
                case "refuse":
                    door.refuses = True
                    count += door.cut()
                case "delay":
                    door.delay = order["seconds"]
                case "silence":
                    door.silence(*order["ways"])
                case "swallow":
                    door.swallow = order["commits"]
                case "heal":
                    door.heal()
                case "count":
                    count += door.swallowed
        return count

    await obey(handle)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        runner.run(main(int(sys.argv[1])))
