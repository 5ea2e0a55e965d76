"""Server-sent events: what happens on this node, for every client of the tenant that listens."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

import msgspec

from onthedot.clock import Clock
from onthedot.model.instant import format_instant
from onthedot.telemetry import Event, Telemetry

__all__ = ["EventStreams", "MayListen"]

BEHIND_MOST = 1000
QUIET_SECONDS = 15.0
ASK_AGAIN = 1.0
"""Seconds between two looks at whether who listens still may."""
# What no tenant owns and everybody may know. Their error texts may hold anybody's data, so they stay in the log.
_ABOUT_THE_CLUSTER = frozenset(
    ("node.registered", "node.draining", "node.left", "node.lost", "store.unavailable", "store.back")
)
_encode = msgspec.json.Encoder(enc_hook=str).encode


MayListen = Callable[[], Awaitable[bool]]


async def _may() -> bool:
    return True


class EventStreams:
    """All the open streams of one node. A listener that can't keep up loses the oldest and is told how many."""

    def __init__(self, telemetry: Telemetry, clock: Clock, most: int = 100) -> None:
        self._telemetry = telemetry
        self._clock = clock
        self._most = most
        self._open: set[_Closable] = set()

    @property
    def full(self) -> bool:
        return len(self._open) >= self._most

    @property
    def count(self) -> int:
        return len(self._open)

    def listen(self, tenant: int, may_listen: MayListen = _may) -> AsyncIterator[bytes]:
        """The body of the answer, piece by piece, until the client goes, may not listen any more, or the node stops."""
        stream = _Stream(tenant, self._clock)
        return self.serve(stream, lambda: self._telemetry.subscribe(stream.take), may_listen)

    async def serve(
        self,
        stream: _Closable,
        begin: Callable[[], Callable[[], None]] = lambda: lambda: None,
        may_listen: MayListen = _may,
    ) -> AsyncIterator[bytes]:
        """Any stream: it counts as one of the open ones, and ends with the node. `begin` is called when somebody reads
        it, and what that returns at its end."""
        end = begin()
        self._open.add(stream)
        watch = asyncio.create_task(self._watch(stream, may_listen), name="api.stream-watch")
        try:
            yield b"retry: 2000\n\n"
            async for piece in stream.pieces():
                yield piece
        finally:
            watch.cancel()
            end()
            self._open.discard(stream)

    async def _watch(self, stream: _Closable, may_listen: MayListen) -> None:
        """A stream ends with the key or the session that opened it."""
        try:
            while await may_listen():
                await self._clock.sleep(ASK_AGAIN)
        finally:
            stream.close()

    def close(self) -> None:
        """End every stream: an orderly stop does not wait for clients that would listen for ever."""
        for stream in tuple(self._open):
            stream.close()


class _Closable(Protocol):
    def pieces(self) -> AsyncIterator[bytes]: ...

    def close(self) -> None: ...


class _Stream:
    def __init__(self, tenant: int, clock: Clock) -> None:
        self._tenant = tenant
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Event] = deque(maxlen=BEHIND_MOST)
        self._woken = asyncio.Event()
        self._dropped = 0
        self._closed = False

    def take(self, event: Event) -> None:
        """Called by the emitter, in whatever thread that is."""
        if not self._concerns(event):
            return
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        put: Callable[[Event], Any] = self._put if here else lambda e: self._loop.call_soon_threadsafe(self._put, e)
        put(event)

    def close(self) -> None:
        self._closed = True
        self._woken.set()

    async def pieces(self) -> AsyncIterator[bytes]:
        while not self._closed:
            while self._waiting and not self._closed:
                yield self._write(self._waiting.popleft())
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                yield b'event: dropped\ndata: {"n": %d}\n\n' % dropped
            self._woken.clear()
            try:
                async with self._clock.timeout(QUIET_SECONDS):
                    await self._woken.wait()
            except TimeoutError:
                yield b": still here\n\n"  # so that proxies keep the connection, and a dead one is noticed

    def _concerns(self, event: Event) -> bool:
        tenant = event.fields.get("tenant")
        return tenant == self._tenant if tenant is not None else event.name in _ABOUT_THE_CLUSTER

    def _put(self, event: Event) -> None:
        if len(self._waiting) == BEHIND_MOST:
            self._dropped += 1
        self._waiting.append(event)
        self._woken.set()

    def _write(self, event: Event) -> bytes:
        hidden = ("error",) if "tenant" not in event.fields else ("tenant",)
        fields = {name: value for name, value in event.fields.items() if name not in hidden}
        fields["at"] = format_instant(self._clock.now_ms())
        return b"event: %s\ndata: %s\n\n" % (event.name.encode(), _encode(fields))
