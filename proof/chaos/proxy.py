"""The way to PostgreSQL, one door per process, and what can go wrong on it.

cut       all connections are reset, now
refuse    and new ones too, until healed
delay     each portion of bytes waits, both ways
silence   one way or both nothing passes until healed; then it does, late, as TCP would have it
upstream  the database is at another port from now on; connections to the old one are reset
swallow   the next commits reach the server, their answers never reach the client, the connection is reset
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections import deque
from collections.abc import Coroutine
from typing import Any, Literal, cast

from onthedot.launcher.launch import fast_loop
from proof.chaos.commits import Commits
from proof.chaos.wire import obey

__all__ = ["Door"]

Way = Literal["up", "down"]


class Door:
    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self._pairs: set[_Pair] = set()
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
        pairs = list(self._pairs)
        for pair in pairs:
            pair.abort()
        return len(pairs)

    async def serve(self) -> int:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Pair(self).near, "127.0.0.1", 0, backlog=512)
        return int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        self._server.close()
        self.cut()

    # for its pairs

    def enter(self, pair: _Pair) -> bool:
        if self.refuses:
            return False
        self._pairs.add(pair)
        return True

    def leave(self, pair: _Pair) -> None:
        self._pairs.discard(pair)

    async def connect(self, far: _End) -> None:
        await asyncio.get_running_loop().create_connection(lambda: far, "127.0.0.1", self.upstream)

    def hinders(self, way: Way) -> bool:
        return self.delay > 0 or not self._open[way].is_set()

    async def let_pass(self, way: Way) -> None:
        if self.delay:
            await asyncio.sleep(self.delay)
        await self._open[way].wait()


class _Pair:
    """A client's connection and ours to the server. Portions of bytes go straight from the one to the other; only while
    something hinders them they wait in a line, with a task that lets them through."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.near = _End(self, "up")
        self.far = _End(self, "down")
        self._commits = Commits()
        self._swallowing = False
        self.joined = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()  # else nobody holds them

    def other(self, end: _End) -> _End:
        return self.far if end is self.near else self.near

    def begin(self) -> None:
        """The client is there: now the server."""
        if not self.door.enter(self):
            self.abort()
            return
        self.start(self._connect())

    async def _connect(self) -> None:
        try:
            await self.door.connect(self.far)
        except OSError:
            self.abort()
            return
        if self.near.is_there:
            self.joined.set()
        else:
            self.abort()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def carry(self, end: _End, data: bytes) -> None:
        """To the other side; b"" is the end."""
        door = self.door
        if not data:
            self.close()
            return
        if end.way == "up":
            if self._commits.sends(data) and door.swallow:
                door.swallow -= 1
                self._swallowing = True
        elif self._swallowing:
            door.swallowed += 1
            self.abort()
            return
        other = self.other(end)
        if other.is_there:
            other.transport.write(data)

    def close(self) -> None:
        """Both, after what was written to them; at once if an answer is to be swallowed."""
        if self._swallowing:
            self.abort()
            return
        self.door.leave(self)
        for end in (self.near, self.far):
            if end.is_there:
                end.transport.close()

    def abort(self) -> None:
        self.door.leave(self)
        self.joined.set()  # whoever waits for it has nothing to wait for any more
        for end in (self.near, self.far):
            end.abort()


class _End(asyncio.Protocol):
    """What comes in on one side. `way`: where that goes."""

    transport: asyncio.Transport

    def __init__(self, pair: _Pair, way: Way) -> None:
        self.way = way
        self._connected = False
        self.waiting: deque[bytes] = deque()
        self._pair = pair

    @property
    def is_there(self) -> bool:
        return self._connected and not self.transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are none by name
        self._connected = True
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.way == "up":
            self._pair.begin()

    def data_received(self, data: bytes) -> None:
        self._pass_on(data)

    def eof_received(self) -> bool:
        self._pass_on(b"")
        return True  # it is closed when what came before has passed

    def connection_lost(self, error: Exception | None) -> None:
        self._connected = False
        self._pass_on(b"")

    def _pass_on(self, data: bytes) -> None:
        pair = self._pair
        if self.waiting:
            self.waiting.append(data)
        elif not pair.joined.is_set() or pair.door.hinders(self.way):
            self.waiting.append(data)
            pair.start(self._let_through())
        else:
            pair.carry(self, data)

    async def _let_through(self) -> None:
        await self._pair.joined.wait()
        while self.waiting:
            await self._pair.door.let_pass(self.way)
            if self.waiting:
                self._pair.carry(self, self.waiting[0])
            if self.waiting:  # only now: what comes meanwhile comes after it
                self.waiting.popleft()

    # who is written to faster than it reads lets the other side wait

    def pause_writing(self) -> None:
        self._pair.other(self).pause()

    def resume_writing(self) -> None:
        self._pair.other(self).resume()

    def abort(self) -> None:
        """Also one that is closing: what it has yet to write may never be read."""
        self.waiting.clear()
        if self._connected:
            self.transport.abort()

    def pause(self) -> None:
        if self.is_there:
            self.transport.pause_reading()

    def resume(self) -> None:
        if self.is_there:
            self.transport.resume_reading()


async def main(upstream: int) -> None:
    there = upstream
    doors: dict[str, Door] = {}

    async def handle(order: dict[str, Any]) -> Any:
        """`door` None: all of them. Answers with the port of a new door, or how many connections were concerned."""
        nonlocal there
        name, what = order.get("door"), order["do"]
        if what == "upstream":
            there = order["port"]
        if what == "open":
            doors[name or ""] = door = Door(there)
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
                case "upstream":
                    door.upstream = there
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
